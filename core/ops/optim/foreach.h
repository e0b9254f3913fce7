// Operators on lists of tensors: one call, and on a GPU a few launches, for all of them.
#pragma once
#include <vector>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<std::vector<Tensor>(TensorList, const Scalar&, std::optional<ScalarType>)> _foreach_norm{
    "aten::_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]"};
inline constinit Op<void(TensorList, const Tensor&)> _foreach_mul_{
    "aten::_foreach_mul_.Tensor(Tensor(a!)[] self, Tensor other) -> ()"};
/// Not ATen's: the norms as one tensor (n), which is what they are computed as.
inline constinit Op<Tensor(TensorList, const Scalar&, std::optional<ScalarType>)> foreach_norms{
    "rush::foreach_norms(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor"};
inline constinit Op<Tensor(TensorList, const Scalar&)> foreach_total_norm{
    "rush::foreach_total_norm(Tensor[] self, Scalar ord=2) -> Tensor"};
}  // namespace ops

/// linalg_vector_norm(tensor, ord, dtype=dtype) of each tensor of a list that is not empty. Throws as that does, and
/// ValueError for an empty list.
inline std::vector<Tensor> _foreach_norm(TensorList self, const Scalar& ord = 2,
                                         std::optional<ScalarType> dtype = std::nullopt) {
  return ops::_foreach_norm(self, ord, dtype);
}
/// The same norms as one tensor (n), which has no derivative. The tensors have one device and one dtype; throws
/// ValueError or TypeError otherwise.
inline Tensor foreach_norms(TensorList self, const Scalar& ord = 2, std::optional<ScalarType> dtype = std::nullopt) {
  return ops::foreach_norms(self, ord, dtype);
}
/// The norm of all tensors taken together as one vector, a tensor of no dimensions and of their dtype: on a GPU two
/// launches. Of 16-bit numbers it is rounded once. What the tensors may be is as above.
inline Tensor foreach_total_norm(TensorList self, const Scalar& ord = 2) { return ops::foreach_total_norm(self, ord); }
/// Multiplies each tensor of a list that is not empty by the number `other`, a tensor of no dimensions, which may be on
/// the CPU. Throws ValueError otherwise, and TypeError, changing nothing, where a product is not of the tensor's dtype.
inline void _foreach_mul_(TensorList self, const Tensor& other) { ops::_foreach_mul_(self, other); }

namespace kernels {
// Tensors with dense strides, of one real floating dtype. `norms` is in the dtype that is computed in, float32 for 16
// bits: (n), the norm of each, or (), that of all taken together; ord is 1, 2 or infinity.
inline constinit Kernel<void(const Tensor& norms, TensorList tensors, double ord)> foreach_norm{"_foreach_norm"};
// `factor` is one number of the tensors' dtype, on their device.
inline constinit Kernel<void(TensorList tensors, const Tensor& factor)> foreach_mul{"_foreach_mul_"};
}  // namespace kernels

namespace native {
// The kernels above made of those of other operators.
void foreach_norm_by_parts(const Tensor& norms, TensorList tensors, double ord);
void foreach_mul_by_parts(TensorList tensors, const Tensor& factor);
}  // namespace native

}  // namespace rush
