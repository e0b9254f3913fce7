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
  static constexpr TypeMeta Make() {  // of a C++ type
    return TypeMeta(scalar_type_of<T>);
  }
  static constexpr TypeMeta fromScalarType(ScalarType type) { return TypeMeta(type); }  // as the constructor
  constexpr operator ScalarType() const { return type_; }              // so that it compares with kFloat32
  constexpr ScalarType toScalarType() const { return type_; }          // as the conversion
  constexpr size_t itemsize() const { return traits_of(type_).size; }  // bytes of an element
  template <class T>
  constexpr bool Match() const {  // T is its C++ type
    return type_ == scalar_type_of<T>;
  }
  std::string_view name() const;  // "float", "c10::Half": as libtorch prints it

 private:
  ScalarType type_;
};
inline void append(std::string& out, TypeMeta type) { out += type.name(); }  // its name()

// What factories use when no dtype is given; float32 until changed. Throws TypeError unless floating point.
TypeMeta get_default_dtype();
void set_default_dtype(ScalarType type);

}  // namespace rush
