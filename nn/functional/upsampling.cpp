#include "nn/functional/upsampling.h"

#include "core/ops/nn/pool.h"
#include "core/ops/nn/upsample.h"
#include "core/ops/view/rearrange.h"

namespace rush::nn::functional {

namespace {

// One number counts for all dimensions.
template <class T>
std::vector<T> for_each_dimension(const char* name, const std::vector<T>& values, size_t dims) {
  RUSH_CHECK_VALUE(values.size() == 1 || values.size() == dims, "interpolate: expected ", name, " of 1 or ", dims,
                   " numbers, got ", values.size());
  return values.size() == dims ? values : std::vector<T>(dims, values[0]);
}

// Where the input goes: sizes, or factors of which the operators compute them.
struct Target {
  std::optional<std::vector<int64_t>> sizes;
  std::optional<std::vector<double>> factors;
};

Target target_of(const Tensor& input, const InterpolateFuncOptions& o, bool as_sizes) {
  RUSH_CHECK_VALUE(o.size().has_value() != o.scale_factor().has_value(),
                   "interpolate: give either size or scale_factor");
  RUSH_CHECK_VALUE(!o.recompute_scale_factor().value_or(false) || !o.size(),
                   "interpolate: recompute_scale_factor goes with scale_factor only");
  const auto dims = static_cast<size_t>(input.dim() - 2);
  if (o.size()) return {for_each_dimension("size", *o.size(), dims), std::nullopt};
  const std::vector<double> factors = for_each_dimension("scale_factor", *o.scale_factor(), dims);
  if (!as_sizes) return {std::nullopt, factors};
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < dims; ++d) {
    sizes.push_back(static_cast<int64_t>(static_cast<double>(input.size(static_cast<int64_t>(d) + 2)) * factors[d]));
  }
  return {sizes, std::nullopt};
}

}  // namespace

Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& o) {
  RUSH_CHECK_VALUE(input.dim() >= 3 && input.dim() <= 5, "interpolate: expected 3 to 5 dimensions, got shape ",
                   input.sizes());
  const auto is = [&](auto choice) { return enumtype::holds<decltype(choice)>(o.mode()); };
  const bool smooth = is(kLinear) || is(kBilinear) || is(kBicubic) || is(kTrilinear);
  RUSH_CHECK_VALUE(smooth || !o.align_corners(),
                   "interpolate: align_corners goes with kLinear, kBilinear, kBicubic and ", "kTrilinear only, got ",
                   enumtype::get_enum_name(o.mode()));
  RUSH_CHECK_VALUE(!o.antialias() || ((is(kBilinear) || is(kBicubic)) && input.dim() == 4),
                   "interpolate: antialias goes with kBilinear and kBicubic on 4 dimensions only, got ",
                   enumtype::get_enum_name(o.mode()), " and shape ", input.sizes());
  const Target to = target_of(input, o, is(kArea) || o.recompute_scale_factor().value_or(false));
  OptionalIntArrayRef sizes;
  if (to.sizes) sizes = IntArrayRef(*to.sizes);
  OptionalScales factors;
  if (to.factors) factors = ArrayRef<double>(*to.factors);

  const int64_t dim = input.dim();
  const bool align = o.align_corners().value_or(false);
  if (is(kNearest) && dim == 3) return upsample_nearest1d(input, sizes, factors);
  if (is(kNearest) && dim == 4) return upsample_nearest2d(input, sizes, factors);
  if (is(kNearest)) return upsample_nearest3d(input, sizes, factors);
  if (is(kNearestExact) && dim == 3) return _upsample_nearest_exact1d(input, sizes, factors);
  if (is(kNearestExact) && dim == 4) return _upsample_nearest_exact2d(input, sizes, factors);
  if (is(kNearestExact)) return _upsample_nearest_exact3d(input, sizes, factors);
  if (is(kArea) && dim == 3) return adaptive_avg_pool1d(input, *sizes);
  if (is(kArea) && dim == 4) return adaptive_avg_pool2d(input, *sizes);
  if (is(kArea)) return adaptive_avg_pool3d(input, *sizes);
  if (is(kLinear) && dim == 3) return upsample_linear1d(input, sizes, align, factors);
  if (is(kBilinear) && o.antialias()) return _upsample_bilinear2d_aa(input, sizes, align, factors);
  if (is(kBicubic) && o.antialias()) return _upsample_bicubic2d_aa(input, sizes, align, factors);
  if (is(kBilinear) && dim == 4) return upsample_bilinear2d(input, sizes, align, factors);
  if (is(kBicubic) && dim == 4) return upsample_bicubic2d(input, sizes, align, factors);
  RUSH_CHECK_VALUE(is(kTrilinear) && dim == 5, "interpolate: ", enumtype::get_enum_name(o.mode()),
                   " is not for an input of shape ", input.sizes());
  return upsample_trilinear3d(input, sizes, align, factors);
}

Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& o) {
  return rush::pixel_shuffle(input, o.upscale_factor());
}

Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& o) {
  return rush::pixel_unshuffle(input, o.downscale_factor());
}

Tensor channel_shuffle(const Tensor& input, const ChannelShuffleFuncOptions& o) {
  return rush::channel_shuffle(input, o.groups());
}

}  // namespace rush::nn::functional
