// Value: any argument or result of an operator, for calls by name.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "core/device/generator.h"
#include "core/tensor.h"

namespace rush {

class Value {
 public:
  using Data = std::variant<std::monostate, Tensor, bool, int64_t, double, complex<double>, std::string,
                            std::vector<int64_t>, std::vector<double>, std::vector<bool>, std::vector<Tensor>,
                            std::vector<std::optional<Tensor>>, ScalarType, Layout, Device, MemoryFormat, Generator>;

  // Not here, since every program would compile them.
  Value();
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();
  template <class T>
  requires std::constructible_from<Data, T&&> &&(!std::is_same_v<std::decay_t<T>, Value>)Value(T&& value)
      : data_(std::forward<T>(value)) {}
  Value(int value) : data_(static_cast<int64_t>(value)) {}
  Value(const char* value) : data_(std::string(value)) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(data_); }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  /// The value as exactly T. Throws TypeError naming what it holds.
  template <class T>
  const T& as() const {
    const T* value = std::get_if<T>(&data_);
    RUSH_CHECK_TYPE(value, "expected ", type_name(Data(std::in_place_type<T>).index()), ", got ", kind());
    return *value;
  }
  /// "Tensor", "int", "int[]", ...
  const char* kind() const { return type_name(data_.index()); }

 private:
  static const char* type_name(size_t index);
  Data data_;
};

}  // namespace rush
