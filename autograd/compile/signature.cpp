#include "autograd/compile/signature.h"

#include <algorithm>

#include "autograd/compile/compile.h"
#include "core/dispatch/key.h"
#include "core/print/bracketed.h"
#include "core/str.h"

namespace rush::compiler {

Signature::Signature(const std::vector<Tensor>& tensors)
    : grad_mode(dispatch_state.grad_mode),
      inference_mode(dispatch_state.inference_mode),
      autocast_devices(dispatch_state.autocast.devices),
      autocast_dtypes(std::begin(dispatch_state.autocast.dtypes), std::end(dispatch_state.autocast.dtypes)),
      default_dtype(get_default_dtype()),
      unseen_state(compiler::unseen_state) {
  for (const Tensor& t : tensors) {
    RUSH_CHECK_VALUE(t.defined(), "compile: an input is undefined");
    const bool leaf = t.is_leaf() && t.requires_grad();
    const auto first = std::ranges::find_if(tensors, [&](const Tensor& other) {
      return other.is_same(t) || (other.has_storage() && t.has_storage() && other.is_alias_of(t));
    });
    inputs.push_back({t.sizes(), t.strides(), t.scalar_type(), t.device(), t.requires_grad(),
                      leaf && t.grad().defined(), t.impl()->is_wrapped_number(),
                      static_cast<size_t>(first - tensors.begin()),
                      t.has_storage() ? t.storage_offset() - first->storage_offset() : 0});
  }
}

bool Signature::differs_in_sizes(Signature other) const {
  if (*this == other || inputs.size() != other.inputs.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].sizes.size() != other.inputs[i].sizes.size()) return false;
    other.inputs[i].sizes = inputs[i].sizes;
    other.inputs[i].strides = inputs[i].strides;
  }
  return *this == other;
}

namespace {

std::string difference(size_t i, const Signature::Input& now, const Signature::Input& was) {
  const auto has = [&](const char* what, const auto& value, const auto& old) {
    return str("input ", i, " has ", what, " ", value, ", was ", old);
  };
  if (now.dtype != was.dtype) return has("dtype", now.dtype, was.dtype);
  if (now.device != was.device) return has("device", now.device, was.device);
  if (now.sizes != was.sizes) return has("sizes", bracketed(now.sizes), bracketed(was.sizes));
  if (now.strides != was.strides) return has("strides", bracketed(now.strides), bracketed(was.strides));
  if (now.requires_grad != was.requires_grad) return has("requires_grad", now.requires_grad, was.requires_grad);
  if (now.has_grad != was.has_grad) return str("input ", i, now.has_grad ? " has" : " has no", " gradient");
  if (now.shares_with != was.shares_with)
    return str("input ", i, " shares memory with input ", now.shares_with, ", was ", was.shares_with);
  if (now.distance != was.distance)
    return str("input ", i, " lies ", now.distance, " elements behind input ", now.shares_with, ", was ", was.distance);
  return now == was ? std::string() : str("input ", i, " is a number of the program, or was one");
}

}  // namespace

std::string Signature::difference_from(const Signature& was) const {
  if (inputs.size() != was.inputs.size()) return str(inputs.size(), " inputs, were ", was.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (std::string text = difference(i, inputs[i], was.inputs[i]); !text.empty()) return text;
  }
  if (grad_mode != was.grad_mode) return grad_mode ? "grad mode is on" : "grad mode is off";
  if (inference_mode != was.inference_mode) return inference_mode ? "inference mode is on" : "inference mode is off";
  if (autocast_devices != was.autocast_devices || autocast_dtypes != was.autocast_dtypes) return "autocast changed";
  if (default_dtype != was.default_dtype)
    return str("the default dtype is ", default_dtype, ", was ", was.default_dtype);
  return unseen_state == was.unseen_state ? "" : "modules are in other modes, of Module::train and eval";
}

}  // namespace rush::compiler
