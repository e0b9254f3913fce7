#include "optim/sgd.h"

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "core/ops/optim.h"
#include "optim/device_numbers.h"
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
  for (size_t group = 0; group < param_groups_.size(); ++group) {
    if (param_groups_[group].options().get_capturable()) {
      step_capturable(group);
    } else {
      step_group(group);
    }
  }
  return loss;
}

namespace {

// Only the rows, or elements, that the gradient has entries for are read and written.
void take_sparse_step(const Tensor& param, const SGDOptions& o) {
  RUSH_CHECK_VALUE(o.momentum() == 0 && o.weight_decay() == 0,
                   "SGD: a sparse gradient is not for a momentum or weight decay, which change every element; "
                   "SparseAdam has a momentum");
  param.add_(param.grad().detach(), o.maximize() ? o.lr() : -o.lr());
}

}  // namespace

void SGD::step_group(size_t group) {
  const auto& o = static_cast<const SGDOptions&>(param_groups_[group].options());
  StepLists lists;
  for (const Tensor& param : param_groups_[group].params()) {
    if (!param.grad().defined()) continue;
    if (param.grad().layout() != kStrided) {
      take_sparse_step(param, o);
      continue;
    }
    if (o.momentum() == 0) {
      lists.add(param, {});
      continue;
    }
    auto& state = state_in<SGDParamState>(state_[param.impl()]);
    const bool first = !state.momentum_buffer().defined();
    if (first) state.momentum_buffer(zeros_like(param));
    lists.add(param, {state.momentum_buffer()}, /*step=*/0, first);
  }
  lists.run([&](DeviceType device, const StepLists::Batch& batch) {
    const SgdStep step{o.lr(), o.momentum(), o.dampening(), o.weight_decay(), o.nesterov(), o.maximize(), batch.flag};
    kernels::fused_sgd(device, batch.params, batch.grads, batch.states[0], step);
  });
}

// Whether a step is a parameter's first is known to its counter.
void SGD::step_capturable(size_t group) {
  const auto& o = static_cast<const SGDOptions&>(param_groups_[group].options());
  StepLists lists;
  for (const Tensor& param : param_groups_[group].params()) {
    if (!param.grad().defined()) continue;
    auto& state = state_in<SGDParamState>(state_[param.impl()]);
    const bool has_buffer = state.momentum_buffer().defined();
    if (!state.step_counter().defined()) state.step_counter(make_device_counter(param, has_buffer ? 1 : 0));
    if (o.momentum() == 0) {
      lists.add(param, {}, state.step_counter());
      continue;
    }
    if (!has_buffer) {
      check_state_can_be_made();
      state.momentum_buffer(zeros_like(param));
    }
    lists.add(param, {state.momentum_buffer()}, state.step_counter());
  }
  lists.run([&](DeviceType device, const StepLists::Batch& batch) {
    const Device where = batch.params[0].device();
    const SgdStep step{o.lr(),       o.momentum(), o.dampening(),  o.weight_decay(),
                       o.nesterov(), o.maximize(), /*first=*/false};
    kernels::capturable_sgd(device, batch.params, batch.grads, batch.states[0], batch.step_counters,
                            numbers_on_device(group, where), found_inf_on(where), step);
    note_captured_step(batch.params, {batch.states[0], batch.step_counters});
  });
}

}  // namespace rush::optim
