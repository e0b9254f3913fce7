#include "optim/rmsprop.h"

#include "autograd/grad_mode.h"
#include "optim/graphs/device_numbers.h"
#include "optim/step_lists.h"

namespace rush::optim {

void RMSpropOptions::check() const {
  check_not_negative("RMSprop", "lr", lr());
  check_not_negative("RMSprop", "alpha", alpha());
  check_not_negative("RMSprop", "eps", eps());
  check_not_negative("RMSprop", "weight_decay", weight_decay());
  check_not_negative("RMSprop", "momentum", momentum());
}

void RMSpropOptions::visit(StateFields& fields) {
  fields("lr", lr_);
  fields("alpha", alpha_);
  fields("eps", eps_);
  fields("weight_decay", weight_decay_);
  fields("momentum", momentum_);
  fields("centered", centered_);
  fields("maximize", maximize_);
}

void RMSprop::visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                          const OptimizerOptions& options) const {
  const auto& o = static_cast<const RMSpropOptions&>(options);
  auto& state = state_in<RMSpropParamState>(slot);
  read_step_counter(state);
  fields("step", state.step());
  fields.tensor("square_avg", state.square_avg(), param);
  fields.tensor("momentum_buffer", state.momentum_buffer(), param, o.momentum() > 0);
  fields.tensor("grad_avg", state.grad_avg(), param, o.centered());
}

Tensor RMSprop::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  StepLists lists("RMSprop", *this);
  for (size_t group = 0; group < param_groups_.size(); ++group) {
    const auto& o = static_cast<const RMSpropOptions&>(param_groups_[group].options());
    lists.gather<RMSpropParamState>(group, [&](RMSpropParamState& state) {
      return StepLists::StateTensors{{{"square_avg", &state.square_avg()},
                                      {"grad_avg", o.centered() ? &state.grad_avg() : nullptr},
                                      {"momentum_buffer", o.momentum() > 0 ? &state.momentum_buffer() : nullptr}}};
    });
  }
  lists.run(ops::rmsprop_step_, [&](const StepLists::Batch& batch) {
    const auto& o = static_cast<const RMSpropOptions&>(param_groups_[batch.group].options());
    return step_options(o.lr(), o.alpha(), o.eps(), o.weight_decay(), o.momentum(), o.centered(), o.maximize());
  });
  return loss;
}

}  // namespace rush::optim
