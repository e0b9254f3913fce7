#include "optim/adadelta.h"

#include "autograd/grad_mode.h"
#include "optim/graphs/device_numbers.h"
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
  StepLists lists("Adadelta", *this);
  for (size_t group = 0; group < param_groups_.size(); ++group) {
    lists.gather<AdadeltaParamState>(group, [](AdadeltaParamState& state) {
      return StepLists::StateTensors{{{"square_avg", &state.square_avg()}, {"acc_delta", &state.acc_delta()}}};
    });
  }
  lists.run(ops::adadelta_step_, [&](const StepLists::Batch& batch) {
    const auto& o = static_cast<const AdadeltaOptions&>(param_groups_[batch.group].options());
    return step_options(o.lr(), o.rho(), o.eps(), o.weight_decay(), o.maximize());
  });
  return loss;
}

}  // namespace rush::optim
