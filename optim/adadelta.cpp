#include "optim/adadelta.h"

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "core/ops/optim.h"
#include "optim/device_numbers.h"
#include "optim/step_lists.h"

namespace rush::optim {

void AdadeltaOptions::check() const {
  check_not_negative("Adadelta", "lr", lr());
  RUSH_CHECK_VALUE(rho() >= 0 && rho() <= 1, "Adadelta: rho must be in [0, 1], got ", rho());
  check_not_negative("Adadelta", "eps", eps());
  check_not_negative("Adadelta", "weight_decay", weight_decay());
}

void AdadeltaOptions::visit(StateFields& fields) {
  fields("lr", lr_);
  fields("rho", rho_);
  fields("eps", eps_);
  fields("weight_decay", weight_decay_);
  fields("maximize", maximize_);
}

void Adadelta::visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                           const OptimizerOptions&) const {
  auto& state = state_in<AdadeltaParamState>(slot);
  read_step_counter(state);
  fields("step", state.step());
  fields.tensor("square_avg", state.square_avg(), param);
  fields.tensor("acc_delta", state.acc_delta(), param);
}

Tensor Adadelta::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (size_t group = 0; group < param_groups_.size(); ++group) step_group(group);
  return loss;
}

void Adadelta::step_group(size_t group) {
  const auto& o = static_cast<const AdadeltaOptions&>(param_groups_[group].options());
  StepLists lists;
  for (const Tensor& param : param_groups_[group].params()) {
    if (!param.grad().defined()) continue;
    auto& state = state_in<AdadeltaParamState>(state_[param.impl()]);
    if (!state.square_avg().defined()) {
      check_state_can_be_made();
      state.square_avg(zeros_like(param)).acc_delta(zeros_like(param));
    }
    count_step(state, param, o.capturable());
    if (o.capturable()) {
      lists.add(param, {state.square_avg(), state.acc_delta()}, state.step_counter());
    } else {
      lists.add(param, {state.square_avg(), state.acc_delta()});
    }
  }
  const AdadeltaStep step{o.lr(), o.rho(), o.eps(), o.weight_decay(), o.maximize()};
  lists.run([&](DeviceType device, const StepLists::Batch& batch) {
    if (o.capturable()) {
      const Device where = batch.params[0].device();
      kernels::capturable_adadelta(device, batch.params, batch.grads, batch.states[0], batch.states[1],
                                   batch.step_counters, numbers_on_device(group, where), found_inf_on(where), step);
      note_captured_step(batch.params, {batch.states[0], batch.states[1], batch.step_counters});
    } else {
      kernels::fused_adadelta(device, batch.params, batch.grads, batch.states[0], batch.states[1], step);
    }
  });
}

}  // namespace rush::optim
