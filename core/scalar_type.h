// The element types of tensors, their C++ types, and PyTorch's rules for promoting one to another.
#pragma once
#include <cstdint>
#include <string>
#include <type_traits>

#include "core/complex.h"
#include "core/half.h"
#include "core/macros.h"

namespace rush {

// Every element type: enumerator, C++ type, PyTorch's name. The order fixes the index into kernels' tables.
#define RUSH_FORALL_SCALAR_TYPES(X)                       \
  X(Byte, uint8_t, "uint8")                               \
  X(Char, int8_t, "int8")                                 \
  X(Short, int16_t, "int16")                              \
  X(Int, int32_t, "int32")                                \
  X(Long, int64_t, "int64")                               \
  X(Half, ::rush::Half, "float16")                        \
  X(Float, float, "float32")                              \
  X(Double, double, "float64")                            \
  X(ComplexFloat, ::rush::complex<float>, "complex64")    \
  X(ComplexDouble, ::rush::complex<double>, "complex128") \
  X(Bool, bool, "bool")                                   \
  X(BFloat16, ::rush::BFloat16, "bfloat16")

enum class ScalarType : int8_t {
#define RUSH_ENUMERATOR(name, type, text) name,
  RUSH_FORALL_SCALAR_TYPES(RUSH_ENUMERATOR)
#undef RUSH_ENUMERATOR
};
using Dtype = ScalarType;
inline constexpr int kNumScalarTypes = 12;

inline constexpr ScalarType kUInt8 = ScalarType::Byte, kByte = kUInt8;
inline constexpr ScalarType kInt8 = ScalarType::Char, kChar = kInt8;
inline constexpr ScalarType kInt16 = ScalarType::Short, kShort = kInt16;
inline constexpr ScalarType kInt32 = ScalarType::Int, kInt = kInt32;
inline constexpr ScalarType kInt64 = ScalarType::Long, kLong = kInt64;
inline constexpr ScalarType kFloat16 = ScalarType::Half, kHalf = kFloat16;
inline constexpr ScalarType kFloat32 = ScalarType::Float, kFloat = kFloat32;
inline constexpr ScalarType kFloat64 = ScalarType::Double, kDouble = kFloat64;
inline constexpr ScalarType kComplex64 = ScalarType::ComplexFloat, kComplexFloat = kComplex64;
inline constexpr ScalarType kComplex128 = ScalarType::ComplexDouble, kComplexDouble = kComplex128;
inline constexpr ScalarType kBool = ScalarType::Bool;
inline constexpr ScalarType kBFloat16 = ScalarType::BFloat16;

// CppType<kFloat32>::type is float; scalar_type_of<float> is kFloat32.
template <ScalarType>
struct CppType;
template <class T>
struct ScalarTypeOf;
#define RUSH_MAP_TYPE(name, cpp, text)                    \
  template <>                                             \
  struct CppType<ScalarType::name> {                      \
    using type = cpp;                                     \
  };                                                      \
  template <>                                             \
  struct ScalarTypeOf<cpp> {                              \
    static constexpr ScalarType value = ScalarType::name; \
  };
RUSH_FORALL_SCALAR_TYPES(RUSH_MAP_TYPE)
#undef RUSH_MAP_TYPE
template <ScalarType T>
using cpp_type = typename CppType<T>::type;
template <class T>
inline constexpr ScalarType scalar_type_of = ScalarTypeOf<T>::value;

template <class T>
inline constexpr bool is_complex_v = std::is_same_v<T, complex<float>> || std::is_same_v<T, complex<double>>;
template <class T>
inline constexpr bool is_reduced_float_v = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_floating_v = std::is_floating_point_v<T> || is_reduced_float_v<T>;

// The type that arithmetic on T is done in: float for the 16-bit ones, T itself otherwise.
template <class T>
using opmath_t = std::conditional_t<is_reduced_float_v<T>, float, T>;

constexpr int64_t element_size(ScalarType type) {
  constexpr int8_t sizes[kNumScalarTypes] = {1, 1, 2, 4, 8, 2, 4, 8, 8, 16, 1, 2};
  return sizes[static_cast<int>(type)];
}
const char* name(ScalarType type);
inline void append(std::string& out, ScalarType type) { out += name(type); }

constexpr bool is_complex(ScalarType t) { return t == kComplex64 || t == kComplex128; }
constexpr bool is_floating_point(ScalarType t) {
  return t == kFloat32 || t == kFloat64 || t == kFloat16 || t == kBFloat16;
}
constexpr bool is_integral(ScalarType t, bool include_bool) { return t <= kInt64 || (include_bool && t == kBool); }
// Only these carry gradients.
constexpr bool is_differentiable(ScalarType t) { return is_floating_point(t) || is_complex(t); }

// The smallest type that holds both, by PyTorch's table (https://pytorch.org/docs/stable/tensor_attributes.html).
ScalarType promote_types(ScalarType a, ScalarType b);
// complex64 -> float32, complex128 -> float64, others unchanged.
ScalarType to_real(ScalarType type);
// float32 -> complex64, float64 -> complex128; float16 and bfloat16 have no complex of their own and give complex64.
ScalarType to_complex(ScalarType type);
// Whether a result of type `from` may be written into a tensor of type `to`: not across complex, float, integer, bool
// downwards.
bool can_cast(ScalarType from, ScalarType to);

// What factories use when no dtype is given; float32 until changed. Throws TypeError unless floating point.
ScalarType get_default_dtype();
void set_default_dtype(ScalarType type);

}  // namespace rush
