#include "nn/modules/activation.h"

#include "core/ops/factory/factories.h"
#include "nn/functional/activation.h"
#include "nn/init.h"
#include "nn/module_text.h"

namespace rush::nn {

namespace {

// What stands between the brackets when a module is printed: its options, "inplace" only when it is on.
detail::ModuleText inplace(bool on, const char* separator = ", ") {
  return on ? detail::options_text(separator, "inplace=", true) : "";
}
detail::ModuleText describe(const ReLUOptions& o) { return inplace(o.inplace(), ""); }
detail::ModuleText describe(const ELUOptions& o) {
  return detail::options_text("alpha=", o.alpha(), inplace(o.inplace()));
}
detail::ModuleText describe(const LeakyReLUOptions& o) {
  return detail::options_text("negative_slope=", o.negative_slope(), inplace(o.inplace()));
}
detail::ModuleText describe(const GELUOptions&) { return ""; }
detail::ModuleText describe(const HardtanhOptions& o) {
  return detail::options_text("min_val=", o.min_val(), ", max_val=", o.max_val(), inplace(o.inplace()));
}
detail::ModuleText describe(const RReLUOptions& o) {
  return detail::options_text("lower=", o.lower(), ", upper=", o.upper(), inplace(o.inplace()));
}
detail::ModuleText describe(const ThresholdOptions& o) {
  return detail::options_text("threshold=", o.threshold(), ", value=", o.value(), inplace(o.inplace()));
}
detail::ModuleText describe(const SoftplusOptions& o) {
  return detail::options_text("beta=", o.beta(), ", threshold=", o.threshold());
}
detail::ModuleText describe(const HardshrinkOptions& o) { return detail::options_text(o.lambda()); }
detail::ModuleText describe(const GLUOptions& o) { return detail::options_text("dim=", o.dim()); }
detail::ModuleText describe(const SoftmaxOptions& o) { return detail::options_text("dim=", o.dim()); }

}  // namespace

#define RUSH_PLAIN_ACTIVATION(Name, function)       \
  Tensor Name##Impl::forward(const Tensor& input) { \
    const ModuleScope scope(*this);                 \
    return functional::function(input);             \
  }                                                 \
  void Name##Impl::pretty_print(std::ostream& stream) const { stream << detail::module_text(#Name "()"); }
RUSH_FORALL_PLAIN_ACTIVATIONS(RUSH_PLAIN_ACTIVATION)
RUSH_FORALL_ACTIVATIONS(RUSH_OPTIONS_MODULE_BODY)
RUSH_OPTIONS_MODULE_BODY(Threshold, threshold)

#define RUSH_ACTIVATION(Name, function)                                               \
  Tensor Name##Impl::forward(const Tensor& input) {                                   \
    const ModuleScope scope(*this);                                                   \
    return functional::function(input, functional::Name##FuncOptions(options.dim())); \
  }                                                                                   \
  RUSH_PRINT_OPTIONS(Name)
RUSH_FORALL_DIMENSION_ACTIVATIONS(RUSH_ACTIVATION)

Tensor RReLUImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  const auto call = functional::RReLUFuncOptions()
                        .lower(options.lower())
                        .upper(options.upper())
                        .training(is_training())
                        .inplace(options.inplace());
  return functional::rrelu(input, call);
}
RUSH_PRINT_OPTIONS(RReLU)

Tensor Softmax2dImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  RUSH_CHECK_VALUE(input.dim() == 3 || input.dim() == 4, "Softmax2d: expected 3 or 4 dimensions, got shape ",
                   input.sizes());
  return functional::softmax(input, -3);
}
void Softmax2dImpl::pretty_print(std::ostream& stream) const { stream << detail::module_text("Softmax2d()"); }

void PReLUImpl::reset() {
  weight = register_parameter("weight", empty(options.num_parameters()));
  init::constant_(weight, options.init());
}
Tensor PReLUImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return functional::prelu(input, weight);
}
void PReLUImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("PReLU(num_parameters=", options.num_parameters(), ")");
}

}  // namespace rush::nn
