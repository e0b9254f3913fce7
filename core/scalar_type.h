// The element types of tensors, their C++ types, and PyTorch's rules for promoting one to another.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/complex.h"
#include "core/float8.h"
#include "core/half.h"
#include "core/macros.h"

namespace rush {

// Note [The table of dtypes]
// Every fact about a dtype stands in its row, and whatever depends on the dtype is derived from the table. The order of
// the rows is the index into kernels' tables. docs/add_a_dtype.md says what else a new row needs. The columns:
//   enumerator    PyTorch's
//   C++ type      in memory
//   compute type  in which arithmetic on it is done
//   kind          Bool, Integer, Float or Complex
//   use           Arithmetic; or Storage for a dtype that is only stored, copied, indexed, compared and converted
//   names         PyTorch's, safetensors' and NumPy's; "" in a format that lacks the dtype
//   constants     one or two
#define RUSH_FORALL_SCALAR_TYPES(X)                                                                                 \
  X(Byte, uint8_t, uint8_t, Integer, Arithmetic, "uint8", "U8", "|u1", kUInt8, kByte)                               \
  X(Char, int8_t, int8_t, Integer, Arithmetic, "int8", "I8", "|i1", kInt8, kChar)                                   \
  X(Short, int16_t, int16_t, Integer, Arithmetic, "int16", "I16", "<i2", kInt16, kShort)                            \
  X(Int, int32_t, int32_t, Integer, Arithmetic, "int32", "I32", "<i4", kInt32, kInt)                                \
  X(Long, int64_t, int64_t, Integer, Arithmetic, "int64", "I64", "<i8", kInt64, kLong)                              \
  X(Half, ::rush::Half, float, Float, Arithmetic, "float16", "F16", "<f2", kFloat16, kHalf)                         \
  X(Float, float, float, Float, Arithmetic, "float32", "F32", "<f4", kFloat32, kFloat)                              \
  X(Double, double, double, Float, Arithmetic, "float64", "F64", "<f8", kFloat64, kDouble)                          \
  X(ComplexFloat, ::rush::complex<float>, ::rush::complex<float>, Complex, Arithmetic, "complex64", "C64", "<c8",   \
    kComplex64, kComplexFloat)                                                                                      \
  X(ComplexDouble, ::rush::complex<double>, ::rush::complex<double>, Complex, Arithmetic, "complex128", "", "<c16", \
    kComplex128, kComplexDouble)                                                                                    \
  X(Bool, bool, bool, Bool, Arithmetic, "bool", "BOOL", "|b1", kBool)                                               \
  X(BFloat16, ::rush::BFloat16, float, Float, Arithmetic, "bfloat16", "BF16", "", kBFloat16)                        \
  X(Float8_e5m2, ::rush::Float8_e5m2, float, Float, Storage, "float8_e5m2", "F8_E5M2", "", kFloat8_e5m2)            \
  X(Float8_e4m3fn, ::rush::Float8_e4m3fn, float, Float, Storage, "float8_e4m3fn", "F8_E4M3", "", kFloat8_e4m3fn)    \
  X(UInt16, uint16_t, uint16_t, Integer, Storage, "uint16", "U16", "<u2", kUInt16)                                  \
  X(UInt32, uint32_t, uint32_t, Integer, Storage, "uint32", "U32", "<u4", kUInt32)                                  \
  X(UInt64, uint64_t, uint64_t, Integer, Storage, "uint64", "U64", "<u8", kUInt64)

enum class ScalarType : int8_t {
#define RUSH_ENUMERATOR(enumerator, ...) enumerator,
  RUSH_FORALL_SCALAR_TYPES(RUSH_ENUMERATOR)
#undef RUSH_ENUMERATOR
};
using Dtype = ScalarType;

enum class DtypeKind : uint8_t { Bool, Integer, Float, Complex };  // in the order of promotion
enum class DtypeUse : uint8_t { Arithmetic, Storage };
struct DtypeTraits {  // a row of the table above, without its types and constants
  const char *enumerator, *name;
  uint8_t size;  // of an element in bytes
  DtypeKind kind;
  DtypeUse use;
  bool is_signed;
  std::string_view safetensors, npy;  // empty where the format lacks it
};
inline constexpr DtypeTraits kDtypeTraits[] = {
#define RUSH_TRAITS(enumerator, type, math, kind, use, text, safetensors, npy, ...) \
  {#enumerator, text, sizeof(type), DtypeKind::kind, DtypeUse::use, !std::is_unsigned_v<type>, safetensors, npy},
    RUSH_FORALL_SCALAR_TYPES(RUSH_TRAITS)
#undef RUSH_TRAITS
};
inline constexpr int kNumScalarTypes = sizeof(kDtypeTraits) / sizeof(DtypeTraits);
constexpr const DtypeTraits& traits_of(ScalarType type) { return kDtypeTraits[static_cast<int>(type)]; }  // its row

// kUInt8, kByte and so on.
#define RUSH_CONSTANTS(enumerator, type, math, kind, use, text, safetensors, npy, constant, ...) \
  inline constexpr ScalarType constant = ScalarType::enumerator __VA_OPT__(, __VA_ARGS__ = constant);
RUSH_FORALL_SCALAR_TYPES(RUSH_CONSTANTS)
#undef RUSH_CONSTANTS

// CppType<kFloat32>::type is float; scalar_type_of<float> is kFloat32.
template <ScalarType>
struct CppType;
template <class T>
struct ScalarTypeOf;
template <class T>
struct OpMath {
  using type = T;
};
#define RUSH_MAP_TYPE(enumerator, cpp, math, ...)               \
  template <>                                                   \
  struct CppType<ScalarType::enumerator> {                      \
    using type = cpp;                                           \
  };                                                            \
  template <>                                                   \
  struct ScalarTypeOf<cpp> {                                    \
    static constexpr ScalarType value = ScalarType::enumerator; \
  };                                                            \
  template <>                                                   \
  struct OpMath<cpp> {                                          \
    using type = math;                                          \
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
inline constexpr bool is_float8_v = std::is_same_v<T, Float8_e4m3fn> || std::is_same_v<T, Float8_e5m2>;
template <class T>
inline constexpr bool is_floating_v = std::is_floating_point_v<T> || is_reduced_float_v<T> || is_float8_v<T>;

// The type that arithmetic on T is done in: float for the narrower floating types, T itself otherwise.
template <class T>
using opmath_t = typename OpMath<T>::type;
// The size is in bytes; the names are those of the table: "float32".
constexpr int64_t element_size(ScalarType type) { return traits_of(type).size; }
constexpr const char* name(ScalarType type) { return traits_of(type).name; }
inline void append(std::string& out, ScalarType type) { out += name(type); }
// Half and 8-bit floats are floating point, complex numbers are not; `include_bool`: bool counts as an integer.
constexpr bool is_complex(ScalarType t) { return traits_of(t).kind == DtypeKind::Complex; }
constexpr bool is_floating_point(ScalarType t) { return traits_of(t).kind == DtypeKind::Float; }
constexpr bool is_integral(ScalarType t, bool include_bool) {
  return traits_of(t).kind == DtypeKind::Integer || (include_bool && t == kBool);
}
// Only these carry gradients.
constexpr bool is_differentiable(ScalarType t) { return is_floating_point(t) || is_complex(t); }
// The others are refused by arithmetic, with NotImplementedError.
constexpr bool has_arithmetic(ScalarType t) { return traits_of(t).use == DtypeUse::Arithmetic; }
// A dtype with arithmetic as which kernels can move the elements of `t`: itself or an integer of the same size.
constexpr ScalarType moved_as(ScalarType t) {
  if (has_arithmetic(t)) return t;
  const int64_t size = element_size(t);
  return size == 1 ? kUInt8 : size == 2 ? kInt16 : size == 4 ? kInt32 : kInt64;
}

// The smallest type that holds both, by PyTorch's table (https://pytorch.org/docs/stable/tensor_attributes.html).
// Throws TypeError where PyTorch has no such type: between an 8-bit float, or an unsigned integer of 16 bits or more,
// and another dtype, other than such an integer and a wider float.
ScalarType promote_types(ScalarType a, ScalarType b);
// complex64 -> float32, complex128 -> float64, others unchanged.
ScalarType to_real(ScalarType type);
// float32 -> complex64, float64 -> complex128; float16 and bfloat16 have no complex of their own and give complex64.
ScalarType to_complex(ScalarType type);
// Whether a result of type `from` may be written into a `to`: never downwards in complex, float, integer, bool.
bool can_cast(ScalarType from, ScalarType to);

}  // namespace rush
