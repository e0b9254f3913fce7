#include "optim/step_lists.h"

#include "autograd/accumulate_grad.h"
#include "core/device/guard.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/sparse/sparse_parts.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"
#include "optim/real_view.h"
#include "optim/state/check_state.h"

namespace rush::optim {

namespace {

// Complex numbers are optimised as pairs of real ones.
Tensor as_real(const Tensor& tensor) { return tensor.is_complex() ? real_view(tensor) : tensor; }

Tensor laid_out_as(const Tensor& like, const Tensor& values) { return empty_like(like).copy_(values); }

}  // namespace

// ---- what does not fit

bool StepLists::has_gradient(const Tensor& param, Place place) const {
  RUSH_CHECK_VALUE(param.defined(), name_, ": parameter ", place.index, " of group ", place.group, " is undefined");
  return param.grad().defined();
}

void StepLists::check(const Tensor& param, Place place) const {
  const char *parameter = ": parameter ", *group = " of group ";
  RUSH_CHECK_TYPE(is_differentiable(param.scalar_type()), name_, parameter, place.index, group, place.group, " is of ",
                  param.scalar_type(), "; floating and complex ones can be optimised");
  RUSH_CHECK_VALUE(param.layout() == kStrided, name_, parameter, place.index, group, place.group, " has layout ",
                   param.layout(), "; dense ones can be optimised");
  RUSH_CHECK_VALUE(param.is_non_overlapping_and_dense() || !may_overlap(param.sizes(), param.strides()), name_,
                   parameter, place.index, group, place.group, " has sizes ", param.sizes(), " and strides ",
                   param.strides(), ": several of its elements share memory; clone it first");
  check_gradient(param.grad(), param, name_, ": the gradient of parameter ", place.index, group, place.group);
}

bool StepLists::are_ready(const StateTensors& tensors, const Tensor& like, Place place) const {
  bool ready = true;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor) continue;
    if (!tensor->defined()) {
      ready = false;
      continue;
    }
    check_state(*tensor, like, name_, ": the state ", name, " of parameter ", place.index, " of group ", place.group);
    ready = ready && tensor->strides() == like.strides();
  }
  return ready;
}

void StepLists::check_counter(const Tensor& counter, ScalarType dtype, const Tensor& param, Place place) const {
  RUSH_CHECK_VALUE(counter.scalar_type() == dtype && counter.numel() == 1 && counter.device() == param.device(), name_,
                   ": a counter of parameter ", place.index, " of group ", place.group, " is ", counter.scalar_type(),
                   " of shape ", counter.sizes(), " on ", counter.device(), ", expected one ", dtype, " on ",
                   param.device());
}

void StepLists::throw_other_state(Place place) const {
  RUSH_THROW(TypeError, name_, ": the state of parameter ", place.index, " of group ", place.group,
             " is that of another kind of optimiser");
}

void StepLists::check_is_new(const Tensor& param, Place place) const {
  RUSH_CHECK_VALUE(!made_.contains(param.impl()), name_, ": parameter ", place.index, " of group ", place.group,
                   " appears twice");
}

// ---- what the kernels take

StepLists::Entry StepLists::entry_for(const Tensor& param, Place place) {
  check(param, place);
  const Tensor& grad = param.grad();
  RUSH_CHECK_VALUE(grad.layout() == kStrided, name_, ": the gradient of parameter ", place.index, " of group ",
                   place.group, " is sparse; SGD and SparseAdam take sparse ones");
  const Tensor target = copies_.dense(param);
  const bool alike = grad.strides() == target.strides() && grad.scalar_type() == target.scalar_type();
  return {target, alike ? grad : laid_out_as(target, grad.detach())};
}

StepLists::SparseEntry StepLists::sparse_entry_for(const Tensor& param, Place place) {
  check(param, place);
  // Writes of rows that are not row-major would need a table of their elements.
  const Tensor target = param.is_contiguous() ? param.detach() : copies_.copy(param.detach());
  return {param, place, target, native::as_coo(param.grad().detach())};
}

