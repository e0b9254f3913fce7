#include "nn/functional/pool.h"

#include "core/ops/activation.h"
#include "core/ops/binary.h"
#include "core/ops/pool.h"

namespace rush::nn::functional {

#define RUSH_MAX_POOL(D)                                                                                               \
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
    return (means.sign() * relu(means.abs()) * elements).pow(1 / o.norm_type());                                \
  }
RUSH_LP_POOL(1)
RUSH_LP_POOL(2)
RUSH_LP_POOL(3)
#undef RUSH_LP_POOL

namespace {

// Sizes left out are the input's.
template <size_t D>
DimVector output_sizes(const Tensor& input, const ExpandingArrayWithOptionalElem<D>& asked) {
  RUSH_CHECK_VALUE(input.dim() > static_cast<int64_t>(D), "adaptive pooling of ", D, " dimensions: expected at least ",
                   D + 1, " dimensions, got shape ", input.sizes());
  DimVector sizes;
  for (size_t d = 0; d < D; ++d) {
    sizes.push_back(asked[d].value_or(input.size(static_cast<int64_t>(d) - static_cast<int64_t>(D))));
  }
  return sizes;
}

}  // namespace

Tensor adaptive_avg_pool1d(const Tensor& input, const AdaptiveAvgPool1dFuncOptions& o) {
  return rush::adaptive_avg_pool1d(input, o.output_size().ref());
}
Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dFuncOptions& o) {
  return rush::adaptive_avg_pool2d(input, output_sizes(input, o.output_size()));
}
Tensor adaptive_avg_pool3d(const Tensor& input, const AdaptiveAvgPool3dFuncOptions& o) {
  return rush::adaptive_avg_pool3d(input, output_sizes(input, o.output_size()));
}

Tensor adaptive_max_pool1d(const Tensor& input, const AdaptiveMaxPool1dFuncOptions& o) {
  return std::get<0>(rush::adaptive_max_pool1d(input, o.output_size().ref()));
}
Tensor adaptive_max_pool2d(const Tensor& input, const AdaptiveMaxPool2dFuncOptions& o) {
  return std::get<0>(rush::adaptive_max_pool2d(input, output_sizes(input, o.output_size())));
}
Tensor adaptive_max_pool3d(const Tensor& input, const AdaptiveMaxPool3dFuncOptions& o) {
  return std::get<0>(rush::adaptive_max_pool3d(input, output_sizes(input, o.output_size())));
}

}  // namespace rush::nn::functional
