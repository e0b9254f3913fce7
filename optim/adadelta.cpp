#include "optim/adadelta.h"

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "optim/real_view.h"

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
    for (const Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      auto& state = state_in<AdadeltaParamState>(state_[parameter.impl()]);
      if (!state.square_avg().defined()) state.square_avg(zeros_like(parameter)).acc_delta(zeros_like(parameter));
      state.step(state.step() + 1);

      const Tensor grad = descent_gradient(parameter, o.weight_decay(), o.maximize());
      const Tensor square_avg = real_view(state.square_avg()), acc_delta = real_view(state.acc_delta());
      square_avg.mul_(o.rho()).addcmul_(grad, grad, 1 - o.rho());
      const Tensor delta = acc_delta.add(o.eps()).sqrt_();
      delta.div_(square_avg.add(o.eps()).sqrt_()).mul_(grad);
      acc_delta.mul_(o.rho()).addcmul_(delta, delta, 1 - o.rho());
      real_view(parameter).add_(delta, -o.lr());
    }
  }
  return loss;
}

}  // namespace rush::optim
