#include "autograd/gradcheck.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "core/ops/copy.h"
#include "core/ops/factories.h"

namespace rush::autograd {

namespace {

// The memory of element `index` (row-major) of a float64 tensor.
double& element(const Tensor& tensor, int64_t index) {
  int64_t offset = 0;
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    offset += index % tensor.sizes()[d] * tensor.strides()[d];
    index /= tensor.sizes()[d];
  }
  return tensor.data_ptr<double>()[offset];
}

// The outputs that have gradients, detached from everything else.
Tensors differentiable(const Tensors& outputs) {
  Tensors kept;
  for (const Tensor& output : outputs) {
    if (output.defined() && is_differentiable(output.scalar_type())) kept.push_back(output);
  }
  return kept;
}

Tensors values(const TensorFunction& fn, const Tensors& inputs) {
  const NoGradGuard no_grad;
  Tensors copies;
  for (const Tensor& output : differentiable(fn(inputs))) copies.push_back(output.clone(MemoryFormat::Contiguous));
  return copies;
}

void check_inputs(const Tensors& inputs) {
  bool any = false;
  for (const Tensor& input : inputs) {
    if (!input.defined() || !input.requires_grad()) continue;
    any = true;
    RUSH_CHECK_TYPE(input.scalar_type() == kFloat64, "gradcheck: inputs must be float64, got ", input.scalar_type());
    for (size_t d = 0; d < input.sizes().size(); ++d) {
      RUSH_CHECK_VALUE(input.sizes()[d] <= 1 || input.strides()[d] != 0,
                       "gradcheck: elements of an input share memory; clone it first");
    }
  }
  RUSH_CHECK_VALUE(any, "gradcheck: no input requires a gradient");
}

// d output[o][k] / d input[i][j] as a matrix of rows k, columns j.
using Jacobian = std::vector<std::vector<double>>;

std::vector<Jacobian> numeric_jacobians(const TensorFunction& fn, const Tensors& inputs, const Tensor& input,
                                        const Tensors& outputs, double eps) {
  std::vector<Jacobian> result;
  for (const Tensor& output : outputs) {
    result.emplace_back(output.numel(), std::vector<double>(static_cast<size_t>(input.numel())));
  }
  for (int64_t j = 0; j < input.numel(); ++j) {
    double& x = element(input, j);
    const double original = x;
    x = original + eps;
    const Tensors above = values(fn, inputs);
    x = original - eps;
    const Tensors below = values(fn, inputs);
    x = original;
    for (size_t o = 0; o < outputs.size(); ++o) {
      for (int64_t k = 0; k < outputs[o].numel(); ++k) {
        result[o][k][j] = (element(above[o], k) - element(below[o], k)) / (2 * eps);
      }
    }
  }
  return result;
}

// One row: the gradient of output element k with respect to the input.
std::vector<double> analytic_row(const Tensor& output, int64_t k, const Tensor& input) {
  const Tensor one = zeros(output.sizes(), output.options());
  element(one, k) = 1;
  const Tensor grad = autograd::grad(output, input, one, true, false, true)[0];
  std::vector<double> row(static_cast<size_t>(input.numel()), 0.0);
  if (!grad.defined()) return row;
  RUSH_CHECK(grad.sizes() == input.sizes(), "gradcheck: the gradient has shape ", grad.sizes(), ", its input ",
             input.sizes());
  for (int64_t j = 0; j < input.numel(); ++j) row[j] = element(grad, j);
  return row;
}

}  // namespace

bool gradcheck(const TensorFunction& fn, const Tensors& inputs, const GradcheckOptions& options) {
  check_inputs(inputs);
  const Tensors outputs = differentiable(fn(inputs));
  RUSH_CHECK_VALUE(!outputs.empty(), "gradcheck: the function has no differentiable output");
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
    const auto numeric = numeric_jacobians(fn, inputs, inputs[i], outputs, options.eps);
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (!outputs[o].requires_grad()) {
        for (const auto& row : numeric[o]) {
          for (double value : row) {
            RUSH_CHECK(std::abs(value) <= options.atol, "gradcheck: output ", o, " depends on input ", i,
                       " but does not require a gradient");
          }
        }
        continue;
      }
      for (int64_t k = 0; k < outputs[o].numel(); ++k) {
        const std::vector<double> analytic = analytic_row(outputs[o], k, inputs[i]);
        for (size_t j = 0; j < analytic.size(); ++j) {
          const double expected = numeric[o][k][j];
          const bool close = std::abs(analytic[j] - expected) <= options.atol + options.rtol * std::abs(expected);
          RUSH_CHECK(close, "gradcheck: d output ", o, "[", k, "] / d input ", i, "[", j, "] is ", analytic[j],
                     ", finite differences give ", expected);
        }
      }
    }
  }
  return true;
}

bool gradgradcheck(const TensorFunction& fn, const Tensors& inputs, const GradcheckOptions& options) {
  check_inputs(inputs);
  const Tensors probe = differentiable(fn(inputs));
  Tensors extended = inputs;
  // Fixed, not too regular values, so that nothing cancels.
  uint32_t draw = 0;
  for (const Tensor& output : probe) {
    Tensor grad_output = zeros(output.sizes(), output.options());
    for (int64_t k = 0; k < output.numel(); ++k) element(grad_output, k) = std::sin(1.0 + 0.7 * (draw++));
    extended.push_back(grad_output.requires_grad_());
  }
  const size_t count = inputs.size();
  const TensorFunction gradients = [&, count](const Tensors& all) {
    // Finite differences call this without recording; the first derivative needs the graph all the same.
    const EnableGradGuard recording;
    const Tensors own(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    Tensors outputs, grad_outputs, wanted;
    const Tensors results = differentiable(fn(own));
    for (size_t o = 0; o < results.size(); ++o) {
      if (!results[o].requires_grad()) continue;
      outputs.push_back(results[o]);
      grad_outputs.push_back(all[count + o]);
    }
    for (const Tensor& input : own) {
      if (input.defined() && input.requires_grad()) wanted.push_back(input);
    }
    Tensors grads = autograd::grad(outputs, wanted, grad_outputs, true, true, true);
    // A gradient that depends on nothing is a constant to the second derivative.
    std::erase_if(grads, [](const Tensor& g) { return !g.defined() || !g.requires_grad(); });
    return grads;
  };
  return gradcheck(gradients, extended, options);
}

}  // namespace rush::autograd
