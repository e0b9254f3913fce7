#include "nn/modules/activation.h"

#include <ostream>

#include "nn/functional/activation.h"

namespace rush::nn {

namespace {

// What stands between the brackets when a module is printed: its options, "inplace" only when it is on.
std::string inplace(bool on, const char* separator = ", ") { return on ? str(separator, "inplace=true") : ""; }
std::string describe(const ReLUOptions& o) { return inplace(o.inplace(), ""); }
std::string describe(const ELUOptions& o) { return str("alpha=", o.alpha(), inplace(o.inplace())); }
std::string describe(const LeakyReLUOptions& o) {
  return str("negative_slope=", o.negative_slope(), inplace(o.inplace()));
}
std::string describe(const GELUOptions& o) { return str("approximate='", o.approximate(), "'"); }
std::string describe(const HardtanhOptions& o) {
  return str("min_val=", o.min_val(), ", max_val=", o.max_val(), inplace(o.inplace()));
}
std::string describe(const SoftplusOptions& o) { return str("beta=", o.beta(), ", threshold=", o.threshold()); }
std::string describe(const GLUOptions& o) { return str("dim=", o.dim()); }
std::string describe(const SoftmaxOptions& o) { return str("dim=", o.dim()); }

}  // namespace

#define RUSH_PLAIN_ACTIVATION(Name, function)                                             \
  Tensor Name##Impl::forward(const Tensor& input) { return functional::function(input); } \
  void Name##Impl::pretty_print(std::ostream& stream) const { stream << "rush::nn::" #Name "()"; }
#define RUSH_ACTIVATION(Name, function)                                                            \
  Tensor Name##Impl::forward(const Tensor& input) { return functional::function(input, options); } \
  void Name##Impl::pretty_print(std::ostream& stream) const {                                      \
    stream << "rush::nn::" #Name "(" << describe(options) << ")";                                  \
  }
RUSH_FORALL_PLAIN_ACTIVATIONS(RUSH_PLAIN_ACTIVATION)
RUSH_FORALL_ACTIVATIONS(RUSH_ACTIVATION)

#undef RUSH_ACTIVATION
#define RUSH_ACTIVATION(Name, function)                                               \
  Tensor Name##Impl::forward(const Tensor& input) {                                   \
    return functional::function(input, functional::Name##FuncOptions(options.dim())); \
  }                                                                                   \
  void Name##Impl::pretty_print(std::ostream& stream) const {                         \
    stream << "rush::nn::" #Name "(" << describe(options) << ")";                     \
  }
RUSH_FORALL_DIMENSION_ACTIVATIONS(RUSH_ACTIVATION)

}  // namespace rush::nn
