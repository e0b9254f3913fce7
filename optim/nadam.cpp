#include "optim/nadam.h"

#include "autograd/grad_mode.h"
#include "optim/graphs/device_numbers.h"
#include "optim/step_lists.h"

namespace rush::optim {

void NAdamOptions::check() const {
  check_not_negative("NAdam", "lr", lr());
  check_not_negative("NAdam", "eps", eps());
  check_betas("NAdam", betas());
  check_not_negative("NAdam", "weight_decay", weight_decay());
  check_not_negative("NAdam", "momentum_decay", momentum_decay());
}

std::vector<double> NAdamOptions::device_numbers() const {
  return {lr(), std::get<0>(betas()), std::get<1>(betas()), eps(), weight_decay(), momentum_decay()};
}

void NAdamOptions::visit(StateFields& fields) {
  fields("lr", lr_);
  fields("betas", betas_);
  fields("eps", eps_);
  fields("weight_decay", weight_decay_);
  fields("momentum_decay", momentum_decay_);
  fields("decoupled_weight_decay", decoupled_weight_decay_);
  fields("maximize", maximize_);
}

void NAdam::visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                        const OptimizerOptions&) const {
  auto& state = state_in<NAdamParamState>(slot);
  read_step_counter(state);
  if (state.mu_product_counter().defined()) state.mu_product(state.mu_product_counter().item<double>());
  fields("step", state.step());
  fields("mu_product", state.mu_product());
  fields.tensor("exp_avg", state.exp_avg(), param);
  fields.tensor("exp_avg_sq", state.exp_avg_sq(), param);
}

Tensor NAdam::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  StepLists lists("NAdam", *this);
  for (size_t group = 0; group < param_groups_.size(); ++group) {
    const auto& o = static_cast<const NAdamOptions&>(param_groups_[group].options());
    NAdamStep step{};
    step.beta1 = std::get<0>(o.betas());
    step.momentum_decay = o.momentum_decay();
    const auto tensors_of = [](NAdamParamState& state) {
      return StepLists::StateTensors{{{"exp_avg", &state.exp_avg()}, {"exp_avg_sq", &state.exp_avg_sq()}}};
    };
    lists.gather<NAdamParamState>(group, tensors_of, 0, [&](StepLists::Batch& batch, NAdamParamState& state) {
      if (o.capturable()) return batch.mu_product_counters.push_back(state.mu_product_counter());
      batch.mu_products.push_back(state.mu_product() * step.momentum_at(batch.steps.back()));
      lists.assign_later(state.mu_product(), batch.mu_products.back());
    });
  }
  lists.run(ops::nadam_step_, [&](const StepLists::Batch& batch) {
    const auto& o = static_cast<const NAdamOptions&>(param_groups_[batch.group].options());
    const auto [beta1, beta2] = o.betas();
    return step_options(o.lr(), beta1, beta2, o.eps(), o.weight_decay(), o.momentum_decay(), o.decoupled_weight_decay(),
                        o.maximize());
  });
  return loss;
}

}  // namespace rush::optim
