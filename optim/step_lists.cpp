#include "optim/step_lists.h"

#include "core/ops/copy.h"
#include "core/ops/factories.h"
#include "core/ops/view.h"

namespace rush::optim {

namespace {

// Complex numbers are optimised as pairs of real ones.
Tensor as_real(const Tensor& tensor) { return tensor.defined() && tensor.is_complex() ? view_as_real(tensor) : tensor; }

}  // namespace

StepLists::Batch& StepLists::batch_for(const Tensor& param, bool flag) {
  for (Batch& batch : batches_) {
    const Tensor& first = batch.params[0];
    if (batch.flag == flag && first.device() == param.device() && first.scalar_type() == param.scalar_type()) {
      return batch;
    }
  }
  batches_.emplace_back();
  batches_.back().flag = flag;
  return batches_.back();
}

StepLists::Batch& StepLists::add_to_batch(const Tensor& param, std::initializer_list<Tensor> states, bool flag) {
  RUSH_CHECK_VALUE(param.grad().layout() == kStrided,
                   "optimizer: a sparse gradient is for SGD or SparseAdam; this optimiser takes dense ones");
  Tensor target = param;
  if (!param.is_non_overlapping_and_dense()) {
    target = param.detach().contiguous();
    to_copy_back_.emplace_back(param, target);
  }
  Tensor grad = param.grad().detach();
  if (grad.strides() != target.strides() || grad.scalar_type() != target.scalar_type()) {
    grad = empty_like(target).copy_(grad);
  }
  written_.push_back(param);
  target = as_real(target.detach());
  Batch& batch = batch_for(target, flag);
  batch.params.push_back(target);
  batch.grads.push_back(as_real(grad));
  size_t i = 0;
  for (const Tensor& state : states) batch.states[i++].push_back(as_real(state));
  return batch;
}

StepLists::Batch& StepLists::add(const Tensor& param, std::initializer_list<Tensor> states, int64_t step, bool flag) {
  Batch& batch = add_to_batch(param, states, flag);
  batch.steps.push_back(step);
  return batch;
}

StepLists::Batch& StepLists::add(const Tensor& param, std::initializer_list<Tensor> states,
                                 const Tensor& step_counter) {
  Batch& batch = add_to_batch(param, states, false);
  batch.step_counters.push_back(step_counter);
  return batch;
}

void StepLists::finish() {
  for (const auto& [param, updated] : to_copy_back_) param.copy_(updated);
  for (const Tensor& param : written_) param.bump_version();
}

}  // namespace rush::optim
