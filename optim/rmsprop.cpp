#include "optim/rmsprop.h"

#include "autograd/grad_mode.h"
#include "core/ops/optim.h"
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
  fields("step", state.step());
  fields.tensor("square_avg", state.square_avg(), param);
  fields.tensor("momentum_buffer", state.momentum_buffer(), param, o.momentum() > 0);
  fields.tensor("grad_avg", state.grad_avg(), param, o.centered());
}

Tensor RMSprop::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (const OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<const RMSpropOptions&>(group.options());
    const bool momentum = o.momentum() > 0;
    StepLists lists;
    for (const Tensor& param : group.params()) {
      if (!param.grad().defined()) continue;
      auto& state = state_in<RMSpropParamState>(state_[param.impl()]);
      if (!state.square_avg().defined()) state.square_avg(StepLists::zeros_like(param));
      if (momentum && !state.momentum_buffer().defined()) state.momentum_buffer(StepLists::zeros_like(param));
      if (o.centered() && !state.grad_avg().defined()) state.grad_avg(StepLists::zeros_like(param));
      state.step(state.step() + 1);
      // Of a state that these options do not use the kernel takes no notice; an undefined one stands for it.
      lists.add(param, {state.square_avg(), o.centered() ? state.grad_avg() : Tensor(),
                        momentum ? state.momentum_buffer() : Tensor()});
    }
    const RmsPropStep step{o.lr(), o.alpha(), o.eps(), o.weight_decay(), o.momentum(), o.centered(), o.maximize()};
    lists.run([&](DeviceType device, const StepLists::Batch& batch) {
      kernels::fused_rmsprop(device, batch.params, batch.grads, batch.states[0], batch.states[1], batch.states[2],
                             step);
    });
  }
  return loss;
}

}  // namespace rush::optim
