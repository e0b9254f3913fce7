#include "core/scalar_type.h"

#include <atomic>

#include "core/error/error.h"

namespace rush {

const char* name(ScalarType type) {
  static constexpr const char* names[kNumScalarTypes] = {
#define RUSH_NAME(name, cpp, text) text,
      RUSH_FORALL_SCALAR_TYPES(RUSH_NAME)
#undef RUSH_NAME
  };
  return names[static_cast<int>(type)];
}

ScalarType promote_types(ScalarType a, ScalarType b) {
  if (a == b) return a;
  const auto category = [](ScalarType t) { return is_complex(t) ? 3 : is_floating_point(t) ? 2 : t == kBool ? 0 : 1; };
  const int ca = category(a), cb = category(b);
  if (ca < cb) return promote_types(b, a);
  if (ca == 3) {
    const bool wide = a == kComplex128 || b == kComplex128 || b == kFloat64;
    return wide ? kComplex128 : kComplex64;
  }
  if (ca != cb) return a;
  if (ca == 2) {
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

namespace {
std::atomic<ScalarType> default_dtype{kFloat32};
}

ScalarType get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(ScalarType type) {
  RUSH_CHECK_TYPE(is_floating_point(type), "set_default_dtype: expected a floating point type, got ", type);
  default_dtype.store(type, std::memory_order_relaxed);
}

}  // namespace rush
