#include "optim/sgd.h"

#include "autograd/grad_mode.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sparse/sparse_parts.h"
#include "core/ops/view/view.h"
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
  StepLists lists("SGD", *this);
  lists.sparse_apart();
  for (size_t group = 0; group < param_groups_.size(); ++group) {
    const bool momentum = options(group).momentum() != 0;
    lists.gather<SGDParamState>(group, [&](SGDParamState& state) {
      return StepLists::StateTensors{{{"momentum_buffer", momentum ? &state.momentum_buffer() : nullptr}}};
    });
    gather_sparse(group, lists);
  }
  lists.run(ops::sgd_step_, [&](const StepLists::Batch& batch) {
    const SGDOptions& o = options(batch.group);
    // Whether a capturable step is a parameter's first is known to its counter.
    const bool first = batch.first && !o.capturable();
    return step_options(o.lr(), o.momentum(), o.dampening(), o.weight_decay(), o.nesterov(), o.maximize(), first);
  });
  return loss;
}

const SGDOptions& SGD::options(size_t group) const {
  return static_cast<const SGDOptions&>(param_groups_[group].options());
}

// Only the rows, or elements, that the gradient has entries for are read and written.
void SGD::gather_sparse(size_t group, StepLists& lists) const {
  const SGDOptions& o = options(group);
  lists.gather_sparse(group, [&](const StepLists::SparseEntry& entry) {
    RUSH_CHECK_VALUE(o.momentum() == 0 && o.weight_decay() == 0,
                     "SGD: a sparse gradient is not for a momentum or weight decay, which change every element; "
                     "SparseAdam has a momentum");
    RUSH_CHECK_VALUE(!o.capturable(), "SGD: with the option capturable it takes dense gradients only");
    const Tensor& target = entry.target;
    const Tensor grad = target.device().is_accelerator() ? entry.grad.coalesce() : entry.grad;
    const Tensor change = grad._values().to(target.scalar_type()) * (o.maximize() ? o.lr() : -o.lr());
    const int64_t sparse_dim = grad.sparse_dim();
    if (sparse_dim == 1) {
      lists.add_later(target, grad._indices().select(0, 0), change);
    } else if (sparse_dim == 0) {
      lists.add_later(target.unsqueeze(0), zeros({1}, grad._indices().options()), change.sum(0, /*keepdim=*/true));
    } else {
      const IntArrayRef sizes = target.sizes().slice(0, static_cast<size_t>(sparse_dim));
      lists.add_later(native::with_places(target, sparse_dim), native::places_of(grad._indices(), sizes), change);
    }
  });
}

}  // namespace rush::optim
