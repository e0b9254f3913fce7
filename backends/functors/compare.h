// Comparisons, logic and bits of two operands, and which of them is larger.
#pragma once
#include "core/complex.h"
#include "core/integer.h"

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
struct LogicalAnd {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return !(a == T(0)) && !(b == T(0));
  }
};
struct LogicalOr {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return !(a == T(0)) || !(b == T(0));
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

}  // namespace rush::functors
