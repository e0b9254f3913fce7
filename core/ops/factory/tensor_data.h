// TensorData: what tensor(...) makes a tensor from, written in braces: tensor({{1, 2}, {3, 4}}).
#pragma once
#include <initializer_list>
#include <vector>

#include "core/tensor.h"

namespace rush {

/// A number, a list of further data, or an array of numbers of one type. Implicit from each of them.
class TensorData {
 public:
  /// The empty list.
  TensorData() = default;
  template <class T>
  requires std::is_constructible_v<Scalar, T> TensorData(T number)
      : kind_(Kind::Number), type_(written_type<T>(number)), number_(number) {}
  TensorData(std::initializer_list<TensorData> list) : list_(list) {}
#define RUSH_FROM_ARRAY(enumerator, type, ...) \
  TensorData(ArrayRef<type> values) : TensorData(values.data(), values.size(), ScalarType::enumerator) {}
  RUSH_FORALL_SCALAR_TYPES(RUSH_FROM_ARRAY)
#undef RUSH_FROM_ARRAY
  template <class T>
  TensorData(const std::vector<T>& values) : TensorData(ArrayRef<T>(values)) {}
  TensorData(const std::vector<bool>& values);

  /// A CPU tensor of the elements, in the type that they are written in.
  Tensor to_tensor() const;

 private:
  enum class Kind : uint8_t { Number, List, Array };

  // An integer of 8 or 16 bits, a reduced float and a complex number are of their own type, others of a Scalar's.
  template <class T>
  static ScalarType written_type(const Scalar& number) {
    constexpr bool is_small = std::is_same_v<T, uint8_t> || std::is_same_v<T, int8_t> || std::is_same_v<T, int16_t>;
    if constexpr (is_small || is_reduced_float_v<T> || is_float8_v<T> || is_complex_v<T>) return scalar_type_of<T>;
    return number.type();
  }
  TensorData(const void* values, size_t size, ScalarType dtype);
  DimVector sizes() const;
  // What the elements promote to; float64 for none.
  ScalarType type() const;
  template <class T>
  void write(T*& next) const;

  Kind kind_ = Kind::List;
  ScalarType type_ = kFloat64;  // of the number
  Scalar number_;
  std::vector<TensorData> list_;
  Tensor array_;
};

}  // namespace rush
