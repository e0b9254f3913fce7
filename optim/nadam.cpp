#include "optim/nadam.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "optim/real_view.h"

namespace rush::optim {

namespace {

// The momentum of a step: it grows from beta1 / 2 to beta1.
double momentum_at(double step, double beta1, double momentum_decay) {
  return beta1 * (1 - 0.5 * std::pow(0.96, step * momentum_decay));
}

}  // namespace

void NAdamOptions::check() const {
  check_not_negative("NAdam", "lr", lr());
  check_not_negative("NAdam", "eps", eps());
  check_betas("NAdam", betas());
  check_not_negative("NAdam", "weight_decay", weight_decay());
  check_not_negative("NAdam", "momentum_decay", momentum_decay());
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
  fields("step", state.step());
  fields("mu_product", state.mu_product());
  fields.tensor("exp_avg", state.exp_avg(), param);
  fields.tensor("exp_avg_sq", state.exp_avg_sq(), param);
}

Tensor NAdam::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (const OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<const NAdamOptions&>(group.options());
    for (const Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      auto& state = state_in<NAdamParamState>(state_[parameter.impl()]);
      if (!state.exp_avg().defined()) state.exp_avg(zeros_like(parameter)).exp_avg_sq(zeros_like(parameter));
      state.step(state.step() + 1);

      const auto [beta1, beta2] = o.betas();
      const Tensor param = real_view(parameter);
      const Tensor grad = descent_gradient(parameter, o.decoupled_weight_decay() ? 0 : o.weight_decay(), o.maximize());
      if (o.decoupled_weight_decay()) param.mul_(1 - o.lr() * o.weight_decay());
      const auto step = static_cast<double>(state.step());
      const double mu = momentum_at(step, beta1, o.momentum_decay());
      const double next_mu = momentum_at(step + 1, beta1, o.momentum_decay());
      state.mu_product(state.mu_product() * mu);

      const Tensor exp_avg = real_view(state.exp_avg()), exp_avg_sq = real_view(state.exp_avg_sq());
      exp_avg.lerp_(grad, 1 - beta1);
      exp_avg_sq.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
      const Tensor scale = exp_avg_sq.div(1 - std::pow(beta2, step)).sqrt_().add_(o.eps());
      param.addcdiv_(grad, scale, -o.lr() * (1 - mu) / (1 - state.mu_product()));
      param.addcdiv_(exp_avg, scale, -o.lr() * next_mu / (1 - state.mu_product() * next_mu));
    }
  }
  return loss;
}

}  // namespace rush::optim
