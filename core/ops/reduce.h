// Reductions: sum, and summing a tensor back to a shape that broadcast to it.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, std::optional<ScalarType>)> sum{
    "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, OptionalIntArrayRef, bool, std::optional<ScalarType>)> sum_dim{
    "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"};
}  // namespace ops

// The sum of all elements, or over the given dimensions. Integers and bool are summed as int64 unless a dtype is given.
inline Tensor sum(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt) { return ops::sum(self, dtype); }
inline Tensor sum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false,
                  std::optional<ScalarType> dtype = std::nullopt) {
  return ops::sum_dim(self, dim, keepdim, dtype);
}
// Sums over the dimensions along which `size` broadcasts to self's sizes.
Tensor sum_to_size(const Tensor& self, IntArrayRef size);

namespace kernels {
// Sums `input` over `dims` (sorted) into `output`, which has self's dimensions with the summed ones of size one.
inline constinit Kernel<void(const Tensor& output, const Tensor& input, IntArrayRef dims)> sum{"sum"};
}  // namespace kernels

}  // namespace rush
