#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/dispatch/value.h"

namespace c10 {
/// A list of values of one type.
template <class T>
class List : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  List(std::vector<T> values) : std::vector<T>(std::move(values)) {}
  T get(size_t i) const { return this->at(i); }
  void set(size_t i, T value) const { const_cast<List*>(this)->at(i) = std::move(value); }
  const std::vector<T>& vec() const { return *this; }
};

/// A tensor, number, text or list, with the names by which libtorch's programs read it: what rush::Value holds. The
/// readers throw TypeError unless it is of their kind.
class IValue : public rush::Value {
 public:
  using rush::Value::Value;
  IValue(rush::Value value) : rush::Value(std::move(value)) {}

  bool isNone() const { return is_none(); }
  bool isTensor() const { return is<rush::Tensor>(); }
  bool isBool() const { return is<bool>(); }
  bool isInt() const { return is<int64_t>(); }
  bool isDouble() const { return is<double>(); }
  bool isString() const { return is<std::string>(); }
  bool isIntList() const { return is<std::vector<int64_t>>(); }
  bool isDoubleList() const { return is<std::vector<double>>(); }
  bool isTensorList() const { return is<std::vector<rush::Tensor>>(); }
  bool isDevice() const { return is<rush::Device>(); }
  bool isScalar() const { return isInt() || isDouble() || isBool(); }

  const rush::Tensor& toTensor() const { return as<rush::Tensor>(); }
  bool toBool() const { return as<bool>(); }
  int64_t toInt() const { return as<int64_t>(); }
  double toDouble() const { return as<double>(); }
  const std::string& toStringRef() const { return as<std::string>(); }
  List<int64_t> toIntList() const { return as<std::vector<int64_t>>(); }
  List<double> toDoubleList() const { return as<std::vector<double>>(); }
  List<rush::Tensor> toTensorList() const { return as<std::vector<rush::Tensor>>(); }
  std::vector<int64_t> toIntVector() const { return as<std::vector<int64_t>>(); }
  std::vector<double> toDoubleVector() const { return as<std::vector<double>>(); }
  std::vector<rush::Tensor> toTensorVector() const { return as<std::vector<rush::Tensor>>(); }
  rush::Device toDevice() const { return as<rush::Device>(); }
  /// What kind of value it is: "Tensor", "int", ...
  std::string tagKind() const { return kind(); }
};
}  // namespace c10
