#include "core/dispatch/registry.h"

#include <cstring>
#include <mutex>
#include <string_view>

#include "core/dispatch/trace.h"
#include "core/environment_flag.h"

namespace rush {

void Registry::list(OpBase& op) {
  op.mask_ |= DispatchKey::Sparse;  // Note [Dense kernels and sparse tensors]
  if (!op.has_tag(Tag::TakesUndefined)) op.mask_ |= DispatchKey::UndefinedTensor;  // Note [Undefined arguments]
  // "(a)" or "(a -> *)" is a view of the argument; "(a!)" is written.
  const char* alias = std::strstr(op.schema_ + op.name_size_, "Tensor(");
  op.is_view_ = alias && alias[8] != '!';
  const auto [at, added] = by_name_.emplace(op.name(), &op);
  RUSH_CHECK_VALUE(added || at->second == &op, "two operators are named ", op.name());
  for (int slot = 0; added && slot < kNumDispatchKeys; ++slot) {
    if (fallbacks_[slot].fn) claim(op, slot);
  }
}

void Registry::claim(OpBase& op, int slot) {
  const auto key = static_cast<DispatchKey>(slot);
  op.mask_ |= key;
  if (!op.has_kernel(key)) op.registered_at_[slot] = fallbacks_[slot].where;
}

DispatchKey Registry::take_key(const char* name) {
  const std::lock_guard lock(taking_);
  for (DispatchKey key : {DispatchKey::Free1, DispatchKey::Free2, DispatchKey::Free3, DispatchKey::Free4}) {
    if (taken_.has(key)) continue;
    taken_ |= key;
    detail::key_names[static_cast<int>(key)] = name;
    return key;
  }
  RUSH_THROW(ValueError, "take_key('", name, "'): all free dispatch keys are taken");
}

void Registry::fallback(DispatchKey key, BoxedFallback fn, Where where) {
  RUSH_CHECK_VALUE(fn, "fallback: no function for ", name(key));
  const int slot = static_cast<int>(key);
  fallbacks_[slot] = {fn, where};
  for (const auto& [op_name, op] : by_name_) claim(*op, slot);
}

void Registry::fallthrough(OpBase& op, DispatchKey key) {
  RUSH_CHECK_VALUE(fallback_of(key), op.name(), ": there is no fallback for ", name(key), " to pass by");
  RUSH_CHECK_VALUE(!op.has_kernel(key), op.name(), ": has a kernel for ", name(key));
  op.mask_ = op.mask_.without(key);
}

const OpBase* Registry::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Registry& registry() {
  static Registry instance;
  static std::once_flag once;
  static thread_local bool is_registering = false;
  if (is_registering) return instance;  // to what is registered later and looks for what was before
  std::call_once(once, [] {
    const bool shows = environment_flag("RUSH_SHOW_DISPATCH");  // first, since a handler of warnings may throw
    is_registering = true;
    struct AtEnd {
      ~AtEnd() { is_registering = false; }
    } at_end;
    register_all(instance);
    instance.fallback(DispatchKey::Trace, trace_call);
    if (shows) watching |= DispatchKey::Trace;
  });
  return instance;
}

}  // namespace rush
