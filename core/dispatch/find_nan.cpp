#include "core/dispatch/find_nan.h"

#include <algorithm>

#include "core/dispatch/value.h"
#include "core/ops/pointwise/unary.h"
#include "core/ops/reduce/reduce.h"

namespace rush {

bool has_nan(const Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return false;
  if (!is_differentiable(tensor.scalar_type()) || !has_arithmetic(tensor.scalar_type())) return false;
  // Neither recorded nor watched.
  const DispatchStateGuard guard(KeySet(DispatchKey::Autograd) | DispatchKey::Autocast | DispatchKey::Profiler |
                                 DispatchKey::Trace);
  const Tensor values = tensor.layout() == kStrided ? tensor : tensor._values();
  return isnan(values).any().item<bool>();
}

namespace detail {

constinit bool find_nans = false;
constinit std::atomic<const char*> nan_made_by = nullptr;

namespace {

constinit thread_local int found = 0;  // by this thread

bool any_nan(const Stack& stack) {
  return std::any_of(stack.begin(), stack.end(), [](const Value& value) {
    if (value.is<Tensor>()) return has_nan(value.as<Tensor>());
    if (!value.is<std::vector<Tensor>>()) return false;
    const auto& list = value.as<std::vector<Tensor>>();
    return std::any_of(list.begin(), list.end(), has_nan);
  });
}

bool is_initialised(const OpBase& op) {
  return op.name().find("empty") == std::string_view::npos && op.name().find("resize") == std::string_view::npos;
}

}  // namespace

void nan_found() { asm volatile("" : : : "memory"); }

void call_and_find_nan(const OpBase& op, KeySet behind, Stack& stack) {
  const bool is_watched = is_initialised(op) && !any_nan(stack);
  const Stack arguments = stack;
  const int found_before = found;
  op.call_boxed(stack, behind);
  // What it wrote in place is among the arguments.
  if (!is_watched || found != found_before || !(any_nan(stack) || any_nan(arguments))) return;
  ++found;
  nan_made_by = op.schema();
  nan_found();
}

}  // namespace detail

}  // namespace rush
