#include "optim/adam.h"

#include "autograd/grad_mode.h"
#include "core/ops/optim.h"
#include "optim/step_lists.h"

namespace rush::optim {

template <bool decoupled>
void BasicAdamOptions<decoupled>::check() const {
  const char* name = decoupled ? "AdamW" : "Adam";
  const auto [beta1, beta2] = betas();
  RUSH_CHECK_VALUE(lr() >= 0, name, ": the learning rate must not be negative, got ", lr());
  RUSH_CHECK_VALUE(eps() >= 0, name, ": eps must not be negative, got ", eps());
  RUSH_CHECK_VALUE(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1, name, ": the betas must be in [0, 1), got ",
                   beta1, " and ", beta2);
  RUSH_CHECK_VALUE(weight_decay() >= 0, name, ": the weight decay must not be negative, got ", weight_decay());
}

namespace {

AdamParamState& state_of(std::unique_ptr<OptimizerParamState>& slot, const Tensor& param, bool amsgrad) {
  if (!slot) {
    auto made = std::make_unique<AdamParamState>();
    made->exp_avg(StepLists::zeros_like(param)).exp_avg_sq(StepLists::zeros_like(param));
    slot = std::move(made);
  }
  auto& state = static_cast<AdamParamState&>(*slot);
  if (amsgrad && !state.max_exp_avg_sq().defined()) state.max_exp_avg_sq(StepLists::zeros_like(param));
  return state;
}

}  // namespace

template <bool decoupled>
Tensor BasicAdam<decoupled>::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<const Options&>(group.options());
    StepLists lists;
    for (const Tensor& param : group.params()) {
      if (!param.grad().defined()) continue;
      AdamParamState& state = state_of(state_[param.impl()], param, o.amsgrad());
      state.step(state.step() + 1);
      if (o.amsgrad()) {
        lists.add(param, {state.exp_avg(), state.exp_avg_sq(), state.max_exp_avg_sq()}, state.step());
      } else {
        lists.add(param, {state.exp_avg(), state.exp_avg_sq()}, state.step());
      }
    }
    const AdamStep step{
        o.lr(),   std::get<0>(o.betas()), std::get<1>(o.betas()), o.eps(), o.weight_decay(), o.amsgrad(), o.maximize(),
        decoupled};
    for (const StepLists::Batch& batch : lists.batches()) {
      kernels::fused_adam(batch.params[0].device().type, batch.params, batch.grads, batch.states[0], batch.states[1],
                          batch.states[2], batch.steps, step);
    }
    lists.finish();
  }
  return loss;
}

template struct BasicAdamOptions<false>;
template struct BasicAdamOptions<true>;
template class BasicAdam<false>;
template class BasicAdam<true>;

}  // namespace rush::optim
