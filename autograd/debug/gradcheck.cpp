#include "autograd/debug/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "core/ops/basic.h"
#include "core/ops/sparse/sparse.h"

namespace rush::autograd {

namespace {

// How many real numbers a float64 or complex128 tensor holds.
int64_t count(const Tensor& tensor) { return tensor.numel() * (tensor.is_complex() ? 2 : 1); }

// The memory of number `index`, elements being counted row-major, and in each its real part before its imaginary one.
double& element(const Tensor& tensor, int64_t index) {
  const int64_t parts = tensor.is_complex() ? 2 : 1, part = index % parts;
  index /= parts;
  int64_t offset = 0;
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    offset += index % tensor.sizes()[d] * tensor.strides()[d];
    index /= tensor.sizes()[d];
  }
  RUSH_CHECK_TYPE(to_real(tensor.scalar_type()) == kFloat64, "gradcheck: expected float64 or complex128, got ",
                  tensor.scalar_type());
  return static_cast<double*>(tensor.data_ptr())[offset * parts + part];
}

// The outputs that have gradients; sparse ones as dense tensors, whose elements can be read.
Tensors differentiable(const Tensors& outputs) {
  Tensors kept;
  for (const Tensor& output : outputs) {
    if (output.defined() && is_differentiable(output.scalar_type())) kept.push_back(output.to_dense());
  }
  return kept;
}

// Recorded, as the function may itself ask for gradients.
Tensors values(const TensorFunction& fn, const Tensors& inputs) {
  const EnableGradGuard recording;
  Tensors copies;
  for (const Tensor& output : differentiable(fn(inputs))) {
    copies.push_back(output.detach().clone(MemoryFormat::Contiguous));
  }
  return copies;
}

void check_inputs(const Tensors& inputs) {
  bool any = false;
  for (const Tensor& input : inputs) {
    if (!input.defined() || !input.requires_grad()) continue;
    any = true;
    RUSH_CHECK_VALUE(input.layout() == kStrided,
                     "gradcheck: an input that requires a gradient is sparse; make it of an input of its values in the "
                     "function");
    RUSH_CHECK_TYPE(input.scalar_type() == kFloat64 || input.scalar_type() == kComplex128,
                    "gradcheck: inputs must be float64 or complex128, got ", input.scalar_type());
    for (size_t d = 0; d < input.sizes().size(); ++d) {
      RUSH_CHECK_VALUE(input.sizes()[d] <= 1 || input.strides()[d] != 0,
                       "gradcheck: elements of an input share memory; clone it first");
    }
  }
  RUSH_CHECK_VALUE(any, "gradcheck: no input requires a gradient");
}

using Doubles = std::vector<double>;

double dot(const Doubles& a, const Doubles& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

double sum(const Doubles& a) { return std::accumulate(a.begin(), a.end(), 0.0); }

// Both by way of the host where the tensor lies on another device.
Doubles elements(const Tensor& tensor) {
  const Tensor host = tensor.detach().cpu();
  Doubles values(static_cast<size_t>(count(tensor)));
  for (int64_t k = 0; k < count(tensor); ++k) values[k] = element(host, k);
  return values;
}

void set_elements(const Tensor& tensor, const Doubles& values) {
  const NoGradGuard no_grad;
  const Tensor host = tensor.detach().cpu();
  for (int64_t k = 0; k < count(tensor); ++k) element(host, k) = values[k];
  if (tensor.is_cpu()) return;
  const uint32_t version = tensor.storage()->version();
  tensor.detach().copy_(host);
  tensor.storage()->set_version(version);  // graphs that were recorded before are still those of the same values
}

// What a Jacobian is multiplied with on one side: each of a tensor's numbers alone, or in fast mode all at once, with
// weights that are not too regular. They turn by another `angle` for each number on the other side: with the same on
// both, a transposed Jacobian would pass for the right one.
std::vector<Doubles> directions(const Tensor& tensor, bool fast_mode, double angle) {
  const auto n = static_cast<size_t>(count(tensor));
  std::vector<Doubles> result(fast_mode ? std::min<size_t>(n, 1) : n, Doubles(n));
  for (size_t k = 0; k < n; ++k) result[fast_mode ? 0 : k][k] = fast_mode ? 0.55 + 0.45 * std::sin(2.0 + angle * k) : 1;
  return result;
}

// How much each output changes when the input moves along a direction: the Jacobian times the direction.
std::vector<Doubles> central_difference(const TensorFunction& fn, const Tensors& inputs, const Tensor& input,
                                        const Doubles& direction, double eps) {
  const Doubles original = elements(input);
  const auto outputs_at = [&](double step) {
    Doubles moved = original;
    for (size_t j = 0; j < moved.size(); ++j) moved[j] += step * direction[j];
    set_elements(input, moved);
    Tensors outputs;
    try {
      outputs = values(fn, inputs);
    } catch (...) {
      set_elements(input, original);
      throw;
    }
    set_elements(input, original);
    return outputs;
  };
  const Tensors above = outputs_at(eps), below = outputs_at(-eps);
  std::vector<Doubles> result;
  for (size_t o = 0; o < above.size(); ++o) {
    const Doubles low = elements(below[o]);
    Doubles difference = elements(above[o]);
    for (size_t k = 0; k < difference.size(); ++k) difference[k] = (difference[k] - low[k]) / (2 * eps);
    result.push_back(std::move(difference));
  }
  return result;
}

// The gradient of the input where the output's is `weights`: the weights times the Jacobian.
Doubles analytic_row(const Tensor& output, const Doubles& weights, const Tensor& input) {
  const Tensor grad_output = zeros(output.sizes(), output.options());
  set_elements(grad_output, weights);
  Tensor grad = autograd::grad(output, input, grad_output, true, false, true)[0];
  if (!grad.defined()) return Doubles(static_cast<size_t>(count(input)));
  grad = grad.to_dense();
  RUSH_CHECK(grad.sizes() == input.sizes(), "gradcheck: the gradient has shape ", grad.sizes(), ", its input ",
             input.sizes());
  return elements(grad);
}

// The Jacobian of every output with respect to inputs[i], or its projection, against finite differences.
void check_input(const TensorFunction& fn, const Tensors& inputs, size_t i, const Tensors& outputs,
                 const GradcheckOptions& options) {
  const std::vector<Doubles> moves = directions(inputs[i], options.fast_mode, 1.3);
  std::vector<std::vector<Doubles>> differences;  // of every move, of every output
  for (const Doubles& move : moves) {
    differences.push_back(central_difference(fn, inputs, inputs[i], move, options.eps));
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const std::vector<Doubles> rows = directions(outputs[o], options.fast_mode, 2.1);
    for (size_t k = 0; k < rows.size(); ++k) {
      Doubles analytic;
      if (outputs[o].requires_grad()) analytic = analytic_row(outputs[o], rows[k], inputs[i]);
      for (size_t j = 0; j < moves.size(); ++j) {
        const double expected = dot(rows[k], differences[j][o]);
        const double atol = options.atol * sum(rows[k]) * sum(moves[j]);
        RUSH_CHECK(outputs[o].requires_grad() || std::abs(expected) <= atol, "gradcheck: output ", o,
                   " depends on input ", i, " but does not require a gradient");
        if (!outputs[o].requires_grad()) continue;
        const double got = dot(analytic, moves[j]);
        const bool close = std::abs(got - expected) <= atol + options.rtol * std::abs(expected);
        RUSH_CHECK(close || options.fast_mode, "gradcheck: d output ", o, "[", k, "] / d input ", i, "[", j, "] is ",
                   got, ", finite differences give ", expected);
        RUSH_CHECK(close, "gradcheck: d output ", o, " / d input ", i, " in a fixed direction is ", got,
                   ", finite differences give ", expected);
      }
    }
  }
}

// The same values with the dimensions' order in memory reversed, and every second element unused.
Tensor laid_out_anew(const Tensor& tensor) {
  if (!tensor.defined() || !is_differentiable(tensor.scalar_type()) || tensor.layout() != kStrided) return tensor;
  std::vector<int64_t> sizes(tensor.sizes().begin(), tensor.sizes().end());
  std::reverse(sizes.begin(), sizes.end());
  sizes.push_back(2);
  const NoGradGuard no_grad;
  const Tensor sparse = zeros(sizes, tensor.options()).select(-1, 1).numpy_T();
  sparse.copy_(tensor);
  return sparse.detach().requires_grad_(tensor.requires_grad());
}

// A tensor of another layout in place of this one.
using LayOut = Tensor (*)(const Tensor&);

// The gradients of all inputs that require one, at grad_outputs that are fixed, and not too regular for anything to
// cancel.
Tensors gradients_at(const TensorFunction& fn, const Tensors& inputs, LayOut lay_out) {
  Tensors wanted, outputs, grads;
  for (const Tensor& input : inputs) {
    if (input.defined() && input.requires_grad()) wanted.push_back(input);
  }
  double draw = 0;
  for (const Tensor& output : differentiable(fn(inputs))) {
    if (!output.requires_grad()) continue;
    Tensor grad = zeros(output.sizes(), output.options());
    Doubles weights(static_cast<size_t>(count(grad)));
    for (double& weight : weights) weight = std::cos(0.3 + 0.9 * draw++);
    set_elements(grad, weights);
    outputs.push_back(output);
    grads.push_back(lay_out(grad));
  }
  if (outputs.empty()) return {};
  Tensors found = autograd::grad(outputs, wanted, grads, true, false, true);
  for (Tensor& grad : found) {
    if (grad.defined()) grad = grad.to_dense();
  }
  return found;
}

void check_same(const Tensors& expected, const Tensors& got, const char* change, const GradcheckOptions& options) {
  RUSH_CHECK(expected.size() == got.size(), "gradcheck: with ", change, " there are other outputs");
  for (size_t i = 0; i < got.size(); ++i) {
    RUSH_CHECK(expected[i].defined() == got[i].defined(), "gradcheck: gradient ", i, " is lost with ", change);
    if (!got[i].defined()) continue;
    const Doubles of_expected = elements(expected[i]), of_got = elements(got[i]);
    for (size_t k = 0; k < of_got.size(); ++k) {
      const double a = of_expected[k], b = of_got[k];
      RUSH_CHECK(std::abs(a - b) <= options.atol + options.rtol * std::abs(a) || a == b, "gradcheck: gradient ", i, "[",
                 k, "] is ", b, " with ", change, ", and was ", a);
    }
  }
}

// With gaps between elements, and at the gradient of a sum, which is one number for all.
void check_other_layouts(const TensorFunction& fn, const Tensors& inputs, const GradcheckOptions& options) {
  Tensors others;
  for (const Tensor& input : inputs) others.push_back(laid_out_anew(input));
  const LayOut as_it_is = [](const Tensor& grad) { return grad; };
  check_same(gradients_at(fn, inputs, as_it_is), gradients_at(fn, others, laid_out_anew), "other strides of the inputs",
             options);
  const LayOut one_number = [](const Tensor& grad) {
    return grad.layout() == kStrided ? full({}, 0.7, grad.options()).expand(grad.sizes()) : grad;
  };
  const LayOut as_many = [](const Tensor& grad) {
    return grad.layout() == kStrided ? full(grad.sizes(), 0.7, grad.options()) : grad;
  };
  check_same(gradients_at(fn, inputs, as_many), gradients_at(fn, inputs, one_number), "a gradient that is expanded",
             options);
}

// gradcheck, unobserved.
bool check_all(const TensorFunction& fn, const Tensors& inputs, const GradcheckOptions& options) {
  const Tensors outputs = differentiable(fn(inputs));
  RUSH_CHECK_VALUE(!outputs.empty(), "gradcheck: the function has no differentiable output");
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined() && inputs[i].requires_grad()) check_input(fn, inputs, i, outputs, options);
  }
  if (options.any_layout) check_other_layouts(fn, inputs, options);
  return true;
}

}  // namespace

