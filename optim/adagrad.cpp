#include "optim/adagrad.h"

#include "autograd/grad_mode.h"
#include "optim/graphs/device_numbers.h"
#include "optim/step_lists.h"

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
  read_step_counter(state);
  fields("step", state.step());
  fields.tensor("sum", state.sum(), param);
}

Tensor Adagrad::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  StepLists lists("Adagrad", *this);
  for (size_t group = 0; group < param_groups_.size(); ++group) {
    const auto& o = static_cast<const AdagradOptions&>(param_groups_[group].options());
    const auto tensors_of = [](AdagradParamState& state) { return StepLists::StateTensors{{{"sum", &state.sum()}}}; };
    lists.gather<AdagradParamState>(group, tensors_of, o.initial_accumulator_value());
  }
  lists.run(ops::adagrad_step_, [&](const StepLists::Batch& batch) {
    const auto& o = static_cast<const AdagradOptions&>(param_groups_[batch.group].options());
    return step_options(o.lr(), o.lr_decay(), o.eps(), o.weight_decay(), o.maximize());
  });
  return loss;
}

}  // namespace rush::optim
