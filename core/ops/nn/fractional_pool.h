// Fractional max pooling: windows that overlap, at steps that are a fraction and start at random.
#pragma once
#include "core/ops/nn/pool.h"

namespace rush {

namespace ops {
inline constinit Op<PoolResult(const Tensor&, IntArrayRef, IntArrayRef, const Tensor&)> fractional_max_pool2d{
    "aten::fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> "
    "(Tensor, Tensor)"};
inline constinit Op<PoolResult(const Tensor&, IntArrayRef, IntArrayRef, const Tensor&)> fractional_max_pool3d{
    "aten::fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> "
    "(Tensor, Tensor)"};
}  // namespace ops

/// The largest element of each of output_size windows of kernel_size, of each plane of (N, C, spatial...) or
/// (C, spatial...), and where in its plane it was. A plane's random sample u in [0, 1) for a dimension, with
/// step = (input - kernel) / (output - 1), puts window i at floor((i + u) step) - floor(u step) and the last one at the
/// end. random_samples is (N, C, 2) or (N, C, 3) of the input's dtype, in the order width, height or depth, height,
/// width. Throws ValueError for shapes and sizes that do not fit, TypeError for dtypes that differ. Graham, "Fractional
/// max-pooling" (2014). torch.nn.functional.fractional_max_pool2d.
inline PoolResult fractional_max_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size,
                                        const Tensor& random_samples) {
  return ops::fractional_max_pool2d(self, kernel_size, output_size, random_samples);
}
inline PoolResult fractional_max_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size,
                                        const Tensor& random_samples) {
  return ops::fractional_max_pool3d(self, kernel_size, output_size, random_samples);
}

}  // namespace rush
