#pragma once
#include "core/tensor.h"
#include "nn/options/vision.h"

namespace rush::nn::functional {

/// Images (N, C, H, W) at the points of a grid (N, h, w, 2) -> (N, C, h, w), or with one more dimension of space each.
/// Points are from -1 to 1: see rush::grid_sampler.
Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& options = {});
/// The grid that maps images of `size`, (N, C, H, W) or (N, C, D, H, W), by the affine maps theta, (N, 2, 3) or (N, 3,
/// 4).
Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners = false);

}  // namespace rush::nn::functional
