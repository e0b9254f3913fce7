#include "core/dispatch/value.h"

namespace rush {

const char* Value::type_name(size_t index) {
  static constexpr const char* names[] = {"None",       "Tensor", "bool",    "int",          "float",    "complex",
                                          "str",        "int[]",  "float[]", "bool[]",       "Tensor[]", "Tensor?[]",
                                          "ScalarType", "Layout", "Device",  "MemoryFormat", "Generator"};
  static_assert(std::size(names) == std::variant_size_v<Data>);
  return names[index];
}

}  // namespace rush
