#include "optim/step_lists.h"

#include "autograd/accumulate_grad.h"
#include "core/device/guard.h"
#include "core/memory/claim.h"
#include "core/ops/basic.h"
#include "core/ops/sparse/sparse_parts.h"
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

// Calls each(name, tensor, like) for the tensors that the step updates; `like` has the sizes of each.
template <class Each>
void StepLists::for_each_tensor(StepParamState& state, const StepDescription& step, const Tensor& param,
                                const Each& each) {
  const StateTensors tensors = state.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].tensor || !step.uses[i]) continue;
    if (!step.like) {
      each(i, tensors[i], param);
    } else if (const Tensor like = step.like(i, param); like.defined()) {
      each(i, tensors[i], like);
    }
  }
}

void StepLists::check_state_shapes(StepParamState& state, const StepDescription& step, const Tensor& param,
                                   Place place) const {
  const StateTensors tensors = state.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].tensor || !tensors[i].tensor->defined()) continue;
    const Tensor like = step.like(i, param);
    RUSH_CHECK_VALUE(like.defined() && tensors[i].tensor->sizes() == like.sizes(), name_, ": the state ",
                     tensors[i].name, " of parameter ", place.index, " of group ", place.group, " has shape ",
                     tensors[i].tensor->sizes(), ", which is not that of a parameter of shape ", param.sizes(),
                     "; load a state that fits, or erase it");
  }
}

bool StepLists::are_ready(StepParamState& state, const StepDescription& step, const Tensor& like, Place place) const {
  if (step.like) check_state_shapes(state, step, like, place);
  bool ready = !step.composed;
  for_each_tensor(state, step, like, [&](size_t, const StateTensor& each, const Tensor& as) {
    if (!each.tensor->defined()) {
      ready = false;
      return;
    }
    check_state(*each.tensor, as, name_, ": the state ", each.name, " of parameter ", place.index, " of group ",
                place.group);
    ready = ready && each.tensor->strides() == as.strides();
  });
  return ready;
}

void StepLists::check_counter(const Tensor& counter, ScalarType dtype, const Tensor& param, Place place) const {
  RUSH_CHECK_VALUE(counter.scalar_type() == dtype && counter.numel() == 1 && counter.device() == param.device(), name_,
                   ": a counter of parameter ", place.index, " of group ", place.group, " is ", counter.scalar_type(),
                   " of shape ", counter.sizes(), " on ", counter.device(), ", expected one ", dtype, " on ",
                   param.device());
}

// ---- what the kernels take

StepLists::Entry StepLists::entry_for(const Tensor& param, Place place, const StepDescription& step) {
  check(param, place);
  RUSH_CHECK_TYPE(!step.composed || !param.is_complex(), name_, ": parameter ", place.index, " of group ", place.group,
                  " is of ", param.scalar_type(), "; real ones can be optimised");
  const Tensor& grad = param.grad();
  RUSH_CHECK_VALUE(grad.layout() == kStrided, name_, ": the gradient of parameter ", place.index, " of group ",
                   place.group, " is sparse; SGD and SparseAdam take sparse ones");
  const Tensor target = step.composed ? copies_.copy(param.detach()) : copies_.dense(param);
  const bool alike = grad.strides() == target.strides() && grad.scalar_type() == target.scalar_type();
  return {target, alike ? grad : laid_out_as(target, grad.detach())};
}

StepLists::SparseEntry StepLists::sparse_entry_for(const Tensor& param, Place place) {
  check(param, place);
  // Writes of rows that are not row-major would need a table of their elements.
  const Tensor target = param.is_contiguous() ? param.detach() : copies_.copy(param.detach());
  return {param, place, target, native::as_coo(param.grad().detach())};
}

StepLists::Batch& StepLists::batch_for(const Tensor& param, size_t group, const StepDescription& step, bool first,
                                       const std::array<bool, 3>& keeps) {
  for (Batch& batch : batches_) {
    const Tensor& other = batch.params[0];
    if (batch.group == group && batch.first == first && batch.keeps == keeps && other.device() == param.device() &&
        other.scalar_type() == param.scalar_type()) {
      return batch;
    }
  }
  Batch& batch = batches_.emplace_back();
  batch.group = group;
  batch.first = first;
  batch.keeps = keeps;
  batch.step = step;
  return batch;
}

StepLists::Batch& StepLists::add(const Entry& entry, const Found& found, size_t group, const StepDescription& step) {
  const Tensor param = as_real(entry.param);
  std::array<Tensor*, 3> tensors{};
  if (found.state) {
    for_each_tensor(*found.state, step, entry.param,
                    [&](size_t i, const StateTensor& each, const Tensor&) { tensors[i] = each.tensor; });
  }
  const std::array<bool, 3> keeps = {tensors[0] != nullptr, tensors[1] != nullptr, tensors[2] != nullptr};
  Batch& batch = batch_for(param, group, step, found.first, keeps);
  batch.params.push_back(param);
  batch.grads.push_back(as_real(entry.grad));
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]) batch.states[i].push_back(as_real(*tensors[i]));
  }
  return batch;
}

