#include "optim/nadam.h"

#include <utility>

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "core/ops/optim.h"
#include "optim/device_numbers.h"
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

namespace {

// Where the product of the momenta is kept, as count_step does for the steps.
void keep_mu_product(NAdamParamState& state, const Tensor& param, bool capturable) {
  Tensor& counter = state.mu_product_counter();
  if (capturable) {
    if (!counter.defined()) counter = make_device_number(param, state.mu_product());
  } else if (counter.defined()) {
    state.mu_product(std::exchange(counter, Tensor()).item<double>());
  }
}

}  // namespace

Tensor NAdam::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (size_t group = 0; group < param_groups_.size(); ++group) step_group(group);
  return loss;
}

void NAdam::step_group(size_t group) {
  const auto& o = static_cast<const NAdamOptions&>(param_groups_[group].options());
  const auto [beta1, beta2] = o.betas();
  const NAdamStep step{
      o.lr(), beta1, beta2, o.eps(), o.weight_decay(), o.momentum_decay(), o.decoupled_weight_decay(), o.maximize()};
  StepLists lists;
  for (const Tensor& param : param_groups_[group].params()) {
    if (!param.grad().defined()) continue;
    auto& state = state_in<NAdamParamState>(state_[param.impl()]);
    if (!state.exp_avg().defined()) {
      check_state_can_be_made();
      state.exp_avg(zeros_like(param)).exp_avg_sq(zeros_like(param));
    }
    keep_mu_product(state, param, o.capturable());
    count_step(state, param, o.capturable());
    if (o.capturable()) {
      lists.add(param, {state.exp_avg(), state.exp_avg_sq()}, state.step_counter())
          .mu_product_counters.push_back(state.mu_product_counter());
    } else {
      state.mu_product(state.mu_product() * step.momentum_at(state.step()));
      lists.add(param, {state.exp_avg(), state.exp_avg_sq()}, state.step()).mu_products.push_back(state.mu_product());
    }
  }
  lists.run([&](DeviceType device, const StepLists::Batch& batch) {
    if (o.capturable()) {
      const Device where = batch.params[0].device();
      kernels::capturable_nadam(device, batch.params, batch.grads, batch.states[0], batch.states[1],
                                batch.step_counters, batch.mu_product_counters, numbers_on_device(group, where),
                                found_inf_on(where), step);
      note_captured_step(batch.params,
                         {batch.states[0], batch.states[1], batch.step_counters, batch.mu_product_counters});
    } else {
      kernels::fused_nadam(device, batch.params, batch.grads, batch.states[0], batch.states[1], batch.steps,
                           batch.mu_products, step);
    }
  });
}

}  // namespace rush::optim
