#include "nn/modules/loss.h"

#include "nn/functional/loss.h"
#include "nn/module_text.h"

namespace rush::nn {

namespace {

// Makes buffers of the tensors that the options hold, with handles of their own: a clone shares nothing.
template <class Options>
void register_weights(Module& module, Options& options) {
  const auto own = [&](const char* name, Tensor& weight) {
    weight = module.register_buffer(name, weight.defined() ? weight.detach() : weight);
  };
  if constexpr (requires { options.weight(); }) own("weight", options.weight());
  if constexpr (requires { options.pos_weight(); }) own("pos_weight", options.pos_weight());
}

// What follows the name when a module is printed.
template <class Options>
detail::ModuleText describe(const Options&) {
  return "()";
}
detail::ModuleText describe(const SmoothL1LossOptions&) { return ""; }
detail::ModuleText describe(const HuberLossOptions&) { return ""; }
detail::ModuleText describe(const HingeEmbeddingLossOptions& o) {
  return detail::options_text("(margin=", o.margin(), ")");
}
detail::ModuleText describe(const CosineEmbeddingLossOptions& o) {
  return detail::options_text("(margin=", o.margin(), ")");
}
detail::ModuleText describe(const MultiMarginLossOptions& o) {
  return detail::options_text("(p=", o.p(), ", margin=", o.margin(),
                              ", weight=", o.weight().defined() ? to_string(o.weight()) : "[ Tensor (undefined) ]",
                              ", reduction=", enumtype::get_enum_name(o.reduction()), ")");
}
detail::ModuleText describe(const TripletMarginLossOptions& o) {
  return detail::options_text("(margin=", o.margin(), ", p=", o.p(), ", eps=", o.eps(), ", swap=", o.swap(), ")");
}
detail::ModuleText describe(const TripletMarginWithDistanceLossOptions& o) {
  return detail::options_text("(margin=", o.margin(), ", swap=", o.swap(), ")");
}

}  // namespace

#define RUSH_LOSS_PRINT(Name) \
  void Name##Impl::pretty_print(std::ostream& stream) const { stream << detail::module_text(#Name, describe(options)); }
#define RUSH_LOSS_BODY(Name, function)                                    \
  void Name##Impl::reset() { register_weights(*this, options); }          \
  Tensor Name##Impl::forward(const Tensor& input, const Tensor& target) { \
    const ModuleScope scope(*this);                                       \
    return functional::function(input, target, options);                  \
  }                                                                       \
  RUSH_LOSS_PRINT(Name)
RUSH_FORALL_LOSSES(RUSH_LOSS_BODY)

#define RUSH_TRIPLE_LOSS_BODY(Name, function)                                                  \
  Tensor Name##Impl::forward(const Tensor& first, const Tensor& second, const Tensor& third) { \
    const ModuleScope scope(*this);                                                            \
    return functional::function(first, second, third, options);                                \
  }                                                                                            \
  RUSH_LOSS_PRINT(Name)
RUSH_FORALL_TRIPLE_LOSSES(RUSH_TRIPLE_LOSS_BODY)

Tensor CTCLossImpl::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                            const Tensor& target_lengths) {
  const ModuleScope scope(*this);
  return functional::ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
}
RUSH_LOSS_PRINT(CTCLoss)

}  // namespace rush::nn
