#include "core/ops/nn/recurrent_layer.h"

#include <numeric>

#include "core/ops/basic.h"
#include "core/ops/nn/fused.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

namespace {

using LayerResult = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using LayerGradients = std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>>;

// A layer in one direction, its weights and its input.
struct Layer {
  RecurrentLayers is;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh, weight_hr;  // undefined where there is none
  RecurrentInput in;
  bool reverse;

  Layer(const char* op, const Tensor& input, TensorList weights, const Tensor& h, const std::optional<Tensor>& c,
        int64_t mode, bool reversed, IntArrayRef batch_sizes)
      : in{input, batch_sizes, h, c.value_or(Tensor())}, reverse(reversed) {
    RUSH_CHECK_VALUE(mode >= 0 && mode <= 3, op, ": expected a mode from 0 to 3, got ", mode);
    RUSH_CHECK_VALUE(!batch_sizes.empty(), op, ": expected a batch size for each step, got none");
    is = recurrent_layers_of(static_cast<RecurrentMode>(mode), weights, weights.size() >= 4, 1, false);
    check_recurrent(op, is, in, weights);
    const auto check_device = [&](const Tensor& t) {
      RUSH_CHECK_VALUE(t.device() == input.device(), op, ": devices differ: the input is on ", input.device(),
                       ", a state or parameter is on ", t.device());
    };
    for (const Tensor& t : weights) check_device(t);
    check_device(h);
    if (is_lstm()) check_device(in.c);
    weight_ih = weights[0];
    weight_hh = weights[1];
    if (is.biases) bias_ih = weights[2], bias_hh = weights[3];
    if (is.projection > 0) weight_hr = weights[weights.size() - 1];
  }

  bool is_lstm() const { return is.mode == RecurrentMode::Lstm; }
  bool is_gru() const { return is.mode == RecurrentMode::Gru; }
  int64_t rows() const { return in.data.size(0); }
  int64_t gate_columns() const { return is.gates() * is.hidden_size; }
  Tensor empty(int64_t count, int64_t columns) const {
    return detail::empty_contiguous({count, columns}, in.data.scalar_type(), in.data.device());
  }
};

// fn(first row, rows) for each step, in the order of the pass.
template <class Fn>
void for_steps(IntArrayRef batch_sizes, bool last_first, const Fn& fn) {
  int64_t row = last_first ? std::accumulate(batch_sizes.begin(), batch_sizes.end(), int64_t(0)) : 0;
  for (size_t i = 0; i < batch_sizes.size(); ++i) {
    const int64_t running = batch_sizes[last_first ? batch_sizes.size() - 1 - i : i];
    if (last_first) row -= running;
    fn(row, running);
    if (!last_first) row += running;
  }
}

// A part of a matrix, or an undefined tensor of one.
Tensor block(const Tensor& t, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  if (!t.defined()) return {};
  return detail::make_view(t, {rows, columns}, {t.stride(0), t.stride(1)},
                           t.storage_offset() + row * t.stride(0) + column * t.stride(1));
}
Tensor rows_of(const Tensor& t, int64_t row, int64_t rows) {
  return t.defined() ? block(t, row, rows, 0, t.size(1)) : Tensor();
}

// What the backward pass reads, side by side in one matrix: see kernels::recurrent_step. `projected` is `after` of all
// steps where weight_hr projects it.
struct Reserve {
  Tensor all, gates, before, kept, projected;

