#include "optim/radam.h"

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "core/ops/optim.h"
#include "optim/device_numbers.h"
#include "optim/step_lists.h"

namespace rush::optim {

void RAdamOptions::check() const {
  check_not_negative("RAdam", "lr", lr());
  check_not_negative("RAdam", "eps", eps());
  check_betas("RAdam", betas());
  check_not_negative("RAdam", "weight_decay", weight_decay());
}

std::vector<double> RAdamOptions::device_numbers() const {
  return {lr(), std::get<0>(betas()), std::get<1>(betas()), eps(), weight_decay()};
}

void RAdamOptions::visit(StateFields& fields) {
  fields("lr", lr_);
  fields("betas", betas_);
  fields("eps", eps_);
  fields("weight_decay", weight_decay_);
  fields("decoupled_weight_decay", decoupled_weight_decay_);
  fields("maximize", maximize_);
}

void RAdam::visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                        const OptimizerOptions&) const {
  auto& state = state_in<RAdamParamState>(slot);
  read_step_counter(state);
  fields("step", state.step());
  fields.tensor("exp_avg", state.exp_avg(), param);
  fields.tensor("exp_avg_sq", state.exp_avg_sq(), param);
}

Tensor RAdam::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (size_t group = 0; group < param_groups_.size(); ++group) step_group(group);
  return loss;
}

void RAdam::step_group(size_t group) {
  const auto& o = static_cast<const RAdamOptions&>(param_groups_[group].options());
  StepLists lists;
  for (const Tensor& param : param_groups_[group].params()) {
    if (!param.grad().defined()) continue;
    auto& state = state_in<RAdamParamState>(state_[param.impl()]);
    if (!state.exp_avg().defined()) {
      check_state_can_be_made();
      state.exp_avg(zeros_like(param)).exp_avg_sq(zeros_like(param));
    }
    count_step(state, param, o.capturable());
    if (o.capturable()) {
      lists.add(param, {state.exp_avg(), state.exp_avg_sq()}, state.step_counter());
    } else {
      lists.add(param, {state.exp_avg(), state.exp_avg_sq()}, state.step());
    }
  }
  const auto [beta1, beta2] = o.betas();
  const RAdamStep step{o.lr(), beta1, beta2, o.eps(), o.weight_decay(), o.decoupled_weight_decay(), o.maximize()};
  lists.run([&](DeviceType device, const StepLists::Batch& batch) {
    if (o.capturable()) {
      const Device where = batch.params[0].device();
      kernels::capturable_radam(device, batch.params, batch.grads, batch.states[0], batch.states[1],
                                batch.step_counters, numbers_on_device(group, where), found_inf_on(where), step);
      note_captured_step(batch.params, {batch.states[0], batch.states[1], batch.step_counters});
    } else {
      kernels::fused_radam(device, batch.params, batch.grads, batch.states[0], batch.states[1], batch.steps, step);
    }
  });
}

}  // namespace rush::optim
