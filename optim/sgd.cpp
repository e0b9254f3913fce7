#include "optim/sgd.h"

#include "core/ops/basic.h"
#include "core/ops/sparse/sparse_parts.h"
#include "optim/step_lists.h"

namespace rush::optim {

void SGDOptions::check() const {
  DescribedOptions::check();
  RUSH_CHECK_VALUE(!nesterov() || (momentum() > 0 && dampening() == 0),
                   "SGD: Nesterov's momentum needs a momentum and no dampening");
}

void SGDParamState::count_there(const Tensor& param, bool capturable) {
  Tensor& counter = step_counter();
  if (capturable && !counter.defined())
    counter = make_device_number(param, int64_t{momentum_buffer().defined()}, kInt64);
  if (!capturable && counter.defined() && std::exchange(counter, Tensor()).item<int64_t>() == 0) {
    momentum_buffer().reset();
  }
}

void SGD::gather(size_t group, StepLists& lists) const {
  lists.sparse_apart();
  StepOptimizer::gather(group, lists);
  const auto& o = static_cast<const SGDOptions&>(param_groups_[group].options());
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

RUSH_OPTIMIZER_PARTS(, SGDOptions, SGDParamState, SgdStep);

}  // namespace rush::optim
