#include "nn/functional/vision.h"

#include "core/error/warning.h"
#include "core/ops/nn/grid_sampler.h"

namespace rush::nn::functional {

Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& o) {
  const auto mode = enumtype::holds<enumtype::kBilinear>(o.mode())  ? GridInterpolation::Bilinear
                    : enumtype::holds<enumtype::kNearest>(o.mode()) ? GridInterpolation::Nearest
                                                                    : GridInterpolation::Bicubic;
  const auto padding = enumtype::holds<enumtype::kZeros>(o.padding_mode())    ? GridPadding::Zeros
                       : enumtype::holds<enumtype::kBorder>(o.padding_mode()) ? GridPadding::Border
                                                                              : GridPadding::Reflection;
  if (!o.align_corners()) {
    RUSH_WARN_ONCE_PER_CALLER(
        "grid_sample: align_corners is not given, and false; grids that were made before PyTorch 1.3 need true");
  }
  return grid_sampler(input, grid, static_cast<int64_t>(mode), static_cast<int64_t>(padding),
                      o.align_corners().value_or(false));
}

Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners) {
  return affine_grid_generator(theta, size, align_corners);
}

}  // namespace rush::nn::functional
