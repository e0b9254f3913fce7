#include "core/scalar_type.h"

#include "core/error/error.h"

namespace rush {

namespace {

// PyTorch promotes a dtype without arithmetic only from integers to a float that has it.
ScalarType promote_stored(ScalarType a, ScalarType b) {
  if (is_integral(b, false) && is_floating_point(a) && has_arithmetic(a)) return a;
  if (is_integral(a, false) && is_floating_point(b) && has_arithmetic(b)) return b;
  RUSH_THROW(TypeError, "promote_types: there is no common dtype for ", a, " and ", b, "; convert one of them first");
}

}  // namespace

ScalarType promote_types(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (!has_arithmetic(a) || !has_arithmetic(b)) return promote_stored(a, b);
  const DtypeKind ca = traits_of(a).kind, cb = traits_of(b).kind;
  if (ca < cb) return promote_types(b, a);
  if (ca == DtypeKind::Complex) {
    const bool wide = a == kComplex128 || b == kComplex128 || b == kFloat64;
    return wide ? kComplex128 : kComplex64;
  }
  if (ca != cb) return a;
  if (ca == DtypeKind::Float) {
    if (a == kFloat64 || b == kFloat64) return kFloat64;
    return kFloat32;  // also float16 with bfloat16, neither of which holds the other
  }
  // Integers: the wider one; uint8 with a signed type needs one that holds both.
  if (a == kUInt8 || b == kUInt8) {
    const ScalarType other = a == kUInt8 ? b : a;
    return other == kInt8 ? kInt16 : other;
  }
  return a > b ? a : b;
}

ScalarType to_real(ScalarType type) { return type == kComplex64 ? kFloat32 : type == kComplex128 ? kFloat64 : type; }

ScalarType to_complex(ScalarType type) {
  if (is_complex(type)) return type;
  return type == kFloat64 ? kComplex128 : kComplex64;
}

bool can_cast(ScalarType from, ScalarType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating_point(from) && is_integral(to, true)) return false;
  return from == kBool || to != kBool;
}

}  // namespace rush
