#include "nn/functional/vision.h"

#include "core/error/warning.h"
#include "core/ops/nn/grid_sampler.h"

namespace rush::nn::functional {

Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& o) {
  // The choices stand in the order of GridInterpolation and GridPadding.
  const auto mode = static_cast<int64_t>(o.mode().index()), padding = static_cast<int64_t>(o.padding_mode().index());
  if (!o.align_corners()) {
    RUSH_WARN_ONCE_PER_CALLER(
        "grid_sample: align_corners is not given, and false; grids that were made before PyTorch 1.3 need true");
  }
  return grid_sampler(input, grid, mode, padding, o.align_corners().value_or(false));
}

Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners) {
  return affine_grid_generator(theta, size, align_corners);
}

}  // namespace rush::nn::functional
