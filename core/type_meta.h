// TypeMeta: a dtype as tensors and options give it.
#pragma once
#include <string>
#include <string_view>

#include "core/scalar_type.h"

namespace rush {

/// A dtype as Tensor::dtype() gives it: a ScalarType that prints as C++ writes the type, "float". caffe2::TypeMeta.
class TypeMeta {
 public:
  constexpr explicit TypeMeta(ScalarType type = kFloat32) : type_(type) {}
  template <class T>
  static constexpr TypeMeta Make() {
    return TypeMeta(scalar_type_of<T>);
  }
  static constexpr TypeMeta fromScalarType(ScalarType type) { return TypeMeta(type); }
  constexpr operator ScalarType() const { return type_; }
  constexpr ScalarType toScalarType() const { return type_; }
  constexpr size_t itemsize() const { return traits_of(type_).size; }
  template <class T>
  constexpr bool Match() const {
    return type_ == scalar_type_of<T>;
  }
  std::string_view name() const;

 private:
  ScalarType type_;
};
inline void append(std::string& out, TypeMeta type) { out += type.name(); }

// What factories use when no dtype is given; float32 until changed. Throws TypeError unless floating point.
TypeMeta get_default_dtype();
void set_default_dtype(ScalarType type);

}  // namespace rush