StepLists::Batch& StepLists::batch_for(const Tensor& param, size_t group, bool first) {
  for (Batch& batch : batches_) {
    const Tensor& other = batch.params[0];
    if (batch.group == group && batch.first == first && other.device() == param.device() &&
        other.scalar_type() == param.scalar_type()) {
      return batch;
    }
  }
  Batch& batch = batches_.emplace_back();
  batch.group = group;
  batch.first = first;
  return batch;
}

StepLists::Batch& StepLists::add(const Entry& entry, const StateTensors& tensors, size_t group, bool first) {
  const Tensor param = as_real(entry.param);
  Batch& batch = batch_for(param, group, first);
  batch.params.push_back(param);
  batch.grads.push_back(as_real(entry.grad));
  for (size_t i = 0; i < kMostStates; ++i) {
    if (tensors[i].tensor) batch.states[i].push_back(as_real(*tensors[i].tensor));
  }
  return batch;
}

// ---- states

OptimizerParamState* StepLists::known_state(const Tensor& param) const {
  const auto found = optimizer_.state().find(param.impl());
  return found == optimizer_.state().end() ? nullptr : found->second.get();
}

bool StepLists::make_ready(const StateTensors& tensors, const Tensor& like, double initial) {
  bool missing = false;
  for (const StateTensor& state : tensors) {
    if (!state.tensor) continue;
    Tensor& tensor = *state.tensor;
    if (!tensor.defined()) {
      check_state_can_be_made();
      missing = true;
      tensor = zeros_like(like);
      if (initial != 0) real_view(tensor).fill_(initial);
    } else if (!(tensor.strides() == like.strides())) {
      check_state_can_be_made();
      tensor = laid_out_as(like, tensor.detach());
    }
  }
  return missing;
}

// ---- writes

void StepLists::assign_later(const Tensor& table, const Tensor& rows, const Tensor& values) {
  writes_.push_back(native::prepare_slice_write(table, 0, rows, values, name_, IndexWrite::Assign));
}

void StepLists::add_later(const Tensor& table, const Tensor& rows, const Tensor& values) {
  // On a GPU, additions are sorted by their places first, which takes memory.
  if (table.device().is_accelerator()) return assign_later(table, rows, index_select(table, 0, rows) + values);
  writes_.push_back(native::prepare_slice_write(table, 0, rows, values, name_, IndexWrite::Add));
}

void StepLists::prepare() {
  for (Batch& batch : batches_) {
    if (batch.step_counters.empty()) continue;
    const Device device = batch.params[0].device();
    const auto count = static_cast<int64_t>(batch.params.size());
    batch.numbers = optimizer_.numbers_on_device(batch.group, device);
    batch.found_inf = optimizer_.found_inf_on(device);
    batch.functors = empty({count * kFunctorBytes}, TensorOptions(kUInt8).device(device));
    const auto& states = batch.states;
    optimizer_.note_captured_step(batch.params,
                                  {states[0], states[1], states[2], batch.step_counters, batch.mu_product_counters});
  }
  if (!made_.empty()) optimizer_.state_.reserve(optimizer_.state_.size() + made_.size());
}

void StepLists::finish() {
  for (const native::SliceWrite& write : writes_) {
    const DeviceGuard guard(write.view.device());
    write.run();
    write.view.bump_version();
  }
  copies_.run();
  for (const Batch& batch : batches_) {
    for (const Tensor& param : batch.params) param.bump_version();
  }
  for (const auto& [number, next] : counts_) *number = next;
  for (const auto& [number, next] : products_) *number = next;
  for (auto& [param, state] : made_) {
    if (const auto known = optimizer_.state_.find(param); known != optimizer_.state_.end()) known->second.swap(state);
  }
  optimizer_.state_.merge(made_);  // the nodes move, and there is room for them
}

}  // namespace rush::optim
