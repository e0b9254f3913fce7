#include "optim/rmsprop.h"

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "core/ops/optim.h"
#include "optim/device_numbers.h"
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
  for (size_t group = 0; group < param_groups_.size(); ++group) step_group(group);
  return loss;
}

void RMSprop::step_group(size_t group) {
  const auto& o = static_cast<const RMSpropOptions&>(param_groups_[group].options());
  const bool momentum = o.momentum() > 0;
  const auto need = [](Tensor& state, const Tensor& param) {
    if (state.defined()) return;
    check_state_can_be_made();
    state = zeros_like(param);
  };
  StepLists lists;
  for (const Tensor& param : param_groups_[group].params()) {
    if (!param.grad().defined()) continue;
    auto& state = state_in<RMSpropParamState>(state_[param.impl()]);
    need(state.square_avg(), param);
    if (momentum) need(state.momentum_buffer(), param);
    if (o.centered()) need(state.grad_avg(), param);
    count_step(state, param, o.capturable());
    // Of a state that these options do not use the kernel takes no notice; an undefined one stands for it.
    const Tensor grad_avg = o.centered() ? state.grad_avg() : Tensor();
    const Tensor buffer = momentum ? state.momentum_buffer() : Tensor();
    if (o.capturable()) {
      lists.add(param, {state.square_avg(), grad_avg, buffer}, state.step_counter());
    } else {
      lists.add(param, {state.square_avg(), grad_avg, buffer});
    }
  }
  const RmsPropStep step{o.lr(), o.alpha(), o.eps(), o.weight_decay(), o.momentum(), o.centered(), o.maximize()};
  lists.run([&](DeviceType device, const StepLists::Batch& batch) {
    const auto& states = batch.states;
    if (o.capturable()) {
      const Device where = batch.params[0].device();
      kernels::capturable_rmsprop(device, batch.params, batch.grads, states[0], states[1], states[2],
                                  batch.step_counters, numbers_on_device(group, where), found_inf_on(where), step);
      note_captured_step(batch.params, {states[0], states[1], states[2], batch.step_counters});
    } else {
      kernels::fused_rmsprop(device, batch.params, batch.grads, states[0], states[1], states[2], step);
    }
  });
}

}  // namespace rush::optim
