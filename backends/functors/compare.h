// Comparisons, logic and bits of two operands, and which of them is larger.
#pragma once
#include "core/complex.h"
#include "core/integer.h"
#ifndef __CUDACC_RTC__  // see Note [Functors compiled at run time]
#include "backends/functors/table.h"
#include "core/ops/pointwise/bitwise.h"
#include "core/ops/pointwise/compare.h"
#include "core/ops/pointwise/unary.h"
#endif

namespace rush::functors {

struct Eq {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Ne {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return !(a == b);
  }
};
struct Lt {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Le {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return a > b;
  }
};
struct Ge {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return a >= b;
  }
};

// NaN where one is NaN: no number compares with itself as unequal.
struct Maximum {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};
// NaN only where both are.
struct Fmax {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return a >= b || b != b ? a : b;
  }
};
struct Fmin {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return a <= b || b != b ? a : b;
  }
};

struct LogicalNot {
  template <class T>
  RUSH_HD bool operator()(T a) const {
    return a == T(0);
  }
};
// Both sides are computed, which the compiler vectorises.
struct LogicalAnd {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return !(a == T(0)) & !(b == T(0));
  }
};
struct LogicalOr {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return !(a == T(0)) | !(b == T(0));
  }
};
struct LogicalXor {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return (a == T(0)) != (b == T(0));
  }
};

struct BitwiseNot {
  template <class T>
  RUSH_HD T operator()(T a) const {
    if constexpr (std::is_same_v<T, bool>) {
      return !a;
    } else {
      return static_cast<T>(~a);
    }
  }
};
struct BitwiseAnd {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
// C++ does not define shifts by all bits or more: nothing is left then, or only the sign.
struct LeftShift {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    constexpr int kBits = 8 * sizeof(T);
    if (b < 0 || b >= kBits) return 0;
    return static_cast<T>(static_cast<Unsigned<T>>(a) << b);
  }
};
struct RightShift {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    constexpr int kBits = 8 * sizeof(T);
    if (b < 0 || b >= kBits) return a < 0 ? T(-1) : T(0);
    return static_cast<T>(a >> b);
  }
};

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
