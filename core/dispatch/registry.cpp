#include "core/dispatch/registry.h"

#include <cstdlib>
#include <mutex>
#include <string_view>

namespace rush {

// Operators of ATen's whose schemas do not say that arguments may be undefined tensors, and are.
static bool takes_undefined(std::string_view name) {
  return name == "aten::_scaled_dot_product_efficient_attention_backward" ||
         name == "aten::_scaled_dot_product_cudnn_attention_backward";
}

void Registry::list(OpBase& op) {
  op.mask_ |= kSparseKeys;                                                    // Note [Dense kernels and sparse tensors]
  if (!takes_undefined(op.name())) op.mask_ |= DispatchKey::UndefinedTensor;  // Note [Undefined arguments]
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
