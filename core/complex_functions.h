// The list of a complex number's functions, without the functions: a header that declares its own must not bring the
// overloads of core/complex_math.h along, because they would make `&rush::tanh` ambiguous.
#pragma once

/// Every function of one complex number that the standard library has, by its standard name.
#define RUSH_FORALL_COMPLEX_FUNCTIONS(X) \
  X(exp)                                 \
  X(log)                                 \
  X(log10)                               \
  X(sqrt)                                \
  X(sin)                                 \
  X(cos)                                 \
  X(tan)                                 \
  X(asin)                                \
  X(acos)                                \
  X(atan)                                \
  X(sinh)                                \
  X(cosh)                                \
  X(tanh)                                \
  X(asinh)                               \
  X(acosh)                               \
  X(atanh)
