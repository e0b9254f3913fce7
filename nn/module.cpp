#include "nn/module.h"

#include <cxxabi.h>

#include <cstdlib>
#include <ostream>
#include <typeinfo>
#include <unordered_set>

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"

namespace rush::nn {

namespace {

std::string demangle(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

void check_name(const char* what, const std::string& name) {
  RUSH_CHECK_VALUE(!name.empty(), what, " name must not be empty");
  RUSH_CHECK_VALUE(name.find('.') == std::string::npos, what, " name must not contain a dot (got '", name, "')");
}

// The defined tensors that `own` gives of each module, each tensor once.
template <class Own>
OrderedDict<std::string, Tensor> collect_tensors(const Module& root, bool recurse, const char* what, const Own& own) {
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

void copy_values(const std::string& name, const OrderedDict<std::string, Tensor>& from,
                 OrderedDict<std::string, Tensor>& to, const std::optional<Device>& device) {
  RUSH_CHECK(from.size() == to.size(), "clone: ", name, " has ", from.size(), " tensors, after reset() its copy has ",
             to.size(), "; register all parameters and buffers in reset(), not in the constructor");
  for (const auto& item : from) {
    Tensor& target = to[item.key()];
    if (!item->defined()) {
      target.reset();
      continue;
    }
    target.set_data(device ? item->detach().to(*device, /*non_blocking=*/false, /*copy=*/true)
                           : item->detach().clone());
    target.set_requires_grad(item->requires_grad());
  }
}

}  // namespace

std::string detail::join_names(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

Module::Module() = default;
Module::Module(std::string name) : name_(std::move(name)) {}

const std::string& Module::name() const noexcept {
  // Not known in the constructor, where the object is not yet of its class.
  if (name_.empty()) name_ = demangle(typeid(*this).name());
  return name_;
}

Module::Module(const Module&) = default;
Module& Module::operator=(const Module&) = default;
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&&) noexcept = default;
Module::~Module() = default;

std::shared_ptr<Module> Module::clone(const std::optional<Device>&) const {
  RUSH_THROW(NotImplementedError, "clone: ", name(), " cannot be cloned; derive it from rush::nn::Cloneable<", name(),
             "> instead of rush::nn::Module");
}

void Module::clone_(Module&, const std::optional<Device>&) {
  RUSH_THROW(NotImplementedError, "clone: ", name(), " cannot be cloned; derive it from rush::nn::Cloneable");
}

void Module::forget_members() {
  parameters_.clear();
  buffers_.clear();
  children_.clear();
}

void Module::copy_members(const Module& from, const std::optional<Device>& device) {
  copy_values(from.name(), from.parameters_, parameters_, device);
  copy_values(from.name(), from.buffers_, buffers_, device);
  RUSH_CHECK(children_.size() == from.children_.size(), "clone: ", from.name(), " has ", from.children_.size(),
             " submodules, after reset() its copy has ", children_.size(),
             "; register all submodules in reset(), not in the constructor");
  for (const auto& child : from.children_) children_[child.key()]->clone_(*child.value(), device);
}

OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  return collect_tensors(
      *this, recurse, "Parameter", [](const Module& m) -> const auto& { return m.parameters_; });
}

OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  return collect_tensors(
      *this, recurse, "Buffer", [](const Module& m) -> const auto& { return m.buffers_; });
}

std::vector<Tensor> Module::parameters(bool recurse) const { return named_parameters(recurse).values(); }
std::vector<Tensor> Module::buffers(bool recurse) const { return named_buffers(recurse).values(); }

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_modules(const std::string& name_prefix,
                                                                        bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> result("Module");
  std::unordered_set<const Module*> seen;
  if (include_self) result.insert(name_prefix, detail::shared_module(*this));
  seen.insert(this);
  for (const auto& child : children_) {
    child.value()->apply(
        [&](const std::string& name, const std::shared_ptr<Module>& module) {
          if (seen.insert(module.get()).second) result.insert(name, module);
        },
        detail::join_names(name_prefix, child.key()));
  }
  return result;
}

std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  return named_modules("", include_self).values();
}

std::shared_ptr<Module> detail::shared_module(const Module& module) {
  const std::shared_ptr<const Module> shared = module.weak_from_this().lock();
  RUSH_CHECK(shared, module.name(),
             " is not held by a std::shared_ptr: make it with std::make_shared, or pass include_self=false");
  return std::const_pointer_cast<Module>(shared);
}

void Module::train(bool on) {
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
      if (moved.data_ptr() != item->data_ptr() || moved.scalar_type() != item->scalar_type()) item->set_data(moved);
      if (item->grad().defined()) item->mutable_grad() = converted(item->grad());
    }
  }
}

void Module::to(Device device, ScalarType dtype, bool non_blocking) {
  for (auto& child : children_) child.value()->to(device, dtype, non_blocking);
  convert(TensorOptions(dtype).device(device), non_blocking);
}

void Module::to(ScalarType dtype, bool non_blocking) {
  for (auto& child : children_) child.value()->to(dtype, non_blocking);
  convert(TensorOptions(dtype), non_blocking);
}

void Module::to(Device device, bool non_blocking) {
  for (auto& child : children_) child.value()->to(device, non_blocking);
  convert(TensorOptions(device), non_blocking);
}

void Module::zero_grad(bool set_to_none) {
  for (auto& child : children_) child.value()->zero_grad(set_to_none);
  for (auto& parameter : parameters_) {
    if (!parameter->defined() || !parameter->grad().defined()) continue;
    Tensor& grad = parameter->mutable_grad();
    if (set_to_none) {
      grad.reset();
    } else {
      grad = grad.detach();
      grad.zero_();
    }
  }
}

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  check_name("Parameter", name);
  if (tensor.defined()) {
    RUSH_CHECK_VALUE(tensor.is_leaf(), "register_parameter: '", name, "' is the result of a recorded computation; ",
                     "pass its detach()");
    tensor.set_requires_grad(requires_grad);
  }
  return parameters_.insert(std::move(name), std::move(tensor));
}

Tensor& Module::register_buffer(std::string name, Tensor tensor) {
  check_name("Buffer", name);
  return buffers_.insert(std::move(name), std::move(tensor));
}

void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  check_name("Submodule", name);
  RUSH_CHECK_VALUE(module, "register_module: '", name, "' is null");
  children_.insert(std::move(name), std::move(module));
}

void Module::pretty_print(std::ostream& stream) const { stream << name(); }

void Module::pretty_print_recursive(std::ostream& stream, const std::string& indentation) const {
  pretty_print(stream);
  if (children_.is_empty()) return;
  stream << "(\n";
  const std::string deeper = indentation + "  ";
  for (const auto& child : children_) {
    stream << deeper << "(" << child.key() << "): ";
    child.value()->pretty_print_recursive(stream, deeper);
    stream << '\n';
  }
  stream << indentation << ")";
}

std::ostream& operator<<(std::ostream& stream, const Module& module) {
  module.pretty_print_recursive(stream, "");
  return stream;
}

}  // namespace rush::nn
