#include "optim/lbfgs.h"

#include <algorithm>
#include <cmath>

#include "autograd/accumulate_grad.h"
#include "autograd/grad_mode.h"
#include "core/ops/basic.h"
#include "core/ops/write_back.h"
#include "optim/real_view.h"
#include "optim/state/check_state.h"
#include "optim/step_lists.h"
#include "optim/strong_wolfe.h"

namespace rush::optim {

void LBFGSOptions::check() const {
  check_not_negative("LBFGS", "lr", lr());
  check_not_negative("LBFGS", "tolerance_grad", tolerance_grad());
  check_not_negative("LBFGS", "tolerance_change", tolerance_change());
  RUSH_CHECK_VALUE(max_iter() > 0, "LBFGS: max_iter must be positive, got ", max_iter());
  RUSH_CHECK_VALUE(max_eval().value_or(1) > 0, "LBFGS: max_eval must be positive, got ", max_eval().value_or(1));
  RUSH_CHECK_VALUE(history_size() > 0, "LBFGS: history_size must be positive, got ", history_size());
  RUSH_CHECK_VALUE(line_search_fn().value_or("strong_wolfe") == "strong_wolfe",
                   "LBFGS: line_search_fn must be 'strong_wolfe' or nothing, got '", line_search_fn().value_or(""),
                   "'");
}

void LBFGSOptions::visit(StateFields& fields) {
  fields("lr", lr_);
  fields("max_iter", max_iter_);
  fields("max_eval", max_eval_);
  fields("tolerance_grad", tolerance_grad_);
  fields("tolerance_change", tolerance_change_);
  fields("history_size", history_size_);
  bool searches = line_search_fn_.has_value();
  fields("strong_wolfe", searches);
  if (fields.reading()) line_search_fn_ = searches ? std::optional<std::string>("strong_wolfe") : std::nullopt;
}

LBFGS::LBFGS(const std::vector<OptimizerParamGroup>& param_groups, LBFGSOptions defaults)
    : Optimizer(param_groups, std::make_unique<LBFGSOptions>(std::move(defaults))) {
  RUSH_CHECK_VALUE(param_groups.size() == 1 && numel() > 0, "LBFGS: expected one group with parameters in it, got ",
                   param_groups.size(), " groups");
}

void LBFGS::visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                        const OptimizerOptions&) const {
  auto& state = state_in<LBFGSParamState>(slot);
  const Tensor like = zeros({numel()}, real_view(param).options());
  fields("func_evals", state.func_evals());
  fields("n_iter", state.n_iter());
  fields("t", state.t());
  fields("prev_loss", state.prev_loss());
  fields("H_diag", state.H_diag());
  fields.tensor("d", state.d(), like, state.n_iter() > 0);
  fields.tensor("prev_flat_grad", state.prev_flat_grad(), like, state.n_iter() > 0);
  fields.rows("old_dirs", state.old_dirs(), like);
  fields.rows("old_stps", state.old_stps(), like);
  fields("ro", state.ro());
  if (state.old_dirs().size() != state.old_stps().size() || state.old_dirs().size() != state.ro().size()) {
    fields.problem("ro", "is not as long as old_dirs and old_stps");
  }
}

int64_t LBFGS::numel() const {
  int64_t count = 0;
  for (const Tensor& param : params()) count += param.numel() * (param.is_complex() ? 2 : 1);
  return count;
}

Tensor LBFGS::flat_grad() const {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < params().size(); ++i) {
    const Tensor& param = params()[i];
    Tensor grad = param.grad();
    if (grad.defined()) {
      check_gradient(grad, param, "LBFGS: the gradient of parameter ", i, " of group 0");
      grad = grad.to_dense().to(param.scalar_type());
    } else {
      grad = zeros_like(param);
    }
    parts.push_back(real_view(grad).reshape({-1}));
  }
  return cat(parts);
}

void LBFGS::move_params(double step, const Tensor& direction) const {
  int64_t offset = 0;
  for (const Tensor& param : params()) {
    const Tensor target = real_view(param);
    target.add_(direction.narrow(0, offset, target.numel()).view(target.sizes()), step);
    offset += target.numel();
  }
}

