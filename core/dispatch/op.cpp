#include "core/dispatch/op.h"

#include <cstdio>

#include "core/dispatch/registry.h"

namespace rush {

OpBase::AnyFn OpBase::resolve(KeySet keys) const {
  registry();
  const DispatchKey key = (keys & mask_).highest();
  AnyFn fn = table_[static_cast<int>(key)];
  RUSH_CHECK_NOT_IMPLEMENTED(fn, name_, ": no kernel for keys ", keys, ", it has ", mask_);
  return fn;
}

void OpBase::call_boxed(Stack& stack) const {
  registry();
  RUSH_INTERNAL_ASSERT(boxed_, name_, " is not registered");
  boxed_(*this, stack);
}

void OpBase::trace(KeySet keys, DispatchKey key) const {
  const SourceLocation& where = registered_at_[static_cast<int>(key)];
  std::fprintf(stderr, "%*s%.*s -> %s  (keys %s; registered at %s:%u)\n", 2 * dispatch_state.depth, "",
               static_cast<int>(name_.size()), name_.data(), rush::name(key), str(keys).c_str(), where.file_name(),
               static_cast<unsigned>(where.line()));
}

}  // namespace rush
