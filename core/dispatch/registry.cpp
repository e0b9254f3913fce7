#include "core/dispatch/registry.h"

#include <cstdlib>
#include <mutex>
#include <string_view>

namespace rush {

void Registry::list(const OpBase& op) {
  const auto [at, added] = by_name_.emplace(op.name(), &op);
  RUSH_INTERNAL_ASSERT(added || at->second == &op, "two operators are named ", op.name());
}

const OpBase* Registry::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Registry& registry() {
  static Registry instance;
  static std::once_flag once;
  std::call_once(once, [] {
    register_all(instance);
    const char* show = std::getenv("RUSH_SHOW_DISPATCH");
    show_dispatch = show && std::string_view(show) != "0" && *show;
  });
  return instance;
}

}  // namespace rush
