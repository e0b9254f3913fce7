// Dropout: random elements, or channels, set to zero in training, the others scaled up to keep the mean.
#pragma once
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/iterator/tensor_iterator.h"
#include "core/philox.h"

namespace rush {

using DropoutOp = Op<Tensor(const Tensor&, double, bool)>;
using DropoutInplaceOp = Op<Tensor&(Tensor&, double, bool)>;

namespace ops {
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, double, std::optional<bool>)> native_dropout{
    "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, double)> native_dropout_backward{
    "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor"};
inline constinit DropoutOp dropout{"aten::dropout(Tensor input, float p, bool train) -> Tensor"};
inline constinit DropoutInplaceOp dropout_{"aten::dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)"};
inline constinit DropoutOp feature_dropout{"aten::feature_dropout(Tensor input, float p, bool train) -> Tensor"};
inline constinit DropoutInplaceOp feature_dropout_{
    "aten::feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)"};
inline constinit DropoutOp alpha_dropout{"aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor"};
inline constinit DropoutInplaceOp alpha_dropout_{
    "aten::alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)"};
inline constinit DropoutOp feature_alpha_dropout{
    "aten::feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor"};
inline constinit DropoutInplaceOp feature_alpha_dropout_{
    "aten::feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)"};
}  // namespace ops

/// Each element zero with probability `p`, otherwise divided by 1 - p; `input` itself unless `train`. Throws ValueError
/// for a probability outside [0, 1]. Srivastava et al., "Dropout" (2014).
inline Tensor dropout(const Tensor& input, double p, bool train) { return ops::dropout(input, p, train); }
inline Tensor& dropout_(Tensor& input, double p, bool train) { return ops::dropout_(input, p, train); }
/// As dropout, also returning the bool mask of what was kept.
inline std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  return ops::native_dropout(input, p, train);
}
/// Its gradient: grad_output * mask * scale, with 1 / (1 - p) for the scale. Throws TypeError on a mask that is not
/// bool.
inline Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale) {
  return ops::native_dropout_backward(grad_output, mask, scale);
}
/// Whole channels of (N, C, ...) at a time.
inline Tensor feature_dropout(const Tensor& input, double p, bool train) {
  return ops::feature_dropout(input, p, train);
}
inline Tensor& feature_dropout_(Tensor& input, double p, bool train) { return ops::feature_dropout_(input, p, train); }
/// Dropped elements take SELU's negative limit, and all are mapped so that mean 0 and deviation 1 are kept. Klambauer
/// et al., "Self-normalizing neural networks" (2017).
inline Tensor alpha_dropout(const Tensor& input, double p, bool train) { return ops::alpha_dropout(input, p, train); }
inline Tensor& alpha_dropout_(Tensor& input, double p, bool train) { return ops::alpha_dropout_(input, p, train); }
inline Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  return ops::feature_alpha_dropout(input, p, train);
}
inline Tensor& feature_alpha_dropout_(Tensor& input, double p, bool train) {
  return ops::feature_alpha_dropout_(input, p, train);
}

namespace kernels {
// mask = an element is kept, with probability `keep` > 0; out = mask * input / keep. All row-major.
inline constinit Kernel<void(const Tensor& out, const Tensor& mask, const Tensor& input, double keep,
                             const PhiloxState& reserved)>
    dropout{"native_dropout"};
// out = grad * (mask ? scale : 0); operands: out, grad, mask (bool).
inline constinit Kernel<void(TensorIterator&, double scale)> dropout_backward{"native_dropout_backward"};
}  // namespace kernels

}  // namespace rush
