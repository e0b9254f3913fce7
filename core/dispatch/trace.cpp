#include "core/dispatch/trace.h"

#include <cstdio>

#include "core/error/error.h"

namespace rush {

namespace {
constinit thread_local int depth = 0;
}

void print_call(const OpBase& op, KeySet keys, Stack& stack) {
  const KeySet behind = stops_behind(keys);
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

}  // namespace rush