void StepLists::gather(size_t group, const StepDescription& step) {
  const std::vector<Tensor>& params = optimizer_.param_groups()[group].params();
  const bool capturable = optimizer_.param_groups()[group].options().get_capturable();
  const bool keeps_state = step.counts || capturable || step.uses[0];
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& param = params[i];
    const Place place{group, i};
    if (!has_gradient(param, place) || (sparse_apart_ && param.grad().layout() != kStrided)) continue;
    const Entry entry = entry_for(param, place, step);
    const Found found = keeps_state ? state_for(param, entry.param, place, step, capturable) : Found{};
    Batch& batch = add(entry, found, group, step);
    if (!found.state) continue;
    StepParamState& state = *found.state;
    const StepParamState::MuProduct product = state.mu_product_slots();
    if (capturable) {
      check_counter(state.step_counter(), kInt64, param, place);
      batch.step_counters.push_back(state.step_counter());
      if (product.counter) batch.mu_product_counters.push_back(*product.counter);
    } else if (step.counts) {
      batch.steps.push_back(state.step() + 1);
      assign_later(state.step(), batch.steps.back());
      if (!product.on_host) continue;
      const double momentum = step.momentum_at({step.options.data(), step.num_options}, batch.steps.back());
      batch.mu_products.push_back(*product.on_host * momentum);
      assign_later(*product.on_host, batch.mu_products.back());
    }
  }
}

// ---- states

OptimizerParamState* StepLists::known_state(const Tensor& param, Place place, const std::type_info& type) const {
  const auto found = optimizer_.state().find(param.impl());
  if (found == optimizer_.state().end() || !found->second) return nullptr;
  const OptimizerParamState& known = *found->second;
  RUSH_CHECK_TYPE(typeid(known) == type, name_, ": the state of parameter ", place.index, " of group ", place.group,
                  " is that of another kind of optimiser");
  return found->second.get();
}

OptimizerParamState& StepLists::copy_of_state(const Tensor& param, Place place, const std::type_info& type,
                                              std::unique_ptr<OptimizerParamState> (*make)()) {
  const OptimizerParamState* known = known_state(param, place, type);
  RUSH_CHECK_VALUE(!made_.contains(param.impl()), name_, ": parameter ", place.index, " of group ", place.group,
                   " appears twice");
  return *(made_[param.impl()] = known ? known->clone() : make());
}

StepLists::Found StepLists::state_for(const Tensor& param, const Tensor& like, Place place, const StepDescription& step,
                                      bool capturable) {
  auto* known = static_cast<StepParamState*>(known_state(param, place, *step.state_type));
  if (known && are_ready(*known, step, like, place) && known->counts_there(capturable)) return {known, false};
  auto& copy = static_cast<StepParamState&>(copy_of_state(param, place, *step.state_type, step.make_state));
  copy.count_there(param, capturable);
  const bool first = make_ready(copy, step, like);
  return {&copy, first};
}

bool StepLists::make_ready(StepParamState& state, const StepDescription& step, const Tensor& like) {
  bool missing = false;
  for_each_tensor(state, step, like, [&](size_t i, const StateTensor& each, const Tensor& as) {
    Tensor& tensor = *each.tensor;
    if (!tensor.defined()) {
      check_state_can_be_made();
      missing = true;
      tensor = zeros_like(as);
      rush::detail::claim_memory(tensor, MemoryUse::OptimizerState);
      if (step.initial[i] != 0) real_view(tensor).fill_(step.initial[i]);
    } else if (step.composed || !(tensor.strides() == as.strides())) {
      check_state_can_be_made();
      tensor = laid_out_as(as, tensor.detach());
      rush::detail::claim_memory(tensor, MemoryUse::OptimizerState);
    }
  });
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

void StepLists::take(Batch& batch) {
  StepDescription& step = batch.step;
  // Whether a capturable step is a parameter's first is known to its counter.
  if (step.ends_with_first) step.options[step.num_options - 1] = batch.first && batch.step_counters.empty();
  const auto& [states0, states1, states2] = batch.states;
  (*step.op)(batch.params, batch.grads, states0, states1, states2, batch.steps, batch.mu_products,
             {step.options.data(), step.num_options}, batch.step_counters, batch.mu_product_counters, batch.numbers,
             batch.found_inf, batch.functors);
}

void StepLists::run() {
  prepare();
  for (const bool composed : {true, false}) {
    for (Batch& batch : batches_) {
      if (batch.step.composed == composed) take(batch);
    }
  }
  finish();
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
