// The element-wise operators that take nothing but their tensors. From these tables come their declarations, methods,
// registrations and kernels' names.
#pragma once

// Of one tensor. Integers give the default dtype.
#define RUSH_FORALL_FLOAT_UNARY(X)                                                      \
  X(acos)       /* inverse cosine */                                                    \
  X(acosh)      /* inverse hyperbolic cosine */                                         \
  X(asin)       /* inverse sine */                                                      \
  X(asinh)      /* inverse hyperbolic sine */                                           \
  X(atan)       /* inverse tangent */                                                   \
  X(atanh)      /* inverse hyperbolic tangent */                                        \
  X(cos)        /* cosine, of radians */                                                \
  X(cosh)       /* hyperbolic cosine */                                                 \
  X(deg2rad)    /* degrees to radians */                                                \
  X(digamma)    /* derivative of lgamma; NaN at negative integers */                    \
  X(erf)        /* error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 */ \
  X(erfc)       /* 1 - erf, accurate where that is small */                             \
  X(erfinv)     /* inverse of erf; infinite at -1 and 1, NaN outside */                 \
  X(exp)        /* e to the power of each element */                                    \
  X(exp2)       /* 2 to the power of each element */                                    \
  X(expm1)      /* exp(x) - 1, accurate near 0 */                                       \
  X(i0)         /* modified Bessel function of the first kind of order 0 */             \
  X(lgamma)     /* logarithm of the absolute value of the gamma function */             \
  X(log)        /* natural logarithm; NaN below 0 for real numbers */                   \
  X(log10)      /* logarithm to base 10 */                                              \
  X(log1p)      /* log(1 + x), accurate near 0 */                                       \
  X(log2)       /* logarithm to base 2 */                                               \
  X(rad2deg)    /* radians to degrees */                                                \
  X(reciprocal) /* 1 / x */                                                             \
  X(rsqrt)      /* 1 / sqrt(x) */                                                       \
  X(sigmoid)    /* 1 / (1 + exp(-x)) */                                                 \
  X(sin)        /* sine, of radians */                                                  \
  X(sinc)       /* sin(pi x) / (pi x), and 1 at 0 */                                    \
  X(sinh)       /* hyperbolic sine */                                                   \
  X(sqrt)       /* square root; NaN below 0 for real numbers */                         \
  X(tan)        /* tangent, of radians */                                               \
  X(tanh)       /* hyperbolic tangent */

// Every dtype keeps its own.
#define RUSH_FORALL_SAME_UNARY(X)                                      \
  X(bitwise_not)   /* ~x; of bool, not x. Throws on floating point. */ \
  X(conj_physical) /* complex conjugate, in new memory */              \
  X(frac)          /* x - trunc(x). Throws on integers. */             \
  X(neg)           /* -x. Throws on bool. */                           \
  X(sgn)           /* x / |x|, and 0 at 0 */                           \
  X(sign)          /* -1, 0 or 1. Throws on complex. */

// Likewise; integers, being whole already, are copied.
#define RUSH_FORALL_ROUNDING(X)             \
  X(ceil)  /* the next integer upwards */   \
  X(floor) /* the next integer downwards */ \
  X(trunc) /* the next integer towards 0 */

// The result is bool. No in-place forms.
#define RUSH_FORALL_PREDICATES(X)                                               \
  X(isfinite) /* neither infinite nor NaN, in both parts of a complex number */ \
  X(isinf)    /* infinite, in a part of a complex number */                     \
  X(isnan)    /* NaN, in a part of a complex number */                          \
  X(isneginf) /* minus infinity. Throws on complex. */                          \
  X(isposinf) /* plus infinity. Throws on complex. */                           \
  X(isreal)   /* without an imaginary part */                                   \
  X(signbit)  /* the sign is minus: of -0.0 too. Throws on complex. */

// Of two tensors, or a tensor and a number; the result is bool.
#define RUSH_FORALL_COMPARISONS(X) \
  X(eq) /* self == other */        \
  X(ge) /* self >= other */        \
  X(gt) /* self > other */         \
  X(le) /* self <= other */        \
  X(lt) /* self < other */         \
  X(ne) /* self != other */

// Of two tensors, 0 being false and all else true; the result is bool.
#define RUSH_FORALL_LOGICAL(X)             \
  X(logical_and) /* both are true */       \
  X(logical_or)  /* one is true or both */ \
  X(logical_xor) /* exactly one is true */

// Of two tensors, or a tensor and a number, of integers; and, or, xor of bool too.
#define RUSH_FORALL_BITWISE(X)                                                \
  X(bitwise_and)         /* self & other */                                   \
  X(bitwise_left_shift)  /* self << other; 0 when all bits are shifted out */ \
  X(bitwise_or)          /* self | other */                                   \
  X(bitwise_right_shift) /* self >> other, keeping the sign */                \
  X(bitwise_xor)         /* self ^ other */

// Of two tensors, in their common dtype.
#define RUSH_FORALL_BINARY_MATH(X)                                    \
  X(gcd)       /* greatest common divisor of integers */              \
  X(hypot)     /* sqrt(self^2 + other^2) of floating point numbers */ \
  X(lcm)       /* least common multiple of integers */                \
  X(nextafter) /* the next floating point number after self, towards other */

// Likewise, without in-place forms.
#define RUSH_FORALL_BINARY_FRESH(X)                        \
  X(fmax)       /* the larger; NaN only where both are */  \
  X(fmin)       /* the smaller; NaN only where both are */ \
  X(logaddexp)  /* log(exp(self) + exp(other)) */          \
  X(logaddexp2) /* log2(2^self + 2^other) */               \
  X(maximum)    /* the larger; NaN where one is */         \
  X(minimum)    /* the smaller; NaN where one is */
