#include "core/ops/nn/upsample.h"

#include <array>

#include "core/ops/register.h"
#include "core/ops/view/copy.h"

namespace rush {

namespace {

constexpr const char* kOp = "upsample";
constexpr double kMostPlace = 2147483648.0;  // of an output element in the input: as an integer it must not overflow
constexpr MemoryFormat kChannelsLast[] = {MemoryFormat::Contiguous, MemoryFormat::Contiguous,
                                          MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d};

// The input's sizes and the output's along the resized dimensions. `format` is the layout of both tensors.
template <size_t dims>
UpsampleGeometry make_geometry(UpsampleMode mode, bool align_corners, IntArrayRef input_sizes, IntArrayRef output_size,
                               const std::array<OptionalScale, dims>& scales, MemoryFormat format) {
  RUSH_CHECK_VALUE(input_sizes.size() == dims + 2, kOp, ": expected a tensor of ", dims + 2, " dimensions, got shape ",
                   input_sizes);
  RUSH_CHECK_VALUE(output_size.size() == dims, kOp, ": output_size needs ", dims, " numbers, got ", output_size);
  checked_numel(input_sizes);
  UpsampleGeometry g;
  g.mode = mode;
  g.align_corners = align_corners;
  g.dims = static_cast<int>(dims);
  const bool channels_inside = format != MemoryFormat::Contiguous;
  g.outer = channels_inside ? input_sizes[0] : input_sizes[0] * input_sizes[1];
  g.inner = channels_inside ? input_sizes[1] : 1;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t input = input_sizes[d + 2], output = output_size[d];
    RUSH_CHECK_VALUE(input > 0 && output > 0, kOp, ": sizes must be positive, got input ", input_sizes, " and output ",
                     output_size);
    const double scale = scales[d].value_or(0);
    RUSH_CHECK_VALUE(!(scale > 0) || static_cast<double>(output) / scale < kMostPlace, kOp, ": a scale of ", scale,
                     " and an output of ", output, " elements lead too far outside the input");
    g.axis[3 - dims + d] = {input, output, scales[d].value_or(0) > 0 ? *scales[d] : 0};
  }
  return g;
}

template <size_t dims>
Tensor run(UpsampleMode mode, const Tensor& self, IntArrayRef output_size, bool align_corners,
           const std::array<OptionalScale, dims>& scales) {
  const bool channels_inside = dims > 1 && self.suggest_memory_format() == kChannelsLast[dims];
  const MemoryFormat format = channels_inside ? kChannelsLast[dims] : MemoryFormat::Contiguous;
  const UpsampleGeometry g = make_geometry(mode, align_corners, self.sizes(), output_size, scales, format);
  DimVector sizes{self.size(0), self.size(1)};
  for (int64_t size : output_size) sizes.push_back(size);
  const Tensor out = detail::empty_format(sizes, self.scalar_type(), self.device(), format);
  // A kernel tabulates the weights of every place along a dimension, however many there are.
  if (out.numel() > 0) kernels::upsample(self.device().type, out, ops::contiguous(self, format), g);
  return out;
}

template <size_t dims>
Tensor run_backward(UpsampleMode mode, const Tensor& grad, IntArrayRef output_size, IntArrayRef input_size,
                    bool align_corners, const std::array<OptionalScale, dims>& scales) {
  const bool channels_inside = dims > 1 && grad.suggest_memory_format() == kChannelsLast[dims];
  const MemoryFormat format = channels_inside ? kChannelsLast[dims] : MemoryFormat::Contiguous;
  const UpsampleGeometry g = make_geometry(mode, align_corners, input_size, output_size, scales, format);
  DimVector sizes{input_size[0], input_size[1]};
  for (int64_t size : output_size) sizes.push_back(size);
  RUSH_CHECK_VALUE(grad.sizes() == IntArrayRef(sizes), kOp, ": grad_output has shape ", grad.sizes(), ", expected ",
                   sizes);
  const Tensor result = detail::empty_format(input_size, grad.scalar_type(), grad.device(), format);
  if (grad.numel() > 0) kernels::upsample_backward(grad.device().type, result, ops::contiguous(grad, format), g);
  return result;
}

// The output sizes that a list of sizes or of scale factors asks for.
DimVector requested_size(const Tensor& input, size_t dims, const OptionalIntArrayRef& output_size,
                         const OptionalScales& factors) {
  RUSH_CHECK_VALUE(output_size.has_value() != factors.has_value(), kOp,
                   ": exactly one of output_size and scale_factors must be given");
  RUSH_CHECK_VALUE(input.sizes().size() == dims + 2, kOp, ": expected a tensor of ", dims + 2,
                   " dimensions, got shape ", input.sizes());
  const size_t count = output_size ? output_size->size() : factors->size();
  RUSH_CHECK_VALUE(count == dims, kOp, ": needs ", dims, " sizes or scale factors, got ", count);
  DimVector sizes;
  for (size_t d = 0; d < dims; ++d) {
    if (output_size) {
      sizes.push_back((*output_size)[d]);
      continue;
    }
    const double size = static_cast<double>(input.sizes()[d + 2]) * (*factors)[d];
    RUSH_CHECK_VALUE(size >= 0 && size < 0x1p63, kOp, ": a scale factor of ", (*factors)[d], " makes a dimension of ",
                     input.sizes()[d + 2], " elements ", size);
    sizes.push_back(static_cast<int64_t>(size));
  }
  return sizes;
}

}  // namespace

