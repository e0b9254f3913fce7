// Einstein summation.
#pragma once
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(std::string_view, TensorList, OptionalIntArrayRef)> einsum{
    "aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor"};
}  // namespace ops

/// Products of elements of the tensors, summed as the equation says: "ij,jk->ik" names the dimensions of each tensor
/// and of the result; a letter that the result lacks is summed over, one that a tensor has twice is its diagonal, "..."
/// stands for the others, which broadcast. Without "->" the result has the letters that appear once, in alphabetical
/// order. Tensors are multiplied from left to right; a `path` is checked for its length only. Throws ValueError naming
/// the equation. https://pytorch.org/docs/stable/generated/torch.einsum.html
inline Tensor einsum(std::string_view equation, TensorList tensors, OptionalIntArrayRef path = {}) {
  return ops::einsum(equation, tensors, path);
}

}  // namespace rush
