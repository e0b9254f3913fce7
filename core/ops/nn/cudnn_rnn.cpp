#include "core/ops/nn/cudnn_rnn.h"

#include "core/ops/factory/factories.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

namespace {

bool cudnn_is_acceptable(const Tensor& self) {
  const DeviceType device = self.device().type;
  if (!kernels::cudnn_is_acceptable.has(device) || self.numel() == 0) return false;
  bool acceptable = false;
  kernels::cudnn_is_acceptable(device, acceptable, self.scalar_type());
  return acceptable;
}

// The problem that the arguments of both operators describe.
struct CudnnRnnProblem {
  RecurrentLayers layers;
  RecurrentInput input;
};

CudnnRnnProblem cudnn_rnn_problem(const char* op, const Tensor& input, TensorList weight, int64_t weight_stride0,
                                  const Tensor& hx, const std::optional<Tensor>& cx, int64_t mode, int64_t hidden_size,
                                  int64_t proj_size, int64_t num_layers, bool batch_first, double dropout,
                                  bool bidirectional, IntArrayRef batch_sizes,
                                  const std::optional<Tensor>& dropout_state) {
  RUSH_CHECK_NOT_IMPLEMENTED(!batch_first, op, ": batch_first is not implemented; transpose the input");
  RUSH_CHECK_NOT_IMPLEMENTED(dropout == 0 && !dropout_state, op,
                             ": dropout is not implemented; call it for each layer, with dropout between the calls");
  RUSH_CHECK_VALUE(mode >= 0 && mode <= 3, op, ": expected a mode from 0 to 3, got ", mode);
  const auto recurrence = static_cast<RecurrentMode>(mode);
  const bool is_lstm = recurrence == RecurrentMode::Lstm;
  RUSH_CHECK_VALUE(hidden_size > 0 && proj_size >= 0 && proj_size < hidden_size && (is_lstm || proj_size == 0), op,
                   ": a hidden size of ", hidden_size, " and a projection to ", proj_size, " do not fit mode ", mode);
  const bool biases = weight_stride0 >= 4;
  RecurrentLayers layers{
      recurrence, input.dim() > 0 ? input.size(-1) : 0, hidden_size, proj_size, num_layers, bidirectional, biases};
  const auto count = static_cast<int64_t>(weight.size());
  RUSH_CHECK_VALUE(num_layers > 0 && num_layers <= count && weight_stride0 == layers.weights_per_cell() &&
                       count == num_layers * layers.directions() * weight_stride0,
                   op, ": ", count, " weights, ", weight_stride0, " in each layer and direction, do not fit ",
                   num_layers, " layers");
  const CudnnRnnProblem problem{layers, {input, batch_sizes, hx, is_lstm ? cx.value_or(Tensor()) : Tensor()}};
  check_recurrent(op, layers, problem.input, weight);
  RUSH_CHECK_VALUE(input.numel() > 0, op, ": the input of shape ", input.sizes(), " is empty");
  return problem;
}

Tensor empty_as(const Tensor& like, IntArrayRef sizes) {
  return detail::empty_contiguous(sizes, like.scalar_type(), like.device());
}

DimVector output_sizes(const CudnnRnnProblem& problem) {
  DimVector sizes(problem.input.data.sizes());
  sizes.back() = problem.layers.directions() * problem.layers.output_size();
  return sizes;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> cudnn_rnn(
    const Tensor& input, TensorList weight, int64_t weight_stride0, const std::optional<Tensor>& weight_buf,
    const Tensor& hx, const std::optional<Tensor>& cx, int64_t mode, int64_t hidden_size, int64_t proj_size,
    int64_t num_layers, bool batch_first, double dropout, bool train, bool bidirectional, IntArrayRef batch_sizes,
    const std::optional<Tensor>& dropout_state) {
  constexpr const char* op = "_cudnn_rnn";
  RUSH_CHECK_NOT_IMPLEMENTED(!weight_buf, op, ": weights that are flattened already are not implemented");
  const auto problem = cudnn_rnn_problem(op, input, weight, weight_stride0, hx, cx, mode, hidden_size, proj_size,
                                         num_layers, batch_first, dropout, bidirectional, batch_sizes, dropout_state);
  const RecurrentInput& in = problem.input;
  RecurrentOutput out;
  out.data = empty_as(input, output_sizes(problem));
  out.h = empty_as(input, in.h.sizes());
  if (in.c.defined()) out.c = empty_as(input, in.c.sizes());
  kernels::cudnn_rnn(input.device().type, out, problem.layers, in, weight, train);
  return {out.data, out.h, out.c, out.reserve, out.weights};
}

std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> cudnn_rnn_backward(
    const Tensor& input, TensorList weight, int64_t weight_stride0, const Tensor& weight_buf, const Tensor& hx,
    const std::optional<Tensor>& cx, const Tensor& output, const std::optional<Tensor>& grad_output,
    const std::optional<Tensor>& grad_hy, const std::optional<Tensor>& grad_cy, int64_t mode, int64_t hidden_size,
    int64_t proj_size, int64_t num_layers, bool batch_first, double dropout, bool train, bool bidirectional,
    IntArrayRef batch_sizes, const std::optional<Tensor>& dropout_state, const Tensor& reserve,
    std::array<bool, 4> output_mask) {
  constexpr const char* op = "_cudnn_rnn_backward";
  RUSH_CHECK_VALUE(train && output.defined() && weight_buf.defined() && reserve.defined(), op,
                   ": the forward pass was not one of training and kept nothing for this one");
  const auto problem = cudnn_rnn_problem(op, input, weight, weight_stride0, hx, cx, mode, hidden_size, proj_size,
                                         num_layers, batch_first, dropout, bidirectional, batch_sizes, dropout_state);
  const RecurrentInput& in = problem.input;
  const RecurrentOutput out{output, {}, {}, weight_buf, reserve};
  const RecurrentOutput grad{grad_output.value_or(Tensor()),
                             grad_hy.value_or(Tensor()),
                             in.c.defined() ? grad_cy.value_or(Tensor()) : Tensor(),
                             {},
                             {}};
  const auto check = [&](const char* name, const Tensor& t, IntArrayRef sizes) {
    if (!t.defined()) return;
    RUSH_CHECK_VALUE(t.sizes() == sizes, op, ": expected ", name, " of shape ", sizes, ", got ", t.sizes());
    RUSH_CHECK_TYPE(t.scalar_type() == input.scalar_type(), op, ": expected ", name, " of dtype ", input.scalar_type(),
                    ", got ", t.scalar_type());
  };
  check("output", output, output_sizes(problem));
  check("grad_output", grad.data, output_sizes(problem));
  check("grad_hy", grad.h, in.h.sizes());
  check("grad_cy", grad.c, in.c.defined() ? in.c.sizes() : IntArrayRef());

  RecurrentGradients grads;
  grads.data = empty_as(input, input.sizes());
  grads.h = empty_as(input, in.h.sizes());
  if (in.c.defined()) grads.c = empty_as(input, in.c.sizes());
  kernels::cudnn_rnn_backward(input.device().type, grads, problem.layers, in, weight, out, grad, output_mask[3]);
  const auto wanted = [&](size_t i, const Tensor& t) { return output_mask[i] ? t : Tensor(); };
  return {wanted(0, grads.data), wanted(1, grads.h), wanted(2, grads.c), grads.weights};
}

}  // namespace
}  // namespace native

void register_cudnn_rnn_ops(Registry& r) {
  r.native(ops::cudnn_is_acceptable, native::cudnn_is_acceptable);
  r.native(ops::_cudnn_rnn, native::cudnn_rnn);
  r.native(ops::_cudnn_rnn_backward, native::cudnn_rnn_backward);
}

}  // namespace rush
