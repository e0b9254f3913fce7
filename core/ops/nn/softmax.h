// softmax, log_softmax and logsumexp's relatives along a dimension.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/reduce/along_dim.h"

namespace rush {

namespace ops {
using SoftmaxOp = Op<Tensor(const Tensor&, int64_t, std::optional<ScalarType>)>;
using SoftmaxDataOp = Op<Tensor(const Tensor&, int64_t, bool)>;
using SoftmaxBackwardOp = Op<Tensor(const Tensor&, const Tensor&, int64_t, ScalarType)>;

inline constinit SoftmaxOp softmax{"aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"};
inline constinit SoftmaxOp log_softmax{"aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"};
inline constinit SoftmaxDataOp _softmax{"aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor"};
inline constinit SoftmaxDataOp _log_softmax{"aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor"};
inline constinit SoftmaxBackwardOp _softmax_backward_data{
    "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor"};
inline constinit SoftmaxBackwardOp _log_softmax_backward_data{
    "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor"};
}  // namespace ops

/// exp(x) / sum(exp(x)) along `dim`, in `dtype` if that is given. Throws NotImplementedError unless floating point,
/// IndexError when `dim` is out of range.
inline Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) {
  return ops::softmax(self, dim, dtype);
}
/// log(softmax(x)), computed without leaving the logarithm.
inline Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) {
  return ops::log_softmax(self, dim, dtype);
}
/// softmax(-x).
inline Tensor softmin(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) {
  return ops::softmax(self.neg(), dim, dtype);
}

namespace kernels {
// Along the middle dimension of `shape`; all tensors are row-major and of one floating dtype.
inline constinit Kernel<void(const Tensor& output, const Tensor& input, const AlongDim& shape, bool log)> softmax{
    "softmax"};
// grad_input = (grad - sum(grad * output)) * output, or grad - exp(output) * sum(grad) for log_softmax.
inline constinit Kernel<void(const Tensor& grad_input, const Tensor& grad, const Tensor& output, const AlongDim& shape,
                             bool log)>
    softmax_backward{"softmax_backward"};
// log(sum(exp(input))); `output` is (outer, inner).
inline constinit Kernel<void(const Tensor& output, const Tensor& input, const AlongDim& shape)> logsumexp{"logsumexp"};
}  // namespace kernels

}  // namespace rush
