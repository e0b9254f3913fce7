#include "optim/sgd.h"

#include "autograd/grad_mode.h"
#include "core/ops/optim.h"
#include "optim/step_lists.h"

namespace rush::optim {

void SGDOptions::check() const {
  RUSH_CHECK_VALUE(lr() >= 0, "SGD: the learning rate must not be negative, got ", lr());
  RUSH_CHECK_VALUE(momentum() >= 0, "SGD: the momentum must not be negative, got ", momentum());
  RUSH_CHECK_VALUE(weight_decay() >= 0, "SGD: the weight decay must not be negative, got ", weight_decay());
  RUSH_CHECK_VALUE(!nesterov() || (momentum() > 0 && dampening() == 0),
                   "SGD: Nesterov's momentum needs a momentum and no dampening");
}

Tensor SGD::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<const SGDOptions&>(group.options());
    StepLists lists;
    for (const Tensor& param : group.params()) {
      if (!param.grad().defined()) continue;
      if (o.momentum() == 0) {
        lists.add(param, {});
        continue;
      }
      auto& state = state_[param.impl()];
      const bool first = !state;
      if (first) {
        auto made = std::make_unique<SGDParamState>();
        made->momentum_buffer(StepLists::like(param));
        state = std::move(made);
      }
      lists.add(param, {static_cast<SGDParamState&>(*state).momentum_buffer()}, /*step=*/0, first);
    }
    for (const StepLists::Batch& batch : lists.batches()) {
      const SgdStep step{o.lr(), o.momentum(), o.dampening(), o.weight_decay(), o.nesterov(), o.maximize(), batch.flag};
      kernels::fused_sgd(batch.params[0].device().type, batch.params, batch.grads, batch.states[0], step);
    }
    lists.finish();
  }
  return loss;
}

}  // namespace rush::optim
