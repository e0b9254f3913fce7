// Pooling: modules without parameters that reduce windows of the last dimensions.
#pragma once
#include "nn/cloneable.h"
#include "nn/options/pool.h"

namespace rush::nn {

// clang-format off
#define RUSH_FORALL_POOLS(X)                                                                       \
  X(MaxPool1d, max_pool1d) X(MaxPool2d, max_pool2d) X(MaxPool3d, max_pool3d)                       \
  X(AvgPool1d, avg_pool1d) X(AvgPool2d, avg_pool2d) X(AvgPool3d, avg_pool3d)                       \
  X(AdaptiveAvgPool1d, adaptive_avg_pool1d) X(AdaptiveAvgPool2d, adaptive_avg_pool2d)              \
  X(AdaptiveAvgPool3d, adaptive_avg_pool3d) X(AdaptiveMaxPool1d, adaptive_max_pool1d)              \
  X(AdaptiveMaxPool2d, adaptive_max_pool2d) X(AdaptiveMaxPool3d, adaptive_max_pool3d) \
  X(LPPool1d, lp_pool1d) X(LPPool2d, lp_pool2d) X(LPPool3d, lp_pool3d)
// clang-format on

// torch.nn.MaxPool1d to LPPool3d, on (N, C, spatial...) or (C, spatial...).
#define RUSH_POOL_MODULE(Name, function)                                    \
  class Name##Impl : public Cloneable<Name##Impl> {                         \
   public:                                                                  \
    explicit Name##Impl(const Name##Options& options) : options(options) {} \
    void reset() override {}                                                \
    void pretty_print(std::ostream& stream) const override;                 \
    Tensor forward(const Tensor& input);                                    \
                                                                            \
    Name##Options options;                                                  \
  };                                                                        \
  RUSH_MODULE(Name);
RUSH_FORALL_POOLS(RUSH_POOL_MODULE)
#undef RUSH_POOL_MODULE

}  // namespace rush::nn
