#include "nn/functional/pool.h"

#include "core/ops/nn/fractional_pool.h"
#include "core/ops/nn/pool.h"
#include "core/ops/pointwise/activation.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/random/random_factories.h"

namespace rush::nn::functional {

#define RUSH_MAX_POOL(D)                                                                                               \
  std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input, const MaxPool##D##dFuncOptions& o) {     \
    return rush::max_pool##D##d_with_indices(input, o.kernel_size().ref(), o.stride().ref(), o.padding().ref(),        \
                                             o.dilation().ref(), o.ceil_mode());                                       \
  }                                                                                                                    \
  Tensor max_pool##D##d(const Tensor& input, const MaxPool##D##dFuncOptions& o) {                                      \
    return rush::max_pool##D##d(input, o.kernel_size().ref(), o.stride().ref(), o.padding().ref(), o.dilation().ref(), \
                                o.ceil_mode());                                                                        \
  }
RUSH_MAX_POOL(1)
RUSH_MAX_POOL(2)
RUSH_MAX_POOL(3)
#undef RUSH_MAX_POOL

Tensor avg_pool1d(const Tensor& input, const AvgPool1dFuncOptions& o) {
  return rush::avg_pool1d(input, o.kernel_size().ref(), o.stride().ref(), o.padding().ref(), o.ceil_mode(),
                          o.count_include_pad());
}
Tensor avg_pool2d(const Tensor& input, const AvgPool2dFuncOptions& o) {
  return rush::avg_pool2d(input, o.kernel_size().ref(), o.stride().ref(), o.padding().ref(), o.ceil_mode(),
                          o.count_include_pad(), o.divisor_override());
}
Tensor avg_pool3d(const Tensor& input, const AvgPool3dFuncOptions& o) {
  return rush::avg_pool3d(input, o.kernel_size().ref(), o.stride().ref(), o.padding().ref(), o.ceil_mode(),
                          o.count_include_pad(), o.divisor_override());
}

#define RUSH_LP_POOL(D)                                                                                         \
  Tensor lp_pool##D##d(const Tensor& input, const LPPool##D##dFuncOptions& o) {                                 \
    int64_t elements = 1;                                                                                       \
    for (const int64_t size : o.kernel_size()) elements *= size;                                                \
    const auto windows = AvgPool##D##dFuncOptions(o.kernel_size()).stride(o.stride()).ceil_mode(o.ceil_mode()); \
    const Tensor means = avg_pool##D##d(input.pow(o.norm_type()), windows);                                     \
    return (means.sign() * rush::relu(means.abs()) * elements).pow(1 / o.norm_type());                          \
  }
RUSH_LP_POOL(1)
RUSH_LP_POOL(2)
RUSH_LP_POOL(3)
#undef RUSH_LP_POOL

// Sizes left out are the input's.
template <size_t D>
static DimVector output_sizes(const Tensor& input, const ExpandingArrayWithOptionalElem<D>& asked) {
  RUSH_CHECK_VALUE(input.dim() > static_cast<int64_t>(D), "adaptive pooling of ", D, " dimensions: expected at least ",
                   D + 1, " dimensions, got shape ", input.sizes());
  DimVector sizes;
  for (size_t d = 0; d < D; ++d) {
    sizes.push_back(asked[d].value_or(input.size(static_cast<int64_t>(d) - static_cast<int64_t>(D))));
  }
  return sizes;
}

Tensor adaptive_avg_pool1d(const Tensor& input, const AdaptiveAvgPool1dFuncOptions& o) {
  return rush::adaptive_avg_pool1d(input, o.output_size().ref());
}
Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dFuncOptions& o) {
  return rush::adaptive_avg_pool2d(input, output_sizes(input, o.output_size()));
}
Tensor adaptive_avg_pool3d(const Tensor& input, const AdaptiveAvgPool3dFuncOptions& o) {
  return rush::adaptive_avg_pool3d(input, output_sizes(input, o.output_size()));
}

std::tuple<Tensor, Tensor> adaptive_max_pool1d_with_indices(const Tensor& input,
                                                            const AdaptiveMaxPool1dFuncOptions& o) {
  return rush::adaptive_max_pool1d(input, o.output_size().ref());
}
std::tuple<Tensor, Tensor> adaptive_max_pool2d_with_indices(const Tensor& input,
                                                            const AdaptiveMaxPool2dFuncOptions& o) {
  return rush::adaptive_max_pool2d(input, output_sizes(input, o.output_size()));
}
std::tuple<Tensor, Tensor> adaptive_max_pool3d_with_indices(const Tensor& input,
                                                            const AdaptiveMaxPool3dFuncOptions& o) {
  return rush::adaptive_max_pool3d(input, output_sizes(input, o.output_size()));
}

