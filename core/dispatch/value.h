// Value: any argument or result of an operator, for calls by name.
#pragma once
#include <concepts>
#include <string>
#include <vector>

#include "core/device/generator.h"
#include "core/tensor.h"

namespace rush {

namespace detail {
template <class... Ts>
struct TypeList {
  static constexpr size_t size = sizeof...(Ts);
  /// The place of T, or `size`.
  template <class T>
  static constexpr size_t index_of() {
    size_t index = 0;
    (void)((std::is_same_v<T, Ts> || (++index, false)) || ...);
    return index;
  }
};
}  // namespace detail

// What a Value may hold besides nothing and bool, to which pointers convert.
// clang-format off
#define RUSH_FORALL_VALUE_TYPES(X)                                                                                    \
  X(Tensor) X(int64_t) X(double) X(complex<double>) X(std::string) X(std::vector<int64_t>) X(std::vector<double>)     \
  X(std::vector<bool>) X(std::vector<Tensor>) X(std::vector<std::optional<Tensor>>) X(ScalarType) X(Layout) X(Device) \
  X(MemoryFormat) X(Generator)
// clang-format on

class Value {
 public:
  struct None {};  // Python's: an optional argument that is not given
#define RUSH_LISTED(Type) , Type
  using Types = detail::TypeList<None, bool RUSH_FORALL_VALUE_TYPES(RUSH_LISTED)>;
#undef RUSH_LISTED

  // All in value.cpp, which alone knows the std::variant in storage_: every program would compile that.
  Value();
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();
#define RUSH_CONSTRUCTOR(Type) Value(Type value);
  RUSH_FORALL_VALUE_TYPES(RUSH_CONSTRUCTOR)
#undef RUSH_CONSTRUCTOR
  Value(int value) : Value(static_cast<int64_t>(value)) {}
  Value(const char* value) : Value(std::string(value)) {}
  template <std::same_as<bool> T>
  Value(T value) : Value(Truth{value}) {}

  bool is_none() const { return index() == 0; }  // it holds None
  template <class T>
  bool is() const {  // it holds a T; nothing is converted
    return find(place<T>()) != nullptr;
  }
  /// The value as exactly T. Throws TypeError naming what it holds.
  template <class T>
  const T& as() const {
    const void* value = find(place<T>());
    RUSH_CHECK_TYPE(value, "expected ", type_name(place<T>()), ", got ", kind());
    return *static_cast<const T*>(value);
  }
  /// "Tensor", "int", "int[]", ...
  const char* kind() const { return type_name(index()); }

 private:
  struct Truth {
    bool value;
  };
  struct Storage;
  explicit Value(Truth value);

  template <class T>
  static constexpr size_t place() {
    constexpr size_t index = Types::index_of<T>();
    static_assert(index < Types::size, "a Value holds no such type");
    return index;
  }
  static const char* type_name(size_t index);
  size_t index() const;
  /// What is held, if it is of that type.
  const void* find(size_t index) const;

  alignas(16) std::byte storage_[64];
};

}  // namespace rush
