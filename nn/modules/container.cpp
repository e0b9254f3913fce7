#include "nn/modules/container.h"

#include "autograd/grad_mode.h"
#include "core/print/stream_output.h"
#include "core/threads/stack_space.h"
#include "nn/module_text.h"

namespace rush::nn {

std::shared_ptr<Module> SequentialImpl::clone(const std::optional<Device>& device) const {
  check_stack_space("clone");
  auto copy = std::make_shared<SequentialImpl>();
  copy->train(is_training());
  const auto named = named_children();
  for (size_t i = 0; i < modules_.size(); ++i) copy->push_back(named[i].key(), modules_[i].clone(device));
  return copy;
}

void SequentialImpl::pretty_print(std::ostream& stream) const { stream << detail::module_text("Sequential"); }

std::shared_ptr<Module> ModuleListImpl::clone(const std::optional<Device>& device) const {
  check_stack_space("clone");
  auto copy = std::make_shared<ModuleListImpl>();
  copy->train(is_training());
  for (const auto& module : modules_) copy->push_back(module->clone(device));
  return copy;
}

void ModuleListImpl::pretty_print(std::ostream& stream) const { stream << detail::module_text("ModuleList"); }

void ModuleListImpl::push_back(std::shared_ptr<Module> module) {
  register_module(std::to_string(modules_.size()), module);
  modules_.push_back(std::move(module));
}

void ModuleListImpl::insert(size_t index, std::shared_ptr<Module> module) {
  RUSH_CHECK_INDEX(index <= modules_.size(), "ModuleList: insert at position ", index, " of ", modules_.size());
  push_back(module);
  for (size_t i = modules_.size() - 1; i > index; --i) {
    modules_[i] = modules_[i - 1];
    replace_module(std::to_string(i), modules_[i]);
  }
  modules_[index] = module;
  replace_module(std::to_string(index), std::move(module));
}

std::shared_ptr<Module> ModuleListImpl::ptr(size_t index) const {
  RUSH_CHECK_INDEX(index < modules_.size(), "ModuleList: position ", index, " of ", modules_.size());
  return modules_[index];
}

std::shared_ptr<Module> ModuleDictImpl::clone(const std::optional<Device>& device) const {
  check_stack_space("clone");
  auto copy = std::make_shared<ModuleDictImpl>();
  copy->train(is_training());
  for (const auto& [key, module] : items()) copy->insert(key, module->clone(device));
  return copy;
}

void ModuleDictImpl::pretty_print(std::ostream& stream) const { stream << detail::module_text("ModuleDict"); }

void ModuleDictImpl::insert(const std::string& key, std::shared_ptr<Module> module) {
  if (contains(key)) {
    replace_module(key, std::move(module));
  } else {
    register_module(key, std::move(module));
  }
}

std::shared_ptr<Module> ModuleDictImpl::pop(const std::string& key) {
  std::shared_ptr<Module> module = (*this)[key];
  unregister_module(key);
  return module;
}

std::vector<std::pair<std::string, std::shared_ptr<Module>>> ModuleDictImpl::items() const {
  return named_children().pairs();
}

void ModuleDictImpl::clear() {
  for (const std::string& key : keys()) unregister_module(key);
}

namespace {

Tensor copy_parameter(const Tensor& parameter, const std::optional<Device>& device) {
  const NoGradGuard no_grad;
  Tensor copy = device ? parameter.to(*device, /*non_blocking=*/false, /*copy=*/true) : parameter.clone();
  return copy.set_requires_grad(parameter.requires_grad());
}

void print_parameters(std::ostream& stream, const char* name, const OrderedDict<std::string, Tensor>& parameters) {
  stream << detail::module_text(name, "(\n");
  for (const auto& each : parameters) {
    stream << detail::options_text("(", each.key(), "): Parameter containing: [",
                                   rush::detail::enumerator_name(each->scalar_type()), " of size ", each->sizes(),
                                   "]\n");
  }
  stream << ")";
}

}  // namespace

std::shared_ptr<Module> ParameterListImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ParameterListImpl>();
  copy->train(is_training());
  for (const auto& each : parameters_) copy->append(copy_parameter(each.value(), device));
  return copy;
}

void ParameterListImpl::pretty_print(std::ostream& stream) const {
  print_parameters(stream, "ParameterList", parameters_);
}

void ParameterListImpl::append(const Tensor& parameter) {
  register_parameter(std::to_string(size()), parameter, parameter.requires_grad());
}

Tensor& ParameterListImpl::at(size_t index) {
  RUSH_CHECK_INDEX(index < size(), "ParameterList: position ", index, " of ", size());
  return parameters_[index].value();
}

const Tensor& ParameterListImpl::at(size_t index) const { return const_cast<ParameterListImpl*>(this)->at(index); }

std::shared_ptr<Module> ParameterDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ParameterDictImpl>();
  copy->train(is_training());
  for (const auto& each : parameters_) copy->insert(each.key(), copy_parameter(each.value(), device));
  return copy;
}

void ParameterDictImpl::pretty_print(std::ostream& stream) const {
  print_parameters(stream, "ParameterDict", parameters_);
}

Tensor& ParameterDictImpl::insert(const std::string& key, const Tensor& parameter) {
  return register_parameter(key, parameter, parameter.requires_grad());
}

Tensor ParameterDictImpl::pop(const std::string& key) {
  Tensor parameter = parameters_[key];
  parameters_.erase(key);
  return parameter;
}

}  // namespace rush::nn
