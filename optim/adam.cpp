#include "optim/adam.h"

#include "autograd/grad_mode.h"
#include "optim/graphs/device_numbers.h"
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

template <bool decoupled>
Tensor BasicAdam<decoupled>::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  StepLists lists(decoupled ? "AdamW" : "Adam", *this);
  for (size_t group = 0; group < param_groups_.size(); ++group) {
    const bool amsgrad = static_cast<const Options&>(param_groups_[group].options()).amsgrad();
    lists.gather<AdamParamState>(group, [&](AdamParamState& state) {
      return StepLists::StateTensors{{{"exp_avg", &state.exp_avg()},
                                      {"exp_avg_sq", &state.exp_avg_sq()},
                                      {"max_exp_avg_sq", amsgrad ? &state.max_exp_avg_sq() : nullptr}}};
    });
  }
  lists.run(ops::adam_step_, [&](const StepLists::Batch& batch) {
    const auto& o = static_cast<const Options&>(param_groups_[batch.group].options());
    const auto [beta1, beta2] = o.betas();
    return step_options(o.lr(), beta1, beta2, o.eps(), o.weight_decay(), o.amsgrad(), o.maximize(), decoupled);
  });
  return loss;
}

template struct BasicAdamOptions<false>;
template struct BasicAdamOptions<true>;
template class BasicAdam<false>;
template class BasicAdam<true>;

}  // namespace rush::optim
