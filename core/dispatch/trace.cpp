#include "core/dispatch/trace.h"

#include <cstdio>

#include "core/dispatch/find_nan.h"
#include "core/error/error.h"

namespace rush {

namespace {
constinit thread_local int depth = 0;

void print_call(const OpBase& op, KeySet keys, KeySet behind, Stack& stack) {
  keys = keys.without(KeySet(DispatchKey::Trace) | DispatchKey::Profiler);
  const DispatchKey next = op.served_by(keys);
  const SourceLocation where = op.registered_at(next);
  std::fprintf(stderr, "%*s%.*s -> %s  (keys %s; registered at %s:%u)\n", 2 * depth, "",
               static_cast<int>(op.name().size()), op.name().data(), name(next), str(keys).c_str(), where.file_name(),
               static_cast<unsigned>(where.line()));
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  } deeper;
  op.call_boxed(stack, behind);
}

}  // namespace

void trace_call(const OpBase& op, KeySet keys, Stack& stack) {
  const KeySet behind = stops_behind(keys);
  if (detail::find_nans) return detail::call_and_find_nan(op, behind, stack);
  print_call(op, keys, behind, stack);
}

}  // namespace rush
