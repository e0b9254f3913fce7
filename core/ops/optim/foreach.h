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
// These are not ATen's: what the operators above are made of where the tensors are alike.
inline constinit Op<Tensor(TensorList, const Scalar&, std::optional<ScalarType>)> foreach_norms{
    "rush::foreach_norms(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor"};
inline constinit Op<Tensor(TensorList, const Scalar&)> foreach_total_norm{
    "rush::foreach_total_norm(Tensor[] self, Scalar ord=2) -> Tensor"};
inline constinit Op<void(TensorList, const Tensor&)> foreach_scale_{
    "rush::foreach_scale_(Tensor(a!)[] self, Tensor factor) -> ()"};
inline constinit Op<std::vector<Tensor>(TensorList, ScalarType)> foreach_to_copy{
    "rush::foreach_to_copy(Tensor[] self, ScalarType dtype) -> Tensor[]"};
inline constinit Op<void(const Tensor&, TensorList, IntArrayRef)> foreach_to_blocks_{
    "rush::foreach_to_blocks_(Tensor(a!) blocks, Tensor[] self, SymInt[] sizes) -> ()", {Tag::AnyDevice}};
inline constinit Op<void(TensorList, const Tensor&, IntArrayRef)> foreach_from_blocks_{
    "rush::foreach_from_blocks_(Tensor(a!)[] self, Tensor blocks, SymInt[] sizes) -> ()", {Tag::AnyDevice}};
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

/// A copy of each tensor in `dtype`, with its strides. They are dense and of one device and one dtype, and that is, as
/// `dtype`, a real floating one; throws ValueError or TypeError otherwise. It has no derivative.
inline std::vector<Tensor> foreach_to_copy(TensorList self, ScalarType dtype) {
  return ops::foreach_to_copy(self, dtype);
}

/// Copies the elements of each tensor, which is read in row-major order, `sizes[i]` at a time into the rows of `blocks`
/// (rows, all sizes together), the first tensor's in front; what a tensor does not reach stays. `blocks` is contiguous,
/// and may be of another dtype or device. Throws ValueError where a tensor is too long or the sizes do not fit. It has
/// no derivative. As torch._chunk_cat, whose chunks are those of dimension 0.
inline void foreach_to_blocks_(const Tensor& blocks, TensorList self, IntArrayRef sizes) {
  ops::foreach_to_blocks_(blocks, self, sizes);
}
/// The way back, into contiguous tensors. As torch.split_with_sizes_copy.
inline void foreach_from_blocks_(TensorList self, const Tensor& blocks, IntArrayRef sizes) {
  ops::foreach_from_blocks_(self, blocks, sizes);
}

namespace kernels {
// Tensors with dense strides, of one real floating dtype. `norms` is in the dtype that is computed in, float32 for 16
// bits: (n), the norm of each, or (), that of all taken together; ord is 1, 2 or infinity.
inline constinit Kernel<void(const Tensor& norms, TensorList tensors, double ord)> foreach_norm{"_foreach_norm"};
// `factor` is one number of the tensors' dtype, on their device.
inline constinit Kernel<void(TensorList tensors, const Tensor& factor)> foreach_mul{"_foreach_mul_"};
// Each target has the strides of its source; all targets are of one real floating dtype, and all sources.
inline constinit Kernel<void(TensorList targets, TensorList sources)> foreach_copy{"foreach_to_copy"};
// Contiguous tensors of one real floating dtype, and as contiguous blocks of one.
inline constinit Kernel<void(const Tensor& blocks, TensorList tensors, IntArrayRef sizes, bool back)> foreach_blocks{
    "foreach_blocks"};
}  // namespace kernels

namespace native {
// The kernels above made of those of other operators.
void foreach_norm_by_parts(const Tensor& norms, TensorList tensors, double ord);
void foreach_mul_by_parts(TensorList tensors, const Tensor& factor);
void foreach_copy_by_parts(TensorList targets, TensorList sources);
void foreach_blocks_by_parts(const Tensor& blocks, TensorList tensors, IntArrayRef sizes, bool back);
}  // namespace native

}  // namespace rush
