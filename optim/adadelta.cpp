#include "optim/adadelta.h"

#include "autograd/grad_mode.h"
#include "core/ops/optim.h"
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
  fields("step", state.step());
  fields.tensor("square_avg", state.square_avg(), param);
  fields.tensor("acc_delta", state.acc_delta(), param);
}

Tensor Adadelta::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (const OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<const AdadeltaOptions&>(group.options());
    StepLists lists;
    for (const Tensor& param : group.params()) {
      if (!param.grad().defined()) continue;
      auto& state = state_in<AdadeltaParamState>(state_[param.impl()]);
      if (!state.square_avg().defined()) {
        state.square_avg(StepLists::zeros_like(param)).acc_delta(StepLists::zeros_like(param));
      }
      state.step(state.step() + 1);
      lists.add(param, {state.square_avg(), state.acc_delta()});
    }
    const AdadeltaStep step{o.lr(), o.rho(), o.eps(), o.weight_decay(), o.maximize()};
    lists.run([&](DeviceType device, const StepLists::Batch& batch) {
      kernels::fused_adadelta(device, batch.params, batch.grads, batch.states[0], batch.states[1], step);
    });
  }
  return loss;
}

}  // namespace rush::optim
