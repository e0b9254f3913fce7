#include "core/dispatch/call.h"

#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"

namespace rush {

Stack call_operator(std::string_view name, std::vector<Value> positional,
                    std::vector<std::pair<std::string, Value>> named) {
  const OpBase* op = registry().find(name);
  RUSH_CHECK_NOT_IMPLEMENTED(op, "there is no operator named '", name, "'");
  Stack stack = Schema::parse(op->schema()).bind(std::move(positional), std::move(named));
  op->call_boxed(stack);
  return stack;
}

}  // namespace rush