namespace native {

template <UpsampleMode mode, class... Scales>
static Tensor upsample_nearest(const Tensor& self, IntArrayRef output_size, Scales... scales) {
  return run<sizeof...(Scales)>(mode, self, output_size, false, {scales...});
}

template <UpsampleMode mode, class... Scales>
static Tensor upsample_nearest_backward(const Tensor& grad, IntArrayRef output_size, IntArrayRef input_size,
                                        Scales... scales) {
  return run_backward<sizeof...(Scales)>(mode, grad, output_size, input_size, false, {scales...});
}

template <UpsampleMode mode, class... Scales>
static Tensor upsample_smooth(const Tensor& self, IntArrayRef output_size, bool align_corners, Scales... scales) {
  return run<sizeof...(Scales)>(mode, self, output_size, align_corners, {scales...});
}

template <UpsampleMode mode, class... Scales>
static Tensor upsample_smooth_backward(const Tensor& grad, IntArrayRef output_size, IntArrayRef input_size,
                                       bool align_corners, Scales... scales) {
  return run_backward<sizeof...(Scales)>(mode, grad, output_size, input_size, align_corners, {scales...});
}

// `op` with the sizes that a `vec` form asks for, and a scale for each of `dims` dimensions where scales were given.
template <size_t dims, class OpT, class... Options>
static Tensor upsample_to(const OpT& op, const Tensor& input, const OptionalIntArrayRef& output_size,
                          const OptionalScales& factors, Options... options) {
  const DimVector size = requested_size(input, dims, output_size, factors);
  return [&]<size_t... d>(std::index_sequence<d...>) {
    return op(input, size, options..., (factors ? OptionalScale((*factors)[d]) : std::nullopt)...);
  }
  (std::make_index_sequence<dims>());
}

template <auto& op, size_t dims>
static Tensor upsample_nearest_vec(const Tensor& input, OptionalIntArrayRef output_size, OptionalScales factors) {
  return upsample_to<dims>(op, input, output_size, factors);
}

template <auto& op, size_t dims>
static Tensor upsample_smooth_vec(const Tensor& input, OptionalIntArrayRef output_size, bool align_corners,
                                  OptionalScales factors) {
  return upsample_to<dims>(op, input, output_size, factors, align_corners);
}

}  // namespace native

void register_upsample_ops(Registry& r) {
#define RUSH_REGISTER_UPSAMPLE(name, kind, mode, dims)                                    \
  r.native(ops::name, native::upsample_##kind<UpsampleMode::mode>);                       \
  r.native(ops::name##_backward, native::upsample_##kind##_backward<UpsampleMode::mode>); \
  r.composite(ops::name##_vec, native::upsample_##kind##_vec<ops::name, dims>);
  RUSH_REGISTER_UPSAMPLE(upsample_nearest1d, nearest, Nearest, 1)
  RUSH_REGISTER_UPSAMPLE(upsample_nearest2d, nearest, Nearest, 2)
  RUSH_REGISTER_UPSAMPLE(upsample_nearest3d, nearest, Nearest, 3)
  RUSH_REGISTER_UPSAMPLE(_upsample_nearest_exact1d, nearest, NearestExact, 1)
  RUSH_REGISTER_UPSAMPLE(_upsample_nearest_exact2d, nearest, NearestExact, 2)
  RUSH_REGISTER_UPSAMPLE(_upsample_nearest_exact3d, nearest, NearestExact, 3)
  RUSH_REGISTER_UPSAMPLE(upsample_linear1d, smooth, Linear, 1)
  RUSH_REGISTER_UPSAMPLE(upsample_bilinear2d, smooth, Linear, 2)
  RUSH_REGISTER_UPSAMPLE(upsample_trilinear3d, smooth, Linear, 3)
  RUSH_REGISTER_UPSAMPLE(upsample_bicubic2d, smooth, Cubic, 2)
  RUSH_REGISTER_UPSAMPLE(_upsample_bilinear2d_aa, smooth, LinearAntialiased, 2)
  RUSH_REGISTER_UPSAMPLE(_upsample_bicubic2d_aa, smooth, CubicAntialiased, 2)
#undef RUSH_REGISTER_UPSAMPLE
}

}  // namespace rush
