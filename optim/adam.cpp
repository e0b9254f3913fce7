#include "optim/adam.h"

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "core/ops/optim.h"
#include "optim/device_numbers.h"
#include "optim/step_lists.h"

namespace rush::optim {

template <bool decoupled>
void BasicAdamOptions<decoupled>::check() const {
  const char* name = decoupled ? "AdamW" : "Adam";
  this->check_not_negative(name, "lr", lr());
  this->check_not_negative(name, "eps", eps());
  this->check_betas(name, betas());
  this->check_not_negative(name, "weight_decay", weight_decay());
}

template <bool decoupled>
std::vector<double> BasicAdamOptions<decoupled>::device_numbers() const {
  return {lr(), std::get<0>(betas()), std::get<1>(betas()), eps(), weight_decay()};
}

template <bool decoupled>
void BasicAdamOptions<decoupled>::visit(StateFields& fields) {
  fields("lr", lr_);
  fields("betas", betas_);
  fields("eps", eps_);
  fields("weight_decay", weight_decay_);
  fields("amsgrad", amsgrad_);
  fields("maximize", maximize_);
}

template <bool decoupled>
void BasicAdam<decoupled>::visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot,
                                       const Tensor& param, const OptimizerOptions& options) const {
  auto& state = state_in<AdamParamState>(slot);
  read_step_counter(state);
  fields("step", state.step());
  fields.tensor("exp_avg", state.exp_avg(), param);
  fields.tensor("exp_avg_sq", state.exp_avg_sq(), param);
  fields.tensor("max_exp_avg_sq", state.max_exp_avg_sq(), param, static_cast<const Options&>(options).amsgrad());
}

namespace {

AdamParamState& state_of(std::unique_ptr<OptimizerParamState>& slot, const Tensor& param, bool amsgrad) {
  if (!slot) {
    check_state_can_be_made();
    auto made = std::make_unique<AdamParamState>();
    made->exp_avg(zeros_like(param)).exp_avg_sq(zeros_like(param));
    slot = std::move(made);
  }
  auto& state = static_cast<AdamParamState&>(*slot);
  if (amsgrad && !state.max_exp_avg_sq().defined()) {
    check_state_can_be_made();
    state.max_exp_avg_sq(zeros_like(param));
  }
  return state;
}

}  // namespace

template <bool decoupled>
Tensor BasicAdam<decoupled>::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (size_t group = 0; group < param_groups_.size(); ++group) step_group(group);
  return loss;
}

template <bool decoupled>
void BasicAdam<decoupled>::step_group(size_t group) {
  const auto& o = static_cast<const Options&>(param_groups_[group].options());
  StepLists lists;
  for (const Tensor& param : param_groups_[group].params()) {
    if (!param.grad().defined()) continue;
    AdamParamState& state = state_of(state_[param.impl()], param, o.amsgrad());
    count_step(state, param, o.capturable());
    const auto add = [&](std::initializer_list<Tensor> states) {
      if (o.capturable()) {
        lists.add(param, states, state.step_counter());
      } else {
        lists.add(param, states, state.step());
      }
    };
    if (o.amsgrad()) {
      add({state.exp_avg(), state.exp_avg_sq(), state.max_exp_avg_sq()});
    } else {
      add({state.exp_avg(), state.exp_avg_sq()});
    }
  }
  const AdamStep step{
      o.lr(),   std::get<0>(o.betas()), std::get<1>(o.betas()), o.eps(), o.weight_decay(), o.amsgrad(), o.maximize(),
      decoupled};
  lists.run([&](DeviceType device, const StepLists::Batch& batch) {
    if (o.capturable()) {
      const Device where = batch.params[0].device();
      kernels::capturable_adam(device, batch.params, batch.grads, batch.states[0], batch.states[1], batch.states[2],
                               batch.step_counters, numbers_on_device(group, where), found_inf_on(where), step);
      note_captured_step(batch.params, {batch.states[0], batch.states[1], batch.states[2], batch.step_counters});
    } else {
      kernels::fused_adam(device, batch.params, batch.grads, batch.states[0], batch.states[1], batch.states[2],
                          batch.steps, step);
    }
  });
}

template struct BasicAdamOptions<false>;
template struct BasicAdamOptions<true>;
template class BasicAdam<false>;
template class BasicAdam<true>;

}  // namespace rush::optim