namespace {

// The state's vectors stand for all parameters together, as `grad` does.
void check_vectors(const LBFGSParamState& state, const Tensor& grad) {
  if (state.n_iter() == 0) return;
  RUSH_CHECK_VALUE(state.d().defined() && state.prev_flat_grad().defined() &&
                       state.old_dirs().size() == state.old_stps().size() &&
                       state.ro().size() == state.old_dirs().size(),
                   "LBFGS: parts of the state are missing; load a state that fits, or erase it");
  check_state(state.d(), grad, "LBFGS: the state d");
  check_state(state.prev_flat_grad(), grad, "LBFGS: the state prev_flat_grad");
  for (const Tensor& change : state.old_dirs()) check_state(change, grad, "LBFGS: the state old_dirs");
  for (const Tensor& change : state.old_stps()) check_state(change, grad, "LBFGS: the state old_stps");
}

double largest(const Tensor& tensor) { return tensor.abs().max().item<double>(); }

// Takes the last iteration's changes of gradient and parameters into the history.
void remember(LBFGSParamState& state, const Tensor& grad, int64_t history_size) {
  const Tensor y = grad - state.prev_flat_grad();
  const Tensor s = state.d() * state.t();
  const double ys = y.dot(s).item<double>();
  if (!(ys > 1e-10)) return;
  while (static_cast<int64_t>(state.old_dirs().size()) >= history_size) {
    state.old_dirs().pop_front();
    state.old_stps().pop_front();
    state.ro().erase(state.ro().begin());
  }
  state.old_dirs().push_back(y);
  state.old_stps().push_back(s);
  state.ro().push_back(1 / ys);
  state.H_diag(ys / y.dot(y).item<double>());
}

// -H grad, where H is the inverse Hessian that the history stands for: the two loops of algorithm 7.4.
Tensor quasi_newton_direction(const LBFGSParamState& state, const Tensor& grad) {
  const size_t count = state.ro().size();
  std::vector<double> alpha(count);
  Tensor q = grad.neg();
  for (size_t i = count; i-- > 0;) {
    alpha[i] = state.old_stps()[i].dot(q).item<double>() * state.ro()[i];
    q.add_(state.old_dirs()[i], -alpha[i]);
  }
  q.mul_(state.H_diag());
  for (size_t i = 0; i < count; ++i) {
    const double beta = state.old_dirs()[i].dot(q).item<double>() * state.ro()[i];
    q.add_(state.old_stps()[i], alpha[i] - beta);
  }
  return q;
}

}  // namespace

Tensor LBFGS::step(LossClosure closure) {
  RUSH_CHECK_VALUE(closure, "LBFGS: step needs a closure that computes the loss and its gradients");
  RUSH_CHECK_VALUE(param_groups_.size() == 1, "LBFGS: expected one parameter group, got ", param_groups_.size());
  const NoGradGuard no_grad;
  StepLists lists("LBFGS", *this);
  auto& state = lists.copy_of_state<LBFGSParamState>(params()[0], {0, 0});
  native::WriteBack before;
  for (const Tensor& param : params()) before.copy(param.detach());
  try {
    const Tensor loss = iterate(closure, state);
    lists.run();
    return loss;
  } catch (...) {
    before.run();
    throw;
  }
}

Tensor LBFGS::iterate(const LossClosure& closure, LBFGSParamState& state) {
  const auto& o = static_cast<const LBFGSOptions&>(param_groups_[0].options());
  const int64_t max_eval = o.max_eval().value_or(o.max_iter() * 5 / 4);
  const Tensor first_loss = evaluate(closure);
  double loss = first_loss.item<double>();
  Tensor grad = flat_grad();
  check_vectors(state, grad);
  int64_t evaluations = 1;
  state.func_evals(state.func_evals() + 1);
  if (largest(grad) <= o.tolerance_grad()) return first_loss;

  for (int64_t iteration = 1; iteration <= o.max_iter(); ++iteration) {
    state.n_iter(state.n_iter() + 1);
    const bool is_first = state.n_iter() == 1;
    if (!is_first) remember(state, grad, o.history_size());
    state.d(quasi_newton_direction(state, grad));
    const Tensor& direction = state.d();
    const double previous_loss = loss;
    state.prev_flat_grad(grad).prev_loss(loss);
    state.t(is_first ? std::min(1.0, 1 / grad.abs().sum().item<double>()) * o.lr() : o.lr());

    const double slope = grad.dot(direction).item<double>();
    if (slope > -o.tolerance_change()) break;

    int64_t new_evaluations = 0;
    if (o.line_search_fn()) {
      std::vector<Tensor> start;
      for (const Tensor& param : params()) start.push_back(param.detach().clone());
      const auto at = [&](double step) {
        move_params(step, direction);
        const double value = evaluate(closure).item<double>();
        const Tensor gradient = flat_grad();
        for (size_t i = 0; i < start.size(); ++i) params()[i].detach().copy_(start[i]);
        return std::pair(value, gradient);
      };
      const LineSearchResult found =
          strong_wolfe(at, {0, loss, grad, slope}, state.t(), direction, o.tolerance_change(), max_eval - evaluations);
      loss = found.point.loss;
      grad = found.point.gradient;
      state.t(found.point.step);
      new_evaluations = found.evaluations;
      move_params(state.t(), direction);
    } else {
      move_params(state.t(), direction);
      if (iteration == o.max_iter()) break;  // the next step evaluates anyway
      loss = evaluate(closure).item<double>();
      grad = flat_grad();
      new_evaluations = 1;
    }
    evaluations += new_evaluations;
    state.func_evals(state.func_evals() + new_evaluations);

    if (evaluations >= max_eval || largest(grad) <= o.tolerance_grad()) break;
    if (largest(direction * state.t()) <= o.tolerance_change()) break;
    if (std::abs(loss - previous_loss) < o.tolerance_change()) break;
  }
  return first_loss;
}

}  // namespace rush::optim
