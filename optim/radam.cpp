#include "optim/radam.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "optim/real_view.h"

namespace rush::optim {

void RAdamOptions::check() const {
  check_not_negative("RAdam", "lr", lr());
  check_not_negative("RAdam", "eps", eps());
  check_betas("RAdam", betas());
  check_not_negative("RAdam", "weight_decay", weight_decay());
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
  fields("step", state.step());
  fields.tensor("exp_avg", state.exp_avg(), param);
  fields.tensor("exp_avg_sq", state.exp_avg_sq(), param);
}

Tensor RAdam::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (const OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<const RAdamOptions&>(group.options());
    for (const Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      auto& state = state_in<RAdamParamState>(state_[parameter.impl()]);
      if (!state.exp_avg().defined()) state.exp_avg(zeros_like(parameter)).exp_avg_sq(zeros_like(parameter));
      state.step(state.step() + 1);

      const auto [beta1, beta2] = o.betas();
      const Tensor param = real_view(parameter);
      const Tensor grad = descent_gradient(parameter, o.decoupled_weight_decay() ? 0 : o.weight_decay(), o.maximize());
      if (o.decoupled_weight_decay()) param.mul_(1 - o.lr() * o.weight_decay());
      const Tensor exp_avg = real_view(state.exp_avg()), exp_avg_sq = real_view(state.exp_avg_sq());
      exp_avg.lerp_(grad, 1 - beta1);
      exp_avg_sq.mul_(beta2).addcmul_(grad, grad, 1 - beta2);

      // The length of the simple moving average that has the variance of this exponential one: now, and in the end.
      const auto step = static_cast<double>(state.step());
      const double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
      const double last_length = 2 / (1 - beta2) - 1;
      const double length = last_length - 2 * step * std::pow(beta2, step) / correction2;
      if (length > 5) {
        const double rectification =
            std::sqrt((length - 4) * (length - 2) * last_length / ((last_length - 4) * (last_length - 2) * length));
        param.addcdiv_(exp_avg, exp_avg_sq.sqrt().add_(o.eps()),
                       -o.lr() * rectification * std::sqrt(correction2) / correction1);
      } else {
        param.add_(exp_avg, -o.lr() / correction1);
      }
    }
  }
  return loss;
}

}  // namespace rush::optim
