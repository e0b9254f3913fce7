#include "optim/optimizer.h"

#include <unordered_set>

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"

namespace rush::optim {

Optimizer::Optimizer(const std::vector<OptimizerParamGroup>& param_groups, std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  defaults_->check();
  for (const OptimizerParamGroup& group : param_groups) add_param_group(group);
}

void Optimizer::add_param_group(const OptimizerParamGroup& param_group) {
  std::unordered_set<const TensorImpl*> known;
  for (const OptimizerParamGroup& group : param_groups_) {
    for (const Tensor& param : group.params()) known.insert(param.impl());
  }
  for (const Tensor& param : param_group.params()) {
    RUSH_CHECK_VALUE(param.defined(), "optimizer: cannot optimize an undefined tensor");
    RUSH_CHECK_VALUE(param.is_leaf(), "optimizer: cannot optimize a tensor that is the result of a computation, shape ",
                     param.sizes());
    RUSH_CHECK_VALUE(known.insert(param.impl()).second, "optimizer: a parameter of shape ", param.sizes(),
                     " appears twice");
  }
  OptimizerParamGroup group(param_group);
  if (!group.has_options()) group.set_options(defaults_->clone());
  group.options().check();
  param_groups_.push_back(std::move(group));
}

void Optimizer::zero_grad(bool set_to_none) {
  for (OptimizerParamGroup& group : param_groups_) {
    for (const Tensor& param : group.params()) {
      if (!param.grad().defined()) continue;
      Tensor& grad = param.mutable_grad();
      if (set_to_none) {
        grad.reset();
      } else {
        grad = grad.detach();
        grad.zero_();
      }
    }
  }
}

Tensor Optimizer::evaluate(const LossClosure& closure) {
  if (!closure) return {};
  const EnableGradGuard recording;
  return closure();
}

}  // namespace rush::optim
