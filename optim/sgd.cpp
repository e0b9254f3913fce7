#include "optim/sgd.h"

#include "autograd/grad_mode.h"
#include "core/ops/optim.h"
#include "optim/step_lists.h"

namespace rush::optim {

void SGDOptions::check() const {
  check_not_negative("SGD", "lr", lr());
  check_not_negative("SGD", "momentum", momentum());
  check_not_negative("SGD", "weight_decay", weight_decay());
  RUSH_CHECK_VALUE(!nesterov() || (momentum() > 0 && dampening() == 0),
                   "SGD: Nesterov's momentum needs a momentum and no dampening");
}

void SGDOptions::visit(StateFields& fields) {
  fields("lr", lr_);
  fields("momentum", momentum_);
  fields("dampening", dampening_);
  fields("weight_decay", weight_decay_);
  fields("nesterov", nesterov_);
  fields("maximize", maximize_);
}

void SGD::visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                      const OptimizerOptions&) const {
  fields.tensor("momentum_buffer", state_in<SGDParamState>(slot).momentum_buffer(), param);
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
    lists.run([&](DeviceType device, const StepLists::Batch& batch) {
      const SgdStep step{o.lr(), o.momentum(), o.dampening(), o.weight_decay(), o.nesterov(), o.maximize(), batch.flag};
      kernels::fused_sgd(device, batch.params, batch.grads, batch.states[0], step);
    });
  }
  return loss;
}

}  // namespace rush::optim
