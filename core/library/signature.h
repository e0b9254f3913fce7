// The C++ signature of an operator in the words of a schema, to hold the two against each other.
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/device/generator.h"
#include "core/dispatch/op.h"

namespace rush::library {

/// A type as a schema names it: "Tensor", "int[]"; null where no schema has such a type.
struct SchemaType {
  const char* name = nullptr;
  bool optional = false;  // "Tensor?"
  bool written = false;   // "Tensor(a!)"
};

/// The types of an operator's arguments and results, in order.
struct Signature {
  std::vector<SchemaType> arguments, results;
};

/// Throws TypeError, naming the argument, where the operator's schema and its C++ type differ: in the number of
/// arguments or results, in a type, in whether a tensor is written, or where a default is of another type. Throws
/// ValueError where the schema cannot be parsed, its name has no namespace, or two arguments have one name.
void check_signature(const OpBase& op, const Signature& signature);

namespace detail {

template <class T>
inline constexpr SchemaType type_of{};
template <class T>
inline constexpr SchemaType type_of<std::optional<T>>{type_of<T>.name, true};
template <size_t N>
inline constexpr SchemaType type_of<std::array<bool, N>>{"bool[]"};
#define RUSH_SCHEMA_TYPE(name, ...) \
  template <>                       \
  inline constexpr SchemaType type_of<__VA_ARGS__>{name};
RUSH_SCHEMA_TYPE("Tensor", Tensor)
RUSH_SCHEMA_TYPE("Tensor[]", TensorList)
RUSH_SCHEMA_TYPE("Tensor[]", std::vector<Tensor>)
RUSH_SCHEMA_TYPE("Tensor?[]", OptionalTensorList)
RUSH_SCHEMA_TYPE("Scalar", Scalar)
RUSH_SCHEMA_TYPE("bool", bool)
RUSH_SCHEMA_TYPE("int", int64_t)
RUSH_SCHEMA_TYPE("float", double)
RUSH_SCHEMA_TYPE("str", std::string_view)
RUSH_SCHEMA_TYPE("int[]", IntArrayRef)
RUSH_SCHEMA_TYPE("float[]", ArrayRef<double>)
RUSH_SCHEMA_TYPE("ScalarType", ScalarType)
RUSH_SCHEMA_TYPE("Layout", Layout)
RUSH_SCHEMA_TYPE("Device", Device)
RUSH_SCHEMA_TYPE("MemoryFormat", MemoryFormat)
RUSH_SCHEMA_TYPE("Generator", Generator)
#undef RUSH_SCHEMA_TYPE
template <>
inline constexpr SchemaType type_of<OptionalIntArrayRef>{"int[]", true};

template <class T>
SchemaType argument_type() {
  SchemaType type = type_of<std::decay_t<T>>;
  type.written = std::is_same_v<T, Tensor&>;
  return type;
}

template <class R>
std::vector<SchemaType> result_types(std::type_identity<R>) {
  return {type_of<std::decay_t<R>>};
}
inline std::vector<SchemaType> result_types(std::type_identity<void>) { return {}; }
template <class... T>
std::vector<SchemaType> result_types(std::type_identity<std::tuple<T...>>) {
  return {type_of<T>...};
}

template <class R, class... Args>
Signature signature_of(R (*)(Args...)) {
  return {{argument_type<Args>()...}, result_types(std::type_identity<R>())};
}

}  // namespace detail

/// That of a function type, R(Args...).
template <class Sig>
Signature signature_of() {
  return detail::signature_of(static_cast<Sig*>(nullptr));
}

}  // namespace rush::library
