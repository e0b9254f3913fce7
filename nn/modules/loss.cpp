#include "nn/modules/loss.h"

#include <ostream>

#include "nn/functional/loss.h"

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

}  // namespace

#define RUSH_LOSS_BODY(Name, function)                                    \
  void Name##Impl::reset() { register_weights(*this, options); }          \
  Tensor Name##Impl::forward(const Tensor& input, const Tensor& target) { \
    return functional::function(input, target, options);                  \
  }                                                                       \
  void Name##Impl::pretty_print(std::ostream& stream) const { stream << "rush::nn::" #Name "()"; }
RUSH_FORALL_LOSSES(RUSH_LOSS_BODY)

}  // namespace rush::nn
