#include "optim/radam.h"

#include "autograd/grad_mode.h"
#include "optim/graphs/device_numbers.h"
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
  StepLists lists("RAdam", *this);
  for (size_t group = 0; group < param_groups_.size(); ++group) {
    lists.gather<RAdamParamState>(group, [](RAdamParamState& state) {
      return StepLists::StateTensors{{{"exp_avg", &state.exp_avg()}, {"exp_avg_sq", &state.exp_avg_sq()}}};
    });
  }
  lists.run(ops::radam_step_, [&](const StepLists::Batch& batch) {
    const auto& o = static_cast<const RAdamOptions&>(param_groups_[batch.group].options());
    const auto [beta1, beta2] = o.betas();
    return step_options(o.lr(), beta1, beta2, o.eps(), o.weight_decay(), o.decoupled_weight_decay(), o.maximize());
  });
  return loss;
}

}  // namespace rush::optim
