// Many tensors in another dtype: one launch on a GPU, where as many conversions would be a launch each.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<std::vector<Tensor>(TensorList, ScalarType)> cast_all{
    "rush::cast_all(Tensor[] self, ScalarType dtype) -> Tensor[]"};
}  // namespace ops

/// Copies of all tensors, which are of floating dtypes and on one device, in the floating `dtype`: what to(dtype) gives
/// for each, bit for bit. A gradient waits for those of all copies that have one. ATen has no such operator. Throws
/// TypeError for other dtypes, ValueError for an undefined tensor and for several devices.
inline std::vector<Tensor> cast_all(TensorList tensors, ScalarType dtype) { return ops::cast_all(tensors, dtype); }

namespace kernels {
// Tensor number i of `to` is written with that of `from`, which has its sizes and dense strides. All of `to` are of one
// floating dtype, and so are all of `from`.
inline constinit Kernel<void(TensorList to, TensorList from)> cast_many{"cast_all"};
}  // namespace kernels

}  // namespace rush
