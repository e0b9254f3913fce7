#include "optim/rmsprop.h"

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "optim/real_view.h"

namespace rush::optim {

void RMSpropOptions::check() const {
  check_not_negative("RMSprop", "lr", lr());
  check_not_negative("RMSprop", "alpha", alpha());
  check_not_negative("RMSprop", "eps", eps());
  check_not_negative("RMSprop", "weight_decay", weight_decay());
  check_not_negative("RMSprop", "momentum", momentum());
}

void RMSpropOptions::visit(StateFields& fields) {
  fields("lr", lr_);
  fields("alpha", alpha_);
  fields("eps", eps_);
  fields("weight_decay", weight_decay_);
  fields("momentum", momentum_);
  fields("centered", centered_);
  fields("maximize", maximize_);
}

void RMSprop::visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                          const OptimizerOptions& options) const {
  const auto& o = static_cast<const RMSpropOptions&>(options);
  auto& state = state_in<RMSpropParamState>(slot);
  fields("step", state.step());
  fields.tensor("square_avg", state.square_avg(), param);
  fields.tensor("momentum_buffer", state.momentum_buffer(), param, o.momentum() > 0);
  fields.tensor("grad_avg", state.grad_avg(), param, o.centered());
}

Tensor RMSprop::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (const OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<const RMSpropOptions&>(group.options());
    for (const Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      auto& state = state_in<RMSpropParamState>(state_[parameter.impl()]);
      if (!state.square_avg().defined()) state.square_avg(zeros_like(parameter));
      if (o.momentum() > 0 && !state.momentum_buffer().defined()) state.momentum_buffer(zeros_like(parameter));
      if (o.centered() && !state.grad_avg().defined()) state.grad_avg(zeros_like(parameter));
      state.step(state.step() + 1);

      const Tensor param = real_view(parameter), grad = descent_gradient(parameter, o.weight_decay(), o.maximize());
      const Tensor square_avg = real_view(state.square_avg());
      square_avg.mul_(o.alpha()).addcmul_(grad, grad, 1 - o.alpha());
      Tensor scale;
      if (o.centered()) {
        const Tensor grad_avg = real_view(state.grad_avg());
        grad_avg.lerp_(grad, 1 - o.alpha());
        scale = square_avg.addcmul(grad_avg, grad_avg, -1).sqrt_();
      } else {
        scale = square_avg.sqrt();
      }
      scale.add_(o.eps());
      if (o.momentum() > 0) {
        const Tensor velocity = real_view(state.momentum_buffer());
        velocity.mul_(o.momentum()).addcdiv_(grad, scale);
        param.add_(velocity, -o.lr());
      } else {
        param.addcdiv_(grad, scale, -o.lr());
      }
    }
  }
  return loss;
}

}  // namespace rush::optim
