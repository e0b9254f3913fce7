#include "nn/modules/pool.h"

#include "nn/functional/pool.h"
#include "nn/module_text.h"

namespace rush::nn {

namespace {

template <size_t D>
detail::ModuleText describe(const MaxPoolOptions<D>& o) {
  return detail::options_text("kernel_size=", o.kernel_size(), ", stride=", o.stride(), ", padding=", o.padding(),
                              ", dilation=", o.dilation(), ", ceil_mode=", o.ceil_mode());
}

template <size_t D>
detail::ModuleText describe(const AvgPoolOptions<D>& o) {
  return detail::options_text("kernel_size=", o.kernel_size(), ", stride=", o.stride(), ", padding=", o.padding());
}

template <size_t D>
detail::ModuleText describe(const LPPoolOptions<D>& o) {
  return detail::options_text("norm_type=", o.norm_type(), ", kernel_size=", o.kernel_size(), ", stride=", o.stride(),
                              ", ceil_mode=", o.ceil_mode());
}

template <size_t D>
detail::ModuleText describe(const MaxUnpoolOptions<D>& o) {
  return detail::options_text("kernel_size=", o.kernel_size(), ", stride=", o.stride(), ", padding=", o.padding());
}

template <class Size>
detail::ModuleText describe(const AdaptiveAvgPoolOptions<Size>& o) {
  return detail::options_text("output_size=", o.output_size());
}

}  // namespace

RUSH_FORALL_POOLS(RUSH_OPTIONS_MODULE_BODY)
RUSH_FORALL_MAX_POOLS(RUSH_OPTIONS_MODULE_BODY)

#define RUSH_POOL_INDICES(Name, function)                                            \
  std::tuple<Tensor, Tensor> Name##Impl::forward_with_indices(const Tensor& input) { \
    const ModuleScope scope(*this);                                                  \
    return functional::function##_with_indices(input, options);                      \
  }
RUSH_FORALL_MAX_POOLS(RUSH_POOL_INDICES)

#define RUSH_FRACTIONAL_POOL_BODY(Name, function)                                                                    \
  void Name##Impl::reset() {                                                                                         \
    RUSH_CHECK_VALUE(options.output_size().has_value() != options.output_ratio().has_value(),                        \
                     #Name ": give either output_size or output_ratio");                                             \
    for (const double ratio : options.output_ratio().value_or(0.5)) {                                                \
      RUSH_CHECK_VALUE(ratio > 0 && ratio < 1, #Name ": output_ratio must be between 0 and 1, got ", ratio);         \
    }                                                                                                                \
    const Tensor given = options._random_samples();                                                                  \
    _random_samples = register_buffer("_random_samples", given.defined() ? given.detach() : given);                  \
  }                                                                                                                  \
  Name##Options Name##Impl::call_options() const { return Name##Options(options)._random_samples(_random_samples); } \
  Tensor Name##Impl::forward(const Tensor& input) {                                                                  \
    const ModuleScope scope(*this);                                                                                  \
    return functional::function(input, call_options());                                                              \
  }                                                                                                                  \
  std::tuple<Tensor, Tensor> Name##Impl::forward_with_indices(const Tensor& input) {                                 \
    const ModuleScope scope(*this);                                                                                  \
    return functional::function##_with_indices(input, call_options());                                               \
  }                                                                                                                  \
  void Name##Impl::pretty_print(std::ostream& stream) const { stream << detail::module_text(#Name "()"); }
RUSH_FRACTIONAL_POOL_BODY(FractionalMaxPool2d, fractional_max_pool2d)
RUSH_FRACTIONAL_POOL_BODY(FractionalMaxPool3d, fractional_max_pool3d)

#define RUSH_UNPOOL_BODY(D)                                                                     \
  Tensor MaxUnpool##D##dImpl::forward(const Tensor& input, const Tensor& indices,               \
                                      const std::optional<std::vector<int64_t>>& output_size) { \
    const ModuleScope scope(*this);                                                             \
    const auto call = functional::MaxUnpool##D##dFuncOptions(options.kernel_size())             \
                          .stride(options.stride())                                             \
                          .padding(options.padding())                                           \
                          .output_size(output_size);                                            \
    return functional::max_unpool##D##d(input, indices, call);                                  \
  }                                                                                             \
  RUSH_PRINT_OPTIONS(MaxUnpool##D##d)
RUSH_UNPOOL_BODY(1)
RUSH_UNPOOL_BODY(2)
RUSH_UNPOOL_BODY(3)

}  // namespace rush::nn
