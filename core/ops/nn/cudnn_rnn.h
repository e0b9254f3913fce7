// Recurrent layers by cuDNN: what the operators of recurrent.h call on CUDA.
#pragma once
#include <array>
#include <vector>

#include "core/dispatch/kernel.h"
#include "core/ops/nn/recurrent.h"

namespace rush {

namespace ops {
/// Whether cuDNN is built in, switched on, and computes with the tensor's dtype; false where there are no elements.
inline constinit Op<bool(const Tensor&)> cudnn_is_acceptable{"aten::cudnn_is_acceptable(Tensor self) -> bool"};
/// The layers without dropout between them: (output, h, c, reserve, weight_buf). `train` keeps what the gradient needs,
/// in reserve and weight_buf, cuDNN's copy of the weights. `mode` is a RecurrentMode; cx and c are none unless it is
/// Lstm. Throws NotImplementedError where cuDNN is not acceptable, for batch_first, dropout, and a given weight_buf.
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>(
    const Tensor&, TensorList, int64_t, const std::optional<Tensor>&, const Tensor&, const std::optional<Tensor>&,
    int64_t, int64_t, int64_t, int64_t, bool, double, bool, bool, IntArrayRef, const std::optional<Tensor>&)>
    _cudnn_rnn{
        "aten::_cudnn_rnn(Tensor input, Tensor[] weight, int weight_stride0, Tensor? weight_buf, Tensor hx, Tensor? "
        "cx, int mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool batch_first, float dropout, bool "
        "train, bool bidirectional, SymInt[] batch_sizes, Tensor? dropout_state) -> (Tensor, Tensor, Tensor, Tensor, "
        "Tensor)"};
/// The gradients of input, hx, cx and weight that output_mask asks for; the others are undefined. It cannot be
/// differentiated.
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>>(
    const Tensor&, TensorList, int64_t, const Tensor&, const Tensor&, const std::optional<Tensor>&, const Tensor&,
    const std::optional<Tensor>&, const std::optional<Tensor>&, const std::optional<Tensor>&, int64_t, int64_t, int64_t,
    int64_t, bool, double, bool, bool, IntArrayRef, const std::optional<Tensor>&, const Tensor&, std::array<bool, 4>)>
    _cudnn_rnn_backward{
        "aten::_cudnn_rnn_backward(Tensor input, Tensor[] weight, int weight_stride0, Tensor weight_buf, Tensor hx, "
        "Tensor? cx, Tensor output, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, int mode, SymInt "
        "hidden_size, SymInt proj_size, int num_layers, bool batch_first, float dropout, bool train, bool "
        "bidirectional, SymInt[] batch_sizes, Tensor? dropout_state, Tensor reserve, bool[4] output_mask) -> (Tensor, "
        "Tensor, Tensor, Tensor[])"};
}  // namespace ops

struct RecurrentOutput {
  Tensor data, h, c;        // like the input's; data has directions * output size
  Tensor weights, reserve;  // for the backward pass; reserve is undefined unless training

  template <class F>
  void each_tensor(const F& f) {
    for (Tensor* t : {&data, &h, &c, &weights, &reserve}) f(*t);
  }
};

struct RecurrentGradients {
  Tensor data, h, c;
  std::vector<Tensor> weights;  // in the order of the weights; empty where they are not asked for

  template <class F>
  void each_tensor(const F& f) {
    for (Tensor* t : {&data, &h, &c}) f(*t);
    for (Tensor& t : weights) f(t);
  }
};

namespace kernels {
// Whether the library is there, switched on, and computes with the dtype.
inline constinit Kernel<void(bool& acceptable, ScalarType dtype)> cudnn_is_acceptable{"cudnn_is_acceptable"};
// Tensors of one dtype. Fills output.data, h and c, which are row-major, and makes output.weights and reserve.
inline constinit Kernel<void(RecurrentOutput& output, const RecurrentLayers& layers, const RecurrentInput& input,
                             TensorList weights, bool train)>
    cudnn_rnn{"_cudnn_rnn"};
// Fills grads.data, h and c, which are row-major, for `grad`, that of the outputs' data, h and c, of which any may be
// undefined; makes grads.weights, if they are asked for.
inline constinit Kernel<void(RecurrentGradients& grads, const RecurrentLayers& layers, const RecurrentInput& input,
                             TensorList weights, const RecurrentOutput& output, const RecurrentOutput& grad,
                             bool weights_too)>
    cudnn_rnn_backward{"_cudnn_rnn_backward"};
}  // namespace kernels

}  // namespace rush
