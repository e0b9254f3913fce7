#include "optim/sparse_adam.h"

#include <cmath>

#include "core/ops/basic.h"
#include "core/ops/pointwise/power.h"
#include "optim/step_lists.h"

namespace rush::optim {

namespace {

// average + (target - average)(1 - beta), a moment's next value, for rows of `table`.
Tensor next_moment(const Tensor& table, const Tensor& rows, const Tensor& target, double beta) {
  const Tensor average = index_select(table, 0, rows);
  return average + (target - average) * (1 - beta);
}

// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, p -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) +
// eps), for the rows of the gradient. https://pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html
void gather_step(const StepLists::SparseEntry& entry, const SparseAdamOptions& o,
                 const StepDescription& step_description, StepLists& lists) {
  const Tensor grad = entry.grad.coalesce();
  RUSH_CHECK_VALUE(grad.sparse_dim() == 1, "SparseAdam: expected a gradient of whole rows, with one sparse dimension, ",
                   "got ", grad.sparse_dim());
  auto& state = static_cast<SparseAdamParamState&>(lists.state_for(entry, step_description));
  const auto [beta1, beta2] = o.betas();
  const int64_t step = state.step() + 1;
  const auto t = static_cast<double>(step);
  const double step_size = o.lr() * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
  const Tensor rows = grad.indices().select(0, 0), g = grad.values().to(entry.target.scalar_type());
  const Tensor values = o.maximize() ? -g : g;
  const Tensor mean = next_moment(state.exp_avg(), rows, values, beta1);
  const Tensor square = next_moment(state.exp_avg_sq(), rows, values * values, beta2);
  lists.assign_later(state.exp_avg(), rows, mean);
  lists.assign_later(state.exp_avg_sq(), rows, square);
  lists.add_later(entry.target, rows, mean / (square.sqrt() + o.eps()) * -step_size);
  lists.assign_later(state.step(), step);
}

}  // namespace

void SparseAdam::gather(size_t group, StepLists& lists) const {
  const std::vector<Tensor>& params = param_groups_[group].params();
  for (size_t i = 0; i < params.size(); ++i) {
    RUSH_CHECK_VALUE(!params[i].defined() || !params[i].grad().defined() || params[i].grad().is_sparse(),
                     "SparseAdam: the gradient of parameter ", i, " of group ", group,
                     " is not sparse; use Adam for dense ones");
  }
  const auto& options = static_cast<const SparseAdamOptions&>(param_groups_[group].options());
  const StepDescription step = describe(options);
  lists.gather_sparse(group, [&](const StepLists::SparseEntry& entry) { gather_step(entry, options, step, lists); });
}

}  // namespace rush::optim