  Reserve(const Layer& layer, const Tensor& matrix) : all(matrix) {
    int64_t column = 0;
    const auto next = [&](int64_t columns) {
      const Tensor part = block(matrix, 0, layer.rows(), column, columns);
      column += columns;
      return part;
    };
    gates = next(layer.gate_columns());
    if (column == matrix.size(1)) return;  // not training
    before = next(layer.is.output_size());
    if (layer.is_lstm() || layer.is_gru()) kept = next(layer.is.hidden_size);
    if (layer.is.projection > 0) projected = next(layer.is.hidden_size);
  }
  static int64_t columns(const Layer& layer, bool train) {
    if (!train) return layer.gate_columns();
    const int64_t kept = (layer.is_lstm() || layer.is_gru() ? 1 : 0) + (layer.is.projection > 0 ? 1 : 0);
    return layer.gate_columns() + layer.is.output_size() + kept * layer.is.hidden_size;
  }
};

void assign(const Tensor& target, const Tensor& source) {
  if (!target.defined()) return;
  Tensor to = target;
  copy_(to, source, false);
}

// out = a b + beta out, or a b^T + beta out.
void multiply(const Tensor& out, const Tensor& a, const Tensor& b, bool transposed, int beta) {
  kernels::gemm(out.device().type, batch_of_one(out), batch_of_one(a), batch_of_one(b, transposed), beta, 1);
}
// out = input weight^T + bias, of which bias may be undefined.
void affine(const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (bias.defined()) assign(out, bias);
  multiply(out, input, weight, true, bias.defined() ? 1 : 0);
}

// A matrix (K, M) by which every step multiplies. Where there are enough steps for that, it is copied into panels of 64
// columns, (M / 64, K, 64): products of few rows read such panels where they lie, and pack nothing.
class StepFactor {
 public:
  StepFactor(const Tensor& matrix, size_t steps) : matrix_(matrix) {
    const bool packs = matrix.element_size() < 4;  // 16-bit numbers, which packing converts
    const int64_t panels = packs || steps < kLeastSteps ? 0 : matrix.size(1) / kColumns;
    in_panels_ = panels * kColumns;
    if (panels == 0) return;
    const int64_t row = matrix.stride(0), column = matrix.stride(1);
    panels_ = clone_contiguous(detail::make_view(matrix, {panels, matrix.size(0), kColumns},
                                                 {kColumns * column, row, column}, matrix.storage_offset()));
  }
  // out (n, M) = a (n, K) times the matrix + beta out.
  void multiply(const Tensor& out, const Tensor& a, int beta) const {
    const int64_t rows = out.size(0), panels = in_panels_ / kColumns;
    if (panels > 0) {
      const Tensor c =
          detail::make_view(out, {panels, rows, kColumns}, {kColumns * out.stride(1), out.stride(0), out.stride(1)},
                            out.storage_offset());
      const Tensor same =
          detail::make_view(a, {panels, rows, a.size(1)}, {0, a.stride(0), a.stride(1)}, a.storage_offset());
      kernels::gemm(out.device().type, c, same, panels_, beta, 1);
    }
    if (const int64_t rest = out.size(1) - in_panels_; rest > 0) {
      native::multiply(block(out, 0, rows, in_panels_, rest), a, block(matrix_, 0, matrix_.size(0), in_panels_, rest),
                       false, beta);
    }
  }

