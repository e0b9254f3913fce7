#pragma once
#include "c10/macros/Macros.h"

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ATen/core/Dict.h"
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

/// A tensor, number, text or list, with the names by which libtorch's programs read it: what rush::Value holds; or a
/// dict. The readers throw TypeError unless it is of their kind.
class IValue : public rush::Value {
 public:
  using rush::Value::Value;
  IValue(rush::Value value) : rush::Value(std::move(value)) {}
  IValue(rush::IntArrayRef values) : rush::Value(values.vec()) {}
  IValue(std::nullopt_t) {}
  template <class T>
  IValue(const std::optional<T>& value) : rush::Value(value ? IValue(*value) : IValue()) {}
  IValue(impl::GenericDict dict) : dict_(std::make_shared<impl::GenericDict>(std::move(dict))) {}
  template <class Key, class Value>
  IValue(const Dict<Key, Value>& dict) : IValue(impl::GenericDict()) {
    for (const auto& entry : dict) dict_->insert(entry.key(), entry.value());
  }

  bool isNone() const { return is_none() && !dict_; }
  bool isTensor() const { return is<rush::Tensor>(); }
  bool isBool() const { return is<bool>(); }
  bool isInt() const { return is<int64_t>(); }
  bool isDouble() const { return is<double>(); }
  bool isString() const { return is<std::string>(); }
  bool isIntList() const { return is<std::vector<int64_t>>(); }
  bool isDoubleList() const { return is<std::vector<double>>(); }
  bool isBoolList() const { return is<std::vector<bool>>(); }
  bool isList() const { return isIntList() || isDoubleList() || isBoolList() || isTensorList(); }
  bool isComplexDouble() const { return is<rush::complex<double>>(); }
  bool isGenerator() const { return is<rush::Generator>(); }
  bool isTensorList() const { return is<std::vector<rush::Tensor>>(); }
  bool isDevice() const { return is<rush::Device>(); }
  bool isGenericDict() const { return dict_ != nullptr; }
  bool isScalar() const { return isInt() || isDouble() || isBool() || isComplexDouble(); }

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
  impl::GenericDict toGenericDict() const {
    RUSH_CHECK_TYPE(dict_, "expected Dict, got ", kind());
    return *dict_;
  }
  rush::Device toDevice() const { return as<rush::Device>(); }
  rush::complex<double> toComplexDouble() const { return as<rush::complex<double>>(); }
  rush::ScalarType toScalarType() const { return as<rush::ScalarType>(); }
  rush::Layout toLayout() const { return as<rush::Layout>(); }
  rush::MemoryFormat toMemoryFormat() const { return as<rush::MemoryFormat>(); }
  const rush::Generator& toGenerator() const { return as<rush::Generator>(); }
  rush::Scalar toScalar() const {
    if (isInt()) return toInt();
    if (isBool()) return toBool();
    return isDouble() ? rush::Scalar(toDouble()) : rush::Scalar(toComplexDouble());
  }
  /// As the reader of that type; none where there is no value.
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, rush::Scalar>) {
      return toScalar();
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      return static_cast<T>(toInt());
    } else {
      return as<T>();
    }
  }
  template <class T>
  std::optional<T> toOptional() const {
    return isNone() ? std::nullopt : std::optional<T>(to<T>());
  }
  /// What kind of value it is: "Tensor", "int", ...
  std::string tagKind() const { return dict_ ? "GenericDict" : kind(); }

 private:
  std::shared_ptr<impl::GenericDict> dict_;
};

/// Whether they are the same key of a dict: equal texts, or equal numbers of one kind.
inline bool operator==(const IValue& a, const IValue& b) {
  if (a.isString() && b.isString()) return a.toStringRef() == b.toStringRef();
  if (a.isInt() && b.isInt()) return a.toInt() == b.toInt();
  if (a.isDouble() && b.isDouble()) return a.toDouble() == b.toDouble();
  return a.isBool() && b.isBool() && a.toBool() == b.toBool();
}
}  // namespace c10
