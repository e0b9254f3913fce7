// Resizing the last one, two or three dimensions of a (N, C, ...) tensor by interpolation.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/macros.h"

namespace rush {

using OptionalScale = std::optional<double>;
using OptionalScales = std::optional<ArrayRef<double>>;

// Each operator has a form with one scale per dimension (operator name as it stands), one with a list of output sizes
// or of scales (`_vec`), and a backward pass. Linear and cubic ones also say whether the corners are aligned.
#define RUSH_UPSAMPLE_TABLE(NEAREST, SMOOTH)                                                                           \
  NEAREST(upsample_nearest1d, "1", "3", "float? scales=None", OptionalScale)                                           \
  NEAREST(upsample_nearest2d, "2", "4", "float? scales_h=None, float? scales_w=None", OptionalScale, OptionalScale)    \
  NEAREST(upsample_nearest3d, "3", "5", "float? scales_d=None, float? scales_h=None, float? scales_w=None",            \
          OptionalScale, OptionalScale, OptionalScale)                                                                 \
  NEAREST(_upsample_nearest_exact1d, "1", "3", "float? scales=None", OptionalScale)                                    \
  NEAREST(_upsample_nearest_exact2d, "2", "4", "float? scales_h=None, float? scales_w=None", OptionalScale,            \
          OptionalScale)                                                                                               \
  NEAREST(_upsample_nearest_exact3d, "3", "5", "float? scales_d=None, float? scales_h=None, float? scales_w=None",     \
          OptionalScale, OptionalScale, OptionalScale)                                                                 \
  SMOOTH(upsample_linear1d, "1", "3", "float? scales=None", OptionalScale)                                             \
  SMOOTH(upsample_bilinear2d, "2", "4", "float? scales_h=None, float? scales_w=None", OptionalScale, OptionalScale)    \
  SMOOTH(upsample_bicubic2d, "2", "4", "float? scales_h=None, float? scales_w=None", OptionalScale, OptionalScale)     \
  SMOOTH(_upsample_bilinear2d_aa, "2", "4", "float? scales_h=None, float? scales_w=None", OptionalScale,               \
         OptionalScale)                                                                                                \
  SMOOTH(_upsample_bicubic2d_aa, "2", "4", "float? scales_h=None, float? scales_w=None", OptionalScale, OptionalScale) \
  SMOOTH(upsample_trilinear3d, "3", "5", "float? scales_d=None, float? scales_h=None, float? scales_w=None",           \
         OptionalScale, OptionalScale, OptionalScale)

namespace ops {
#define RUSH_DECLARE_NEAREST(name, dims, rank, scales, ...)                                          \
  inline constinit Op<Tensor(const Tensor&, IntArrayRef, __VA_ARGS__)> name{                         \
      "aten::" #name "(Tensor self, SymInt[" dims "] output_size, " scales ") -> Tensor"};           \
  inline constinit Op<Tensor(const Tensor&, OptionalIntArrayRef, OptionalScales)> name##_vec{        \
      "aten::" #name ".vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor"}; \
  inline constinit Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef, __VA_ARGS__)> name##_backward{ \
      "aten::" #name "_backward(Tensor grad_output, SymInt[" dims "] output_size, SymInt[" rank      \
      "] input_size, " scales ") -> Tensor"};
#define RUSH_DECLARE_SMOOTH(name, dims, rank, scales, ...)                                                     \
  inline constinit Op<Tensor(const Tensor&, IntArrayRef, bool, __VA_ARGS__)> name{                             \
      "aten::" #name "(Tensor self, SymInt[" dims "] output_size, bool align_corners, " scales ") -> Tensor"}; \
  inline constinit Op<Tensor(const Tensor&, OptionalIntArrayRef, bool, OptionalScales)> name##_vec{            \
      "aten::" #name                                                                                           \
      ".vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "              \
      "Tensor"};                                                                                               \
  inline constinit Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef, bool, __VA_ARGS__)> name##_backward{     \
      "aten::" #name "_backward(Tensor grad_output, SymInt[" dims "] output_size, SymInt[" rank                \
      "] input_size, bool align_corners, " scales ") -> Tensor"};
RUSH_UPSAMPLE_TABLE(RUSH_DECLARE_NEAREST, RUSH_DECLARE_SMOOTH)
#undef RUSH_DECLARE_NEAREST
#undef RUSH_DECLARE_SMOOTH
}  // namespace ops

// Resizes to `output_size`, or by `scale_factors` (the sizes times the factors, rounded down): exactly one is given,
// with a number for each of the resized dimensions. Throws ValueError when both or none are, or on a tensor of another
// number of dimensions. With aligned corners the outermost elements of input and output coincide; otherwise elements
// are areas and output o lies at input (o + 0.5) / scale - 0.5. torch.nn.functional.interpolate.
//   nearest: element floor(o / scale); nearest_exact: floor((o + 0.5) / scale)
//   linear, bilinear, trilinear: weighted mean of the two neighbours in each dimension
//   bicubic: cubic convolution over four neighbours, A = -0.75 (Keys 1981)
//   bilinear_aa, bicubic_aa: where the result is smaller, the filter is as many times wider, so that all elements
//     between count; the cubic one has A = -0.5
#define RUSH_DEFINE_NEAREST(name, ...)                                     \
  inline Tensor name(const Tensor& input, OptionalIntArrayRef output_size, \
                     const OptionalScales& scale_factors = std::nullopt) { \
    return ops::name##_vec(input, output_size, scale_factors);             \
  }
#define RUSH_DEFINE_SMOOTH(name, ...)                                                          \
  inline Tensor name(const Tensor& input, OptionalIntArrayRef output_size, bool align_corners, \
                     const OptionalScales& scale_factors = std::nullopt) {                     \
    return ops::name##_vec(input, output_size, align_corners, scale_factors);                  \
  }
RUSH_UPSAMPLE_TABLE(RUSH_DEFINE_NEAREST, RUSH_DEFINE_SMOOTH)
#undef RUSH_DEFINE_NEAREST
#undef RUSH_DEFINE_SMOOTH

enum class UpsampleMode : int8_t { Nearest, NearestExact, Linear, Cubic, LinearAntialiased, CubicAntialiased };

/// One spatial dimension that is resized.
struct UpsampleAxis {
  int64_t input = 1, output = 1;
  double scale = 0;  // output / input as the caller gave it; 0 when it follows from the sizes
};

/// A tensor laid out as outer x depth x height x width x inner: row-major ones have their planes in `outer`,
/// channels-last ones the channels in `inner`.
struct UpsampleGeometry {
  UpsampleMode mode = UpsampleMode::Nearest;
  bool align_corners = false;
  int64_t outer = 1, inner = 1;
  int dims = 0;          // how many axes, counted from the last, are resized
  UpsampleAxis axis[3];  // depth, height, width

  /// Elements of one plane: depth x height x width.
  RUSH_HD int64_t input_plane() const { return axis[0].input * axis[1].input * axis[2].input; }
  RUSH_HD int64_t output_plane() const { return axis[0].output * axis[1].output * axis[2].output; }
};

namespace kernels {
// Both tensors are dense, in the layout that the geometry describes. grad_input need not be initialised.
inline constinit Kernel<void(const Tensor& output, const Tensor& input, const UpsampleGeometry&)> upsample{"upsample"};
inline constinit Kernel<void(const Tensor& grad_input, const Tensor& grad_output, const UpsampleGeometry&)>
    upsample_backward{"upsample_backward"};
}  // namespace kernels

}  // namespace rush
