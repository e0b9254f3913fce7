// The same elements in other places: flip, roll, rot90, and blocks of channels turned into pixels and back.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/tensor.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, IntArrayRef)> flip{"aten::flip(Tensor self, int[] dims) -> Tensor"};
inline constinit Op<Tensor(const Tensor&)> fliplr{"aten::fliplr(Tensor self) -> Tensor"};
inline constinit Op<Tensor(const Tensor&)> flipud{"aten::flipud(Tensor self) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef)> roll{
    "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, IntArrayRef)> rot90{
    "aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t)> pixel_shuffle{
    "aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t)> pixel_unshuffle{
    "aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t)> channel_shuffle{
    "aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor"};
}  // namespace ops

/// The order of elements reversed along `dims`. A copy.
inline Tensor flip(const Tensor& self, IntArrayRef dims) { return ops::flip(self, dims); }
inline Tensor fliplr(const Tensor& self) { return ops::fliplr(self); }  // along dimension 1
inline Tensor flipud(const Tensor& self) { return ops::flipud(self); }  // along dimension 0
/// Elements moved by shifts[i] along dims[i]; those that leave at the end come back at the start. Without `dims` the
/// tensor is rolled as one dimension.
inline Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims = {}) {
  return ops::roll(self, shifts, dims);
}
/// Turned by k quarters from dims[0] towards dims[1].
inline Tensor rot90(const Tensor& self, int64_t k = 1, IntArrayRef dims = {0, 1}) { return ops::rot90(self, k, dims); }
/// (..., C r^2, H, W) -> (..., C, H r, W r), and back. Shi et al., Real-Time Single Image and Video Super-Resolution
/// Using an Efficient Sub-Pixel Convolutional Neural Network, 2016.
inline Tensor pixel_shuffle(const Tensor& self, int64_t upscale_factor) {
  return ops::pixel_shuffle(self, upscale_factor);
}
inline Tensor pixel_unshuffle(const Tensor& self, int64_t downscale_factor) {
  return ops::pixel_unshuffle(self, downscale_factor);
}
/// (N, groups n, ...): channel g n + i becomes channel i groups + g.
inline Tensor channel_shuffle(const Tensor& self, int64_t groups) { return ops::channel_shuffle(self, groups); }

namespace kernels {
// `in` with the order along `dims` reversed, into `out`, contiguous and of the same shape.
inline constinit Kernel<void(const Tensor& out, const Tensor& in, IntArrayRef dims)> flip{"flip"};
}  // namespace kernels

}  // namespace rush
