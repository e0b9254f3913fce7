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
// The second result of both, for the last `dims` dimensions. It has no derivative.
inline constinit Op<Tensor(const Tensor&, int64_t, IntArrayRef, IntArrayRef, const Tensor&)>
    fractional_max_pool_indices{
        "rush::fractional_max_pool_indices(Tensor self, int dims, int[] kernel_size, int[] output_size, Tensor "
        "random_samples) -> Tensor"};
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

/// The windows along one dimension; `sample` is the number of its random sample among those of a plane.
struct FractionalAxis {
  int64_t input = 1, output = 1, kernel = 1, sample = 0;
};

struct FractionalGeometry {
  int64_t planes, dims;
  FractionalAxis axis[3];  // depth, height, width; an image has the depth 1
};

namespace kernels {
// indices (planes, outputs...), input (planes, inputs...), samples (planes, dims): row-major, and none is empty.
inline constinit Kernel<void(const Tensor& indices, const Tensor& input, const Tensor& samples,
                             const FractionalGeometry&)>
    fractional_max_pool{"fractional_max_pool"};
}  // namespace kernels

}  // namespace rush
