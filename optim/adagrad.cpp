#include "optim/adagrad.h"

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "optim/real_view.h"

namespace rush::optim {

void AdagradOptions::check() const {
  check_not_negative("Adagrad", "lr", lr());
  check_not_negative("Adagrad", "lr_decay", lr_decay());
  check_not_negative("Adagrad", "weight_decay", weight_decay());
  check_not_negative("Adagrad", "initial_accumulator_value", initial_accumulator_value());
  check_not_negative("Adagrad", "eps", eps());
}

void AdagradOptions::visit(StateFields& fields) {
  fields("lr", lr_);
  fields("lr_decay", lr_decay_);
  fields("weight_decay", weight_decay_);
  fields("initial_accumulator_value", initial_accumulator_value_);
  fields("eps", eps_);
  fields("maximize", maximize_);
}

void Adagrad::visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                          const OptimizerOptions&) const {
  auto& state = state_in<AdagradParamState>(slot);
  fields("step", state.step());
  fields.tensor("sum", state.sum(), param);
}

Tensor Adagrad::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (const OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<const AdagradOptions&>(group.options());
    for (const Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      auto& state = state_in<AdagradParamState>(state_[parameter.impl()]);
      if (!state.sum().defined()) {
        state.sum(zeros_like(parameter));
        real_view(state.sum()).fill_(o.initial_accumulator_value());
      }
      state.step(state.step() + 1);

      const Tensor param = real_view(parameter), grad = descent_gradient(parameter, o.weight_decay(), o.maximize());
      const Tensor sum = real_view(state.sum());
      sum.addcmul_(grad, grad);
      const double lr = o.lr() / (1 + static_cast<double>(state.step() - 1) * o.lr_decay());
      param.addcdiv_(grad, sum.sqrt().add_(o.eps()), -lr);
    }
  }
  return loss;
}

}  // namespace rush::optim
