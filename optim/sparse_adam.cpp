#include "optim/sparse_adam.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "core/ops/binary.h"
#include "core/ops/factories.h"
#include "core/ops/index_select.h"
#include "core/ops/power.h"
#include "core/ops/unary.h"

namespace rush::optim {

void SparseAdamOptions::check() const {
  check_not_negative("SparseAdam", "lr", lr());
  check_not_negative("SparseAdam", "eps", eps());
  check_betas("SparseAdam", betas());
}

void SparseAdamOptions::visit(StateFields& fields) {
  fields("lr", lr_);
  fields("betas", betas_);
  fields("eps", eps_);
  fields("maximize", maximize_);
}

void SparseAdam::visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                             const OptimizerOptions&) const {
  auto& state = state_in<SparseAdamParamState>(slot);
  fields("step", state.step());
  fields.tensor("exp_avg", state.exp_avg(), param);
  fields.tensor("exp_avg_sq", state.exp_avg_sq(), param);
}

namespace {

// Rows of `table` become average + (target - average)(1 - beta), a moment's next value, which is returned.
Tensor update_moment(const Tensor& table, const Tensor& rows, const Tensor& target, double beta) {
  const Tensor average = index_select(table, 0, rows);
  const Tensor next = average + (target - average) * (1 - beta);
  table.index_copy_(0, rows, next);
  return next;
}

// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, p -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) +
// eps), for the rows of the gradient. https://pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html
void take_step(const Tensor& param, SparseAdamParamState& state, const SparseAdamOptions& o) {
  const Tensor grad = param.grad().detach().coalesce();
  RUSH_CHECK_VALUE(grad.sparse_dim() == 1, "SparseAdam: expected a gradient of whole rows, with one sparse dimension, ",
                   "got ", grad.sparse_dim());
  const auto [beta1, beta2] = o.betas();
  const auto t = static_cast<double>(state.step());
  const double step_size = o.lr() * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
  const Tensor rows = grad.indices().select(0, 0);
  const Tensor values = o.maximize() ? -grad.values() : grad.values();
  const Tensor mean = update_moment(state.exp_avg(), rows, values, beta1);
  const Tensor square = update_moment(state.exp_avg_sq(), rows, values * values, beta2);
  param.index_add_(0, rows, mean / (square.sqrt() + o.eps()), -step_size);
}

}  // namespace

Tensor SparseAdam::step(LossClosure closure) {
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  for (const OptimizerParamGroup& group : param_groups_) {
    const auto& options = static_cast<const SparseAdamOptions&>(group.options());
    for (const Tensor& param : group.params()) {
      if (!param.grad().defined()) continue;
      RUSH_CHECK_VALUE(param.grad().is_sparse(), "SparseAdam: expected sparse gradients; use Adam for dense ones");
      auto& state = state_in<SparseAdamParamState>(state_[param.impl()]);
      if (!state.exp_avg().defined()) state.exp_avg(zeros_like(param)).exp_avg_sq(zeros_like(param));
      state.step(state.step() + 1);
      take_step(param, state, options);
    }
  }
  return loss;
}

}  // namespace rush::optim
