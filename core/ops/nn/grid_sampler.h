// Sampling images at the points of a grid: the core of spatial transformers (Jaderberg et al., 2015).
#pragma once
#include <array>
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/macros.h"

namespace rush {

using GridSamplerOp = Op<Tensor(const Tensor&, const Tensor&, int64_t, int64_t, bool)>;
using GridSamplerBackwardOp = Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, int64_t,
                                                            int64_t, bool, std::array<bool, 2>)>;

namespace ops {
#define RUSH_GRID_SAMPLER_SCHEMA \
  "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor"
inline constinit GridSamplerOp grid_sampler{"aten::grid_sampler" RUSH_GRID_SAMPLER_SCHEMA};
inline constinit GridSamplerOp grid_sampler_2d{"aten::grid_sampler_2d" RUSH_GRID_SAMPLER_SCHEMA};
inline constinit GridSamplerOp grid_sampler_3d{"aten::grid_sampler_3d" RUSH_GRID_SAMPLER_SCHEMA};
#undef RUSH_GRID_SAMPLER_SCHEMA
#define RUSH_GRID_SAMPLER_BACKWARD_SCHEMA                                                                          \
  "(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, " \
  "bool[2] output_mask) -> (Tensor, Tensor)"
inline constinit GridSamplerBackwardOp grid_sampler_2d_backward{
    "aten::grid_sampler_2d_backward" RUSH_GRID_SAMPLER_BACKWARD_SCHEMA};
inline constinit GridSamplerBackwardOp grid_sampler_3d_backward{
    "aten::grid_sampler_3d_backward" RUSH_GRID_SAMPLER_BACKWARD_SCHEMA};
#undef RUSH_GRID_SAMPLER_BACKWARD_SCHEMA
inline constinit Op<Tensor(const Tensor&, IntArrayRef, bool)> affine_grid_generator{
    "aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor"};
}  // namespace ops

enum class GridInterpolation : int64_t { Bilinear, Nearest, Bicubic };
enum class GridPadding : int64_t { Zeros, Border, Reflection };

/// Images (N, C, size...) and the points of their grids (N, points, dims).
struct GridGeometry {
  GridInterpolation interpolation;
  GridPadding padding;
  bool align_corners;
  int dims;  // 2 or 3
  int64_t images, channels, points;
  int64_t size[3];  // (D,) H, W; of two dimensions the last is 1

  RUSH_HD int64_t plane() const { return size[0] * size[1] * size[2]; }
};

/// (N, C, H, W) at the points `grid` (N, h, w, 2) -> (N, C, h, w), or with one more spatial dimension each. A point is
/// (x, y) or (x, y, z), from -1 at one edge to 1 at the other: the centres of the outermost pixels with
/// `align_corners`, otherwise their outer sides. `interpolation_mode` and `padding_mode`, what lies outside the image,
/// are the enumerators' numbers; bicubic needs images of two dimensions. Throws ValueError for shapes that do not match
/// and unknown modes.
inline Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                           bool align_corners) {
  return ops::grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners);
}

/// The grid for grid_sampler that gives images of `size`, (N, C, H, W) or (N, C, D, H, W), mapped by the affine maps
/// theta, (N, 2, 3) or (N, 3, 4): at each pixel, theta times its own place and 1. (N, H, W, 2) or (N, D, H, W, 3).
/// Throws ValueError for other shapes or sizes that are not positive, TypeError for a theta that is not of floating
/// point.
inline Tensor affine_grid_generator(const Tensor& theta, IntArrayRef size, bool align_corners) {
  return ops::affine_grid_generator(theta, size, align_corners);
}

namespace detail {
// The same value from operators that have derivatives, for second derivatives: Note [Fused backward passes].
Tensor grid_sampler_by_operators(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                                 int64_t padding_mode, bool align_corners);
}  // namespace detail

namespace kernels {
// All tensors are row-major and of one dtype. The gradients need not be initialised; one that is not asked for is
// undefined.
inline constinit Kernel<void(const Tensor& output, const Tensor& input, const Tensor& grid, const GridGeometry&)>
    grid_sampler{"grid_sampler"};
inline constinit Kernel<void(const Tensor& grad_input, const Tensor& grad_grid, const Tensor& grad_output,
                             const Tensor& input, const Tensor& grid, const GridGeometry&)>
    grid_sampler_backward{"grid_sampler_backward"};
}  // namespace kernels

}  // namespace rush