namespace {

template <size_t D>
std::tuple<Tensor, Tensor> fractional_max_pool(const Tensor& input, const FractionalMaxPoolOptions<D>& o) {
  constexpr auto dims = static_cast<int64_t>(D);
  RUSH_CHECK_VALUE(input.dim() == dims + 1 || input.dim() == dims + 2, "fractional_max_pool", D, "d: expected ",
                   dims + 1, " or ", dims + 2, " dimensions, got shape ", input.sizes());
  RUSH_CHECK_VALUE(o.output_size().has_value() != o.output_ratio().has_value(), "fractional_max_pool", D,
                   "d: give either output_size or output_ratio");
  DimVector sizes;
  for (size_t d = 0; d < D; ++d) {
    const auto whole = static_cast<double>(input.size(static_cast<int64_t>(d) - dims));
    sizes.push_back(o.output_size() ? (*o.output_size())[d] : static_cast<int64_t>(whole * (*o.output_ratio())[d]));
  }
  Tensor samples = o._random_samples();
  if (!samples.defined()) {
    const int64_t batch = input.dim() == dims + 2 ? input.size(0) : 1;
    samples = rand({batch, input.size(-dims - 1), dims}, input.options().requires_grad(false));
  }
  constexpr auto pool = D == 2 ? rush::fractional_max_pool2d : rush::fractional_max_pool3d;
  return pool(input, o.kernel_size().ref(), sizes, samples);
}

// The sizes to unpool to. Those given may be any that are less than a stride away from the default.
template <size_t D>
DimVector unpooled_sizes(const Tensor& input, const MaxUnpoolFuncOptions<D>& o) {
  constexpr auto dims = static_cast<int64_t>(D);
  RUSH_CHECK_VALUE(input.dim() == dims + 1 || input.dim() == dims + 2, "max_unpool", D, "d: expected ", dims + 1,
                   " or ", dims + 2, " dimensions, got shape ", input.sizes());
  DimVector sizes;
  for (size_t d = 0; d < D; ++d) {
    const int64_t pooled = input.size(static_cast<int64_t>(d) - dims);
    sizes.push_back((pooled - 1) * o.stride()[d] + o.kernel_size()[d] - 2 * o.padding()[d]);
  }
  if (!o.output_size()) return sizes;
  const std::vector<int64_t>& given = *o.output_size();
  RUSH_CHECK_VALUE(given.size() == D || given.size() == D + 2, "max_unpool", D, "d: expected an output_size of ", D,
                   " or ", D + 2, " numbers, got ", given);
  for (size_t d = 0; d < D; ++d) {
    const int64_t size = given[given.size() - D + d], least = sizes[d] - o.stride()[d], most = sizes[d] + o.stride()[d];
    RUSH_CHECK_VALUE(size > least && size < most, "max_unpool", D, "d: output_size must be between ", least, " and ",
                     most, " in dimension ", d, ", got ", given);
    sizes[d] = size;
  }
  return sizes;
}

}  // namespace

std::tuple<Tensor, Tensor> fractional_max_pool2d_with_indices(const Tensor& input,
                                                              const FractionalMaxPool2dFuncOptions& o) {
  return fractional_max_pool(input, o);
}
std::tuple<Tensor, Tensor> fractional_max_pool3d_with_indices(const Tensor& input,
                                                              const FractionalMaxPool3dFuncOptions& o) {
  return fractional_max_pool(input, o);
}

#define RUSH_WITHOUT_INDICES(function, Options) \
  Tensor function(const Tensor& input, const Options& o) { return std::get<0>(function##_with_indices(input, o)); }
RUSH_WITHOUT_INDICES(adaptive_max_pool1d, AdaptiveMaxPool1dFuncOptions)
RUSH_WITHOUT_INDICES(adaptive_max_pool2d, AdaptiveMaxPool2dFuncOptions)
RUSH_WITHOUT_INDICES(adaptive_max_pool3d, AdaptiveMaxPool3dFuncOptions)
RUSH_WITHOUT_INDICES(fractional_max_pool2d, FractionalMaxPool2dFuncOptions)
RUSH_WITHOUT_INDICES(fractional_max_pool3d, FractionalMaxPool3dFuncOptions)
#undef RUSH_WITHOUT_INDICES

Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dFuncOptions& o) {
  DimVector sizes = unpooled_sizes(input, o);
  sizes.push_back(1);
  return rush::max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), sizes).squeeze(-1);
}
Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dFuncOptions& o) {
  return rush::max_unpool2d(input, indices, unpooled_sizes(input, o));
}
Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dFuncOptions& o) {
  return rush::max_unpool3d(input, indices, unpooled_sizes(input, o), o.stride().ref(), o.padding().ref());
}

}  // namespace rush::nn::functional
