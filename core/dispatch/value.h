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

class Value {
 public:
  struct None {};
  using Types =
      detail::TypeList<None, Tensor, bool, int64_t, double, complex<double>, std::string, std::vector<int64_t>,
                       std::vector<double>, std::vector<bool>, std::vector<Tensor>, std::vector<std::optional<Tensor>>,
                       ScalarType, Layout, Device, MemoryFormat, Generator>;

  // All in value.cpp, which alone knows the std::variant in storage_: every program would compile that.
  Value();
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();
  Value(Tensor value);
  Value(int64_t value);
  Value(double value);
  Value(complex<double> value);
  Value(std::string value);
  Value(std::vector<int64_t> value);
  Value(std::vector<double> value);
  Value(std::vector<bool> value);
  Value(std::vector<Tensor> value);
  Value(std::vector<std::optional<Tensor>> value);
  Value(ScalarType value);
  Value(Layout value);
  Value(Device value);
  Value(MemoryFormat value);
  Value(Generator value);
  Value(int value) : Value(static_cast<int64_t>(value)) {}
  Value(const char* value) : Value(std::string(value)) {}
  template <std::same_as<bool> T>  // pointers are none
  Value(T value) : Value(Truth{value}) {}

  bool is_none() const { return index() == 0; }
  template <class T>
  bool is() const {
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
