#include "nn/modules/pool.h"

#include <ostream>

#include "nn/functional/pool.h"

namespace rush::nn {

namespace {

template <size_t D>
std::string describe(const MaxPoolOptions<D>& o) {
  return str("kernel_size=", o.kernel_size().ref(), ", stride=", o.stride().ref(), ", padding=", o.padding().ref(),
             ", dilation=", o.dilation().ref(), ", ceil_mode=", o.ceil_mode());
}

template <size_t D>
std::string describe(const AvgPoolOptions<D>& o) {
  return str("kernel_size=", o.kernel_size().ref(), ", stride=", o.stride().ref(), ", padding=", o.padding().ref());
}

template <size_t D>
std::string describe(const LPPoolOptions<D>& o) {
  return str("norm_type=", o.norm_type(), ", kernel_size=", o.kernel_size().ref(), ", stride=", o.stride().ref(),
             ", ceil_mode=", o.ceil_mode());
}

template <class Size>
std::string describe(const AdaptiveAvgPoolOptions<Size>& o) {
  std::vector<std::string> sizes;
  for (const std::optional<int64_t> size : o.output_size()) sizes.push_back(size ? str(*size) : "none");
  return str("output_size=", sizes);
}

}  // namespace

#define RUSH_POOL_BODY(Name, function)                                                             \
  Tensor Name##Impl::forward(const Tensor& input) { return functional::function(input, options); } \
  void Name##Impl::pretty_print(std::ostream& stream) const {                                      \
    stream << "rush::nn::" #Name "(" << describe(options) << ")";                                  \
  }
RUSH_FORALL_POOLS(RUSH_POOL_BODY)

}  // namespace rush::nn
