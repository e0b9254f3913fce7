#include "core/dispatch/value.h"

namespace rush {

Value::Value() = default;
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

const char* Value::type_name(size_t index) {
  static constexpr const char* names[] = {"None",       "Tensor", "bool",    "int",          "float",    "complex",
                                          "str",        "int[]",  "float[]", "bool[]",       "Tensor[]", "Tensor?[]",
                                          "ScalarType", "Layout", "Device",  "MemoryFormat", "Generator"};
  static_assert(std::size(names) == std::variant_size_v<Data>);
  return names[index];
}

}  // namespace rush
