#include "optim/adagrad.h"

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "core/ops/optim.h"
#include "optim/device_numbers.h"
#include "optim/real_view.h"
#include "optim/step_lists.h"

namespace rush::optim {

void AdagradOptions::check() const {
  check_not_negative("Adagrad", "lr", lr());
  check_not_negative("Adagrad", "lr_decay", lr_decay());
  check_not_negative("Adagrad", "weight_decay", weight_decay());
  check_not_negative("Adagrad", "initial_accumulator_value", initial_accumulator_value());
  check_not_negative("Adagrad", "eps", eps());
}

void AdagradOptions::visit(StateFields& fields) {
  fields("lr", lr_);
  fields("lr_decay", lr_decay_);
  fields("weight_decay", weight_decay_);
  fields("initial_accumulator_value", initial_accumulator_value_);
  fields("eps", eps_);
  fields("maximize", maximize_);
}

void Adagrad::visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                          const OptimizerOptions&) const {
  auto& state = state_in<AdagradParamState>(slot);
  read_step_counter(state);
  fields("step", state.step());
  fields.tensor("sum", state.sum(), param);
}

Tensor Adagrad::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (size_t group = 0; group < param_groups_.size(); ++group) step_group(group);
  return loss;
}

void Adagrad::step_group(size_t group) {
  const auto& o = static_cast<const AdagradOptions&>(param_groups_[group].options());
  StepLists lists;
  for (const Tensor& param : param_groups_[group].params()) {
    if (!param.grad().defined()) continue;
    auto& state = state_in<AdagradParamState>(state_[param.impl()]);
    if (!state.sum().defined()) {
      check_state_can_be_made();
      state.sum(zeros_like(param));
      real_view(state.sum()).fill_(o.initial_accumulator_value());
    }
    count_step(state, param, o.capturable());
    if (o.capturable()) {
      lists.add(param, {state.sum()}, state.step_counter());
    } else {
      lists.add(param, {state.sum()}, state.step());
    }
  }
  const AdagradStep step{o.lr(), o.lr_decay(), o.eps(), o.weight_decay(), o.maximize()};
  lists.run([&](DeviceType device, const StepLists::Batch& batch) {
    if (o.capturable()) {
      const Device where = batch.params[0].device();
      kernels::capturable_adagrad(device, batch.params, batch.grads, batch.states[0], batch.step_counters,
                                  numbers_on_device(group, where), found_inf_on(where), step);
      note_captured_step(batch.params, {batch.states[0], batch.step_counters});
    } else {
      kernels::fused_adagrad(device, batch.params, batch.grads, batch.states[0], batch.steps, step);
    }
  });
}

}  // namespace rush::optim
