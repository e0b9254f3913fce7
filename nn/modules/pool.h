// Pooling: modules without parameters that reduce windows of the last dimensions.
#pragma once
#include "nn/modules/options_module.h"
#include "nn/options/pool.h"

namespace rush::nn {

// Name, function.
// clang-format off
#define RUSH_FORALL_POOLS(X)                                                          \
  X(AvgPool1d, avg_pool1d) X(AvgPool2d, avg_pool2d) X(AvgPool3d, avg_pool3d)          \
  X(AdaptiveAvgPool1d, adaptive_avg_pool1d) X(AdaptiveAvgPool2d, adaptive_avg_pool2d) \
  X(AdaptiveAvgPool3d, adaptive_avg_pool3d)                                           \
  X(LPPool1d, lp_pool1d) X(LPPool2d, lp_pool2d) X(LPPool3d, lp_pool3d)
// As above, with function_with_indices.
#define RUSH_FORALL_MAX_POOLS(X)                                                      \
  X(MaxPool1d, max_pool1d) X(MaxPool2d, max_pool2d) X(MaxPool3d, max_pool3d)          \
  X(AdaptiveMaxPool1d, adaptive_max_pool1d) X(AdaptiveMaxPool2d, adaptive_max_pool2d) \
  X(AdaptiveMaxPool3d, adaptive_max_pool3d)
// clang-format on

// The bases of the poolings, by libtorch's names, for modules that a program derives from them.
RUSH_OPTIONS_BASE(AvgPool)
RUSH_OPTIONS_BASE(MaxPool)
RUSH_OPTIONS_BASE(LPPool)
RUSH_OPTIONS_BASE(MaxUnpool)
template <size_t D, class Size, class Derived>
using AdaptiveAvgPoolImpl = OptionsModule<Derived, AdaptiveAvgPoolOptions<Size>>;
template <size_t D, class Size, class Derived>
using AdaptiveMaxPoolImpl = OptionsModule<Derived, AdaptiveMaxPoolOptions<Size>>;

// torch.nn.AvgPool1d to LPPool3d, on (N, C, spatial...) or (C, spatial...).
#define RUSH_POOL_MODULE(Name, function) RUSH_OPTIONS_MODULE(Name)
RUSH_FORALL_POOLS(RUSH_POOL_MODULE)
#undef RUSH_POOL_MODULE
// torch.nn.MaxPool1d to AdaptiveMaxPool3d; forward_with_indices is what return_indices=True is in Python.
#define RUSH_POOL_MODULE(Name, function) \
  RUSH_OPTIONS_MODULE(Name, std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);)
RUSH_FORALL_MAX_POOLS(RUSH_POOL_MODULE)
#undef RUSH_POOL_MODULE

// torch.nn.FractionalMaxPool2d and 3d. Random samples that the options hold are a buffer. Throws ValueError unless
// either the output's size is given or its ratio to the input's, between 0 and 1.
#define RUSH_FRACTIONAL_POOL_MODULE(Name)                                                         \
  class Name##Impl : public Cloneable<Name##Impl> {                                               \
   public:                                                                                        \
    explicit Name##Impl(const Name##Options& options) : options(options) { Name##Impl::reset(); } \
    void reset() override;                                                                        \
    void pretty_print(std::ostream& stream) const override;                                       \
    Tensor forward(const Tensor& input);                                                          \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);                         \
                                                                                                  \
    Name##Options options;                                                                        \
    Tensor _random_samples;                                                                       \
                                                                                                  \
   private:                                                                                       \
    Name##Options call_options() const;                                                           \
  };                                                                                              \
  RUSH_MODULE(Name)
RUSH_FRACTIONAL_POOL_MODULE(FractionalMaxPool2d);
RUSH_FRACTIONAL_POOL_MODULE(FractionalMaxPool3d);
#undef RUSH_FRACTIONAL_POOL_MODULE

// torch.nn.MaxUnpool1d to 3d: the inverse of MaxPool's forward_with_indices, as far as there is one.
#define RUSH_UNPOOL_MODULE(Name)                                                      \
  RUSH_OPTIONS_MODULE_WITH(Name,                                                      \
                           Tensor forward(const Tensor& input, const Tensor& indices, \
                                          const std::optional<std::vector<int64_t>>& output_size = std::nullopt);)
RUSH_UNPOOL_MODULE(MaxUnpool1d)
RUSH_UNPOOL_MODULE(MaxUnpool2d)
RUSH_UNPOOL_MODULE(MaxUnpool3d)
#undef RUSH_UNPOOL_MODULE

}  // namespace rush::nn
