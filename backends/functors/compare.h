// Comparisons, logic and bits of two operands, and which of them is larger.
#pragma once
#include "backends/functors/select.h"
#include "core/complex.h"
#include "core/integer.h"
#ifndef __CUDACC_RTC__  // see Note [Functors compiled at run time]
#include "backends/functors/table.h"
#include "core/ops/pointwise/bitwise.h"
#include "core/ops/pointwise/compare.h"
#include "core/ops/pointwise/unary.h"
#endif

namespace rush::functors {

RUSH_FUNCTOR(Eq, bool, T a, T b) { return a == b; }
RUSH_FUNCTOR(Ne, bool, T a, T b) { return !(a == b); }
RUSH_FUNCTOR(Lt, bool, T a, T b) { return a < b; }
RUSH_FUNCTOR(Le, bool, T a, T b) { return a <= b; }
RUSH_FUNCTOR(Gt, bool, T a, T b) { return a > b; }
RUSH_FUNCTOR(Ge, bool, T a, T b) { return a >= b; }

// NaN where one is NaN: no number compares with itself as unequal.
RUSH_FUNCTOR(Maximum, T, T a, T b) { return a > b || a != a ? a : b; }
RUSH_FUNCTOR(Minimum, T, T a, T b) { return a < b || a != a ? a : b; }
// NaN only where both are.
RUSH_FUNCTOR(Fmax, T, T a, T b) { return a >= b || b != b ? a : b; }
RUSH_FUNCTOR(Fmin, T, T a, T b) { return a <= b || b != b ? a : b; }

RUSH_FUNCTOR(LogicalNot, bool, T a) { return a == T(0); }
RUSH_FUNCTOR(LogicalAnd, bool, T a, T b) { return !(a == T(0)) && !(b == T(0)); }
RUSH_FUNCTOR(LogicalOr, bool, T a, T b) { return !(a == T(0)) || !(b == T(0)); }
RUSH_FUNCTOR(LogicalXor, bool, T a, T b) { return (a == T(0)) != (b == T(0)); }

RUSH_FUNCTOR(BitwiseNot, T, T a) {
  if constexpr (std::is_same_v<T, bool>) {
    return !a;
  } else {
    return static_cast<T>(~a);
  }
}
RUSH_FUNCTOR(BitwiseAnd, T, T a, T b) { return static_cast<T>(a & b); }
RUSH_FUNCTOR(BitwiseOr, T, T a, T b) { return static_cast<T>(a | b); }
RUSH_FUNCTOR(BitwiseXor, T, T a, T b) { return static_cast<T>(a ^ b); }

// C++ does not define shifts by all bits or more: nothing is left then, or only the sign.
RUSH_FUNCTOR(LeftShift, T, T a, T b) {
  constexpr int kBits = 8 * sizeof(T);
  if (b < 0 || b >= kBits) return 0;
  return static_cast<T>(static_cast<Unsigned<T>>(a) << b);
}
RUSH_FUNCTOR(RightShift, T, T a, T b) {
  constexpr int kBits = 8 * sizeof(T);
  if (b < 0 || b >= kBits) return a < 0 ? T(-1) : T(0);
  return static_cast<T>(a >> b);
}

#ifndef __CUDACC_RTC__
using CompareTable =
    Table<Row<kernels::eq, Eq, AllTypes>, Row<kernels::ne, Ne, AllTypes>, Row<kernels::lt, Lt, RealAndBoolTypes>,
          Row<kernels::le, Le, RealAndBoolTypes>, Row<kernels::gt, Gt, RealAndBoolTypes>,
          Row<kernels::ge, Ge, RealAndBoolTypes>, Row<kernels::maximum, Maximum, RealAndBoolTypes>,
          Row<kernels::minimum, Minimum, RealAndBoolTypes>, Row<kernels::fmax, Fmax, RealAndBoolTypes>,
          Row<kernels::fmin, Fmin, RealAndBoolTypes>>;

using LogicTable =
    Table<Row<kernels::logical_not, LogicalNot, AllTypes>, Row<kernels::logical_and, LogicalAnd, AllTypes>,
          Row<kernels::logical_or, LogicalOr, AllTypes>, Row<kernels::logical_xor, LogicalXor, AllTypes>,
          Row<kernels::bitwise_not, BitwiseNot, IntegerAndBoolTypes>,
          Row<kernels::bitwise_and, BitwiseAnd, IntegerAndBoolTypes>,
          Row<kernels::bitwise_or, BitwiseOr, IntegerAndBoolTypes>,
          Row<kernels::bitwise_xor, BitwiseXor, IntegerAndBoolTypes>,
          Row<kernels::bitwise_left_shift, LeftShift, IntegerTypes>,
          Row<kernels::bitwise_right_shift, RightShift, IntegerTypes>>;
#endif

}  // namespace rush::functors
