// Lab 7, modules and state dicts: this file takes the place of nn/module_tree.cpp. What each function has to do stands
// in nn/module.h, nn/state/module_state.h and docs/labs/module_tree.md. Write them in this order; `./rush lab 7` checks
// them in this order. What is written already is the library's own.
#include <unordered_set>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/memory/claim.h"
#include "core/ops/view/copy.h"
#include "core/threads/stack_space.h"
#include "nn/module.h"
#include "nn/registered_name.h"
#include "nn/state/module_state.h"

namespace rush::nn {

// Takes ownership of a tensor that is trained.
Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  RUSH_THROW(NotImplementedError, "begin here: check the name '", name, "', set requires_grad, and insert the ",
             tensor.defined() ? "tensor" : "undefined tensor", " into `parameters_`");
}

// Takes ownership of a tensor that is not trained.
Tensor& Module::register_buffer(std::string name, Tensor tensor) {
  RUSH_THROW(NotImplementedError, "next: check the name '", name, "', and insert the tensor into `buffers_`");
}

// At first a walk is at the root.
detail::ModuleWalk::ModuleWalk(const Module& root, std::string name) : name_(std::move(name)) {
  levels_.push_back({nullptr, const_cast<Module*>(&root), name_.size(), name_.size()});
}

// Goes to the next module: the first below the present one, or else the one that follows it, or one of those above.
void detail::ModuleWalk::next() {
  RUSH_THROW(NotImplementedError, "next: from ", levels_.size(),
             " levels down, go to the next child of the last level that ",
             "has one left, and give `name_` its name; without one, empty `levels_`");
}

// The parameters by name: the module's own, then those of the modules below.
OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  RUSH_THROW(NotImplementedError, "next: gather the defined tensors of `parameters_`",
             recurse ? " of this module and all below" : "");
}

// The buffers by name.
OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  RUSH_THROW(NotImplementedError, "next: gather the defined tensors of `buffers_`",
             recurse ? " of this module and all below" : "");
}

// Sets the mode of this module and of all below it.
void Module::train(bool on) {
  RUSH_THROW(NotImplementedError, "next: call train(", on ? "true" : "false", ") of the ", children_.size(),
             " children, and set is_training_");
}

// Converts this module's own tensors and their gradients, in place.
void Module::convert(const TensorOptions& target, bool non_blocking) {
  RUSH_THROW(NotImplementedError, "next: give each of the ", parameters_.size(), " parameters and ", buffers_.size(),
             " buffers the data of its conversion, by set_data, and convert its gradient");
}

void Module::to(Device device, ScalarType dtype, bool non_blocking) {
  check_stack_space("Module::to");
  for (auto& child : children_) child.value()->to(device, dtype, non_blocking);
  convert(TensorOptions(dtype).device(device), non_blocking);
}

void Module::to(Device device, bool non_blocking) {
  check_stack_space("Module::to");
  for (auto& child : children_) child.value()->to(device, non_blocking);
  convert(TensorOptions(device), non_blocking);
}

// Converts this module and all below it.
void Module::to(ScalarType dtype, bool non_blocking) {
  RUSH_THROW(NotImplementedError, "next: convert the ", children_.size(), " children to ", dtype,
             ", then this module's own tensors");
}

// Drops the gradients of all parameters, or fills them with zero.
void Module::zero_grad(bool set_to_none) {
  RUSH_THROW(NotImplementedError, "next: ", set_to_none ? "drop" : "fill with zero", " the gradients of the ",
             parameters_.size(), " parameters, and those of the ", children_.size(), " children");
}

}  // namespace rush::nn

namespace rush {

// Parameters and buffers by name, detached.
StateDict state_dict(const nn::Module& module) {
  RUSH_THROW(NotImplementedError, "next: make a StateDict(\"state\") of the parameters and buffers of ", module.name());
}

// Copies the values of `dict` into the module's tensors, if all of them fit.
void load_state_dict(nn::Module& module, const StateDict& dict) {
  RUSH_THROW(NotImplementedError, "last: read the tensors of ", module.name(), " from the ", dict.size(),
             " of the dict, check that all fit, and only then copy");
}

}  // namespace rush
