// What goes through a module and all below it: registered tensors and their names, modes, dtypes, gradients and state
// dicts.
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "autograd/compile/compile.h"
#include "autograd/grad_mode.h"
#include "core/memory/claim.h"
#include "core/ops/pointwise/compare.h"
#include "core/ops/view/copy.h"
#include "core/threads/stack_space.h"
#include "nn/module.h"
#include "nn/registered_name.h"
#include "nn/state/module_state.h"

namespace rush::nn {

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  check_registered_name("Parameter", name);
  if (tensor.defined()) {
    RUSH_CHECK_VALUE(tensor.is_leaf(), "register_parameter: '", name, "' is the result of a recorded computation; ",
                     "pass its detach()");
    tensor.set_requires_grad(requires_grad);
    rush::detail::claim_memory(tensor, MemoryUse::Parameter);
  }
  return parameters_.insert(std::move(name), std::move(tensor));
}

Tensor& Module::register_buffer(std::string name, Tensor tensor) {
  check_registered_name("Buffer", name);
  rush::detail::claim_memory(tensor, MemoryUse::Buffer);
  return buffers_.insert(std::move(name), std::move(tensor));
}

detail::ModuleWalk::ModuleWalk(const Module& root, std::string name) : name_(std::move(name)) {
  levels_.push_back({nullptr, const_cast<Module*>(&root), name_.size(), name_.size()});
}

void detail::ModuleWalk::next() {
  while (!levels_.empty()) {
    Level& last = levels_.back();
    name_.resize(last.name_size);
    if (last.next_child == last.module->children_.size()) {
      levels_.pop_back();
      continue;
    }
    const auto& child = last.module->children_[last.next_child++];
    if (!name_.empty()) name_ += '.';
    name_ += child.key();
    levels_.push_back({child.value(), child.value().get(), name_.size(), child.key().size()});
    return;
  }
}

// The defined tensors that `own` gives of each module, each tensor once.
template <class Own>
static OrderedDict<std::string, Tensor> collect_tensors(const Module& root, bool recurse, const char* what,
                                                        const Own& own) {
  OrderedDict<std::string, Tensor> result(what);
  std::unordered_set<const TensorImpl*> seen;
  const auto add = [&](const std::string& prefix, const Module& module) {
    for (const auto& item : own(module)) {
      if (item->defined() && seen.insert(item->impl()).second) {
        result.insert(detail::join_names(prefix, item.key()), item.value());
      }
    }
  };
  if (recurse) {
    root.apply(add);
  } else {
    add("", root);
  }
  return result;
}

OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  return collect_tensors(
      *this, recurse, "Parameter", [](const Module& m) -> const auto& { return m.parameters_; });
}

OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  return collect_tensors(
      *this, recurse, "Buffer", [](const Module& m) -> const auto& { return m.buffers_; });
}

// Of which module it is. Unlike the address itself, that of two modules is no other's.
static uint64_t hash_of(const Module& module) {
  const Module* const address = &module;
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(&address), sizeof(address)});
}

void Module::train(bool on) {
  check_stack_space("Module::train");
  if (is_training_ != on) {
    compiler::unseen_state ^= hash_of(*this);
    ++compiler::unseen_changes;
  }
  for (auto& child : children_) child.value()->train(on);
  is_training_ = on;
}

void Module::convert(const TensorOptions& target, bool non_blocking) {
  const NoGradGuard no_grad;
  const auto converted = [&](const Tensor& tensor) {
    const bool takes_dtype = is_differentiable(tensor.scalar_type());
    return tensor.detach().to(takes_dtype ? target : target.dtype(std::nullopt), non_blocking);
  };
  for (auto* tensors : {&parameters_, &buffers_}) {
    for (auto& item : *tensors) {
      if (!item->defined()) continue;
      const Tensor moved = converted(item.value());
      if (!moved.is_alias_of(item.value())) item->set_data(moved);
      if (item->grad().defined()) item->mutable_grad() = converted(item->grad());
    }
  }
}

void Module::to(Device device, ScalarType dtype, bool non_blocking) {
  check_stack_space("Module::to");
  for (auto& child : children_) child.value()->to(device, dtype, non_blocking);
  convert(TensorOptions(dtype).device(device), non_blocking);
}

void Module::to(ScalarType dtype, bool non_blocking) {
  check_stack_space("Module::to");
  for (auto& child : children_) child.value()->to(dtype, non_blocking);
  convert(TensorOptions(dtype), non_blocking);
}

void Module::to(Device device, bool non_blocking) {
  check_stack_space("Module::to");
  for (auto& child : children_) child.value()->to(device, non_blocking);
  convert(TensorOptions(device), non_blocking);
}

void Module::zero_grad(bool set_to_none) {
  check_stack_space("Module::zero_grad");
  for (auto& child : children_) child.value()->zero_grad(set_to_none);
  for (auto& parameter : parameters_) {
    if (!parameter->defined() || !parameter->grad().defined()) continue;
    Tensor& grad = parameter->mutable_grad();
    grad = set_to_none ? Tensor() : grad.detach().zero_();
  }
}

}  // namespace rush::nn

namespace rush {

namespace {

OrderedDict<std::string, Tensor> named_tensors(const nn::Module& module) {
  OrderedDict<std::string, Tensor> all = module.named_parameters();
  all.update(module.named_buffers());
  return all;
}

}  // namespace

namespace {

// What is registered in two places stands in PyTorch's files under both names. Takes the further ones.
void read_further_names(const nn::Module& module, const OrderedDict<std::string, Tensor>& tensors,
                        const std::vector<Tensor>& read, StateFields& fields) {
  std::unordered_map<const TensorImpl*, size_t> places;
  for (size_t i = 0; i < tensors.size(); ++i) places[tensors[i]->impl()] = i;
  const auto check = [&](const std::string& name, const Tensor& own) {
    if (!own.defined()) return;
    const size_t place = places.at(own.impl());
    if (name == tensors[place].key()) return;
    Tensor again;
    fields.tensor(name, again, own, /*required=*/false);
    if (!again.defined() || !read[place].defined() || equal(again, read[place])) return;
    if (is_differentiable(own.scalar_type()) && allclose(again, read[place], 0, 0, /*equal_nan=*/true)) return;
    fields.problem(name, "is the module's " + tensors[place].key() + ", for which the dict has other numbers");
  };
  for (nn::detail::ModuleWalk walk(module, ""); !walk.done(); walk.next()) {
    for (const auto& item : walk.parameters()) check(nn::detail::join_names(walk.name(), item.key()), *item);
    for (const auto& item : walk.buffers()) check(nn::detail::join_names(walk.name(), item.key()), *item);
  }
}

}  // namespace

StateDict state_dict(const nn::Module& module) {
  StateDict dict("state");
  for (const auto& item : named_tensors(module)) dict.insert(item.key(), item->detach());
  return dict;
}

void load_state_dict(nn::Module& module, const StateDict& dict) {
  const OrderedDict<std::string, Tensor> tensors = named_tensors(module);
  StateFields fields(dict);
  std::vector<Tensor> read;
  for (const auto& item : tensors) {
    read.emplace_back();
    fields.tensor(item.key(), read.back(), item.value());
  }
  read_further_names(module, tensors, read, fields);
  fields.finish("load_state_dict");
  const NoGradGuard no_grad;
  for (size_t i = 0; i < read.size(); ++i) tensors[i].value().detach().copy_(read[i]);
}

}  // namespace rush