bool gradcheck(const TensorFunction& fn, const Tensors& inputs, const GradcheckOptions& options) {
  check_inputs(inputs);
  if (gradcheck_observer) gradcheck_observer(fn, inputs, 1);
  return check_all(fn, inputs, options);
}

bool gradgradcheck(const TensorFunction& fn, const Tensors& inputs, const GradcheckOptions& options) {
  check_inputs(inputs);
  if (gradcheck_observer) gradcheck_observer(fn, inputs, 2);
  const Tensors probe = differentiable(fn(inputs));
  Tensors extended = inputs;
  // Fixed, not too regular values, so that nothing cancels.
  uint32_t draw = 0;
  for (const Tensor& output : probe) {
    Tensor grad_output = zeros(output.sizes(), output.options());
    Doubles weights(static_cast<size_t>(count(grad_output)));
    for (double& weight : weights) weight = std::sin(1.0 + 0.7 * (draw++));
    set_elements(grad_output, weights);
    extended.push_back(grad_output.requires_grad_());
  }
  const size_t given = inputs.size();
  const TensorFunction gradients = [&, given](const Tensors& all) {
    const Tensors own(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(given));
    Tensors outputs, grad_outputs, wanted;
    const Tensors results = differentiable(fn(own));
    for (size_t o = 0; o < results.size(); ++o) {
      if (!results[o].requires_grad()) continue;
      outputs.push_back(results[o]);
      grad_outputs.push_back(all[given + o]);
    }
    for (const Tensor& input : own) {
      if (input.defined() && input.requires_grad()) wanted.push_back(input);
    }
    Tensors grads = autograd::grad(outputs, wanted, grad_outputs, true, true, true);
    std::erase_if(grads, [](const Tensor& g) { return !g.defined(); });
    return grads;
  };
  check_inputs(extended);
  if (gradcheck_observer) gradcheck_observer(gradients, extended, 1);
  return check_all(gradients, extended, options);
}

}  // namespace rush::autograd