 private:
  static constexpr size_t kLeastSteps = 8;
  static constexpr int64_t kColumns = 64;
  Tensor matrix_, panels_;
  int64_t in_panels_;
};

LayerResult recurrent_layer(const Tensor& input, TensorList weights, const Tensor& h, const std::optional<Tensor>& c,
                            int64_t mode, bool reverse, bool train, IntArrayRef batch_sizes) {
  const Layer layer("recurrent_layer", input, weights, h, c, mode, reverse, batch_sizes);
  const int64_t batch = layer.in.batch(), hidden = layer.is.hidden_size, size = layer.is.output_size();
  const Reserve reserve(layer, layer.empty(layer.rows(), Reserve::columns(layer, train)));
  const Tensor h_n = clone_contiguous(h), c_n = layer.is_lstm() ? clone_contiguous(*c) : Tensor();
  const Tensor state = h_n.view({batch, size}), cells = layer.is_lstm() ? c_n.view({batch, hidden}) : Tensor();
  const Tensor output = layer.empty(layer.rows(), size);
  const Tensor from_hidden = layer.is_gru() ? layer.empty(batch, layer.gate_columns()) : Tensor();
  const Tensor projected = layer.is.projection > 0 && !train ? layer.empty(batch, hidden) : Tensor();

  // The inputs' part of all gates is one matrix product.
  const bool adds_biases = layer.is.biases && !layer.is_gru();
  affine(reserve.gates, input, layer.weight_ih, adds_biases ? layer.bias_ih + layer.bias_hh : layer.bias_ih);
  const StepFactor weight_hh(layer.weight_hh.t(), batch_sizes.size());
  for_steps(batch_sizes, reverse, [&](int64_t row, int64_t running) {
    const Tensor before = rows_of(state, 0, running), out = rows_of(output, row, running);
    const Tensor gates = rows_of(reserve.gates, row, running), h_gates = rows_of(from_hidden, 0, running);
    assign(rows_of(reserve.before, row, running), before);
    if (layer.is_gru() && layer.is.biases) assign(h_gates, layer.bias_hh);
    weight_hh.multiply(layer.is_gru() ? h_gates : gates, before, layer.is_gru() && !layer.is.biases ? 0 : 1);
    const Tensor after = layer.is.projection == 0 ? out
                         : train                  ? rows_of(reserve.projected, row, running)
                                                  : rows_of(projected, 0, running);
    kernels::recurrent_step(input.device().type, layer.is.mode, gates, h_gates, before, rows_of(cells, 0, running),
                            rows_of(reserve.kept, row, running), after);
    if (layer.is.projection > 0) multiply(out, after, layer.weight_hr, true, 0);
    assign(before, out);
  });
  return {output, h_n, c_n, train ? reserve.all : Tensor()};
}

void check_backward(const char* op, const Layer& layer, const std::optional<Tensor>& grad_output,
                    const std::optional<Tensor>& grad_h_n, const std::optional<Tensor>& grad_c_n,
                    const Tensor& reserve) {
  const Tensor& input = layer.in.data;
  const auto check = [&](const char* name, const std::optional<Tensor>& t, IntArrayRef sizes) {
    if (!t || !t->defined()) return;
    RUSH_CHECK_VALUE(t->sizes() == sizes && t->device() == input.device(), op, ": expected ", name, " of shape ", sizes,
                     " on ", input.device(), ", got ", t->sizes(), " on ", t->device());
    RUSH_CHECK_TYPE(t->scalar_type() == input.scalar_type(), op, ": expected ", name, " of dtype ", input.scalar_type(),
                    ", got ", t->scalar_type());
  };
  RUSH_CHECK_VALUE(reserve.defined(), op, ": the forward pass was not one of training and kept nothing for this one");
  check("reserve", reserve, {layer.rows(), Reserve::columns(layer, true)});
  RUSH_CHECK_VALUE(reserve.is_contiguous(), op, ": expected a contiguous reserve, got strides ", reserve.strides());
  check("grad_output", grad_output, {layer.rows(), layer.is.output_size()});
  check("grad_h_n", grad_h_n, layer.in.h.sizes());
  if (layer.is_lstm()) check("grad_c_n", grad_c_n, layer.in.c.sizes());
}

// A state's gradient, which the steps replace one after the other.
Tensor running_gradient(const std::optional<Tensor>& grad, const Tensor& like) {
  const bool given = grad && grad->defined();
  const Tensor matrix = given ? clone_contiguous(*grad) : rush::zeros(like.sizes(), like.options());
  return matrix.view({like.size(1), like.size(2)});
}

// Of weight_ih, weight_hh, the biases and weight_hr, each one product or sum over the rows of all steps.
std::vector<Tensor> weight_gradients(const Layer& layer, const Reserve& reserve, TensorList weights,
                                     const Tensor& grad_gates, const Tensor& grad_from_hidden,
                                     const Tensor& grad_output) {
  std::vector<Tensor> grads;
  for (const Tensor& weight : weights) {
    grads.push_back(detail::empty_contiguous(weight.sizes(), weight.scalar_type(), weight.device()));
  }
  const DeviceType device = layer.in.data.device().type;
  const Tensor bias_ih = layer.is.biases ? grads[2] : Tensor(), bias_hh = layer.is.biases ? grads[3] : Tensor();
  kernels::linear_parameter_gradients(device, grads[0], bias_ih, grad_gates, layer.in.data);
  if (layer.is_gru()) {
    kernels::linear_parameter_gradients(device, grads[1], bias_hh, grad_from_hidden, reserve.before);
  } else {
    kernels::linear_parameter_gradients(device, grads[1], Tensor(), grad_gates, reserve.before);
    assign(bias_hh, bias_ih);
  }
  if (layer.is.projection > 0) {
    kernels::linear_parameter_gradients(device, grads.back(), Tensor(), grad_output, reserve.projected);
  }
  return grads;
}

LayerGradients recurrent_layer_backward(const std::optional<Tensor>& grad_output, const std::optional<Tensor>& grad_h_n,
                                        const std::optional<Tensor>& grad_c_n, const Tensor& input, TensorList weights,
                                        const Tensor& h, const std::optional<Tensor>& c, const Tensor& reserved,
                                        int64_t mode, bool reverse, IntArrayRef batch_sizes,
                                        std::array<bool, 2> output_mask) {
  constexpr const char* op = "recurrent_layer_backward";
  const Layer layer(op, input, weights, h, c, mode, reverse, batch_sizes);
  const int64_t rows = layer.rows(), size = layer.is.output_size(), hidden = layer.is.hidden_size;
  check_backward(op, layer, grad_output, grad_h_n, grad_c_n, reserved);

  const Reserve reserve(layer, reserved);
  Tensor grad_h = running_gradient(grad_h_n, h), grad_c = layer.is_lstm() ? running_gradient(grad_c_n, *c) : Tensor();
  const Tensor grad_gates = layer.empty(rows, layer.gate_columns());
  const Tensor grad_from_hidden = layer.is_gru() ? layer.empty(rows, layer.gate_columns()) : Tensor();
  const bool is_projected = layer.is.projection > 0;
  const Tensor by_output = is_projected ? layer.empty(rows, size) : Tensor();  // of h at all steps
  const Tensor by_after = is_projected ? layer.empty(layer.in.batch(), hidden) : Tensor();
  const Tensor by_steps = grad_output.value_or(Tensor());
  const StepFactor weight_hh(layer.weight_hh, batch_sizes.size());
  for_steps(batch_sizes, !reverse, [&](int64_t row, int64_t running) {
    Tensor grad = rows_of(grad_h, 0, running);
    const Tensor by_gates = rows_of(grad_gates, row, running), by_hidden = rows_of(grad_from_hidden, row, running);
    if (by_steps.defined()) grad.add_(rows_of(by_steps, row, running));
    const Tensor grad_after = is_projected ? rows_of(by_after, 0, running) : grad;
    if (is_projected) {
      assign(rows_of(by_output, row, running), grad);
      multiply(grad_after, grad, layer.weight_hr, false, 0);
    }
    kernels::recurrent_step_backward(input.device().type, layer.is.mode, by_gates, by_hidden, grad_after,
                                     rows_of(grad_c, 0, running), rows_of(reserve.gates, row, running),
                                     rows_of(reserve.kept, row, running), rows_of(reserve.before, row, running));
    weight_hh.multiply(grad, layer.is_gru() ? by_hidden : by_gates, layer.is_gru() ? 1 : 0);
  });

  Tensor grad_input;
  if (output_mask[0]) {
    grad_input = layer.empty(rows, layer.is.input_size);
    multiply(grad_input, grad_gates, layer.weight_ih, false, 0);
  }
  std::vector<Tensor> grads;
  if (output_mask[1]) grads = weight_gradients(layer, reserve, weights, grad_gates, grad_from_hidden, by_output);
  return {grad_input, grad_h.view(h.sizes()), layer.is_lstm() ? grad_c.view(c->sizes()) : Tensor(), grads};
}

}  // namespace
}  // namespace native

void register_recurrent_layer_ops(Registry& r) {
  r.native(ops::recurrent_layer, native::recurrent_layer);
  r.native(ops::recurrent_layer_backward, native::recurrent_layer_backward);
}

}  // namespace rush
