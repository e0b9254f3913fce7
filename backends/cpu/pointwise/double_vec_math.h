// exp, log, sin, tanh, erf, pow and so on of vectors of doubles: glibc's vector functions (libmvec, which a program is
// linked with as it is with libm), accurate to 4 units in the last place. Where there are none, each lane by itself.
#pragma once
#include <cmath>

#include "backends/cpu/vec.h"

#if defined(__x86_64__) && defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
#if defined(__AVX512F__)
#define RUSH_OF_ONE(name) _ZGVeN8v_##name
#define RUSH_OF_TWO(name) _ZGVeN8vv_##name
#elif defined(__AVX2__)
#define RUSH_OF_ONE(name) _ZGVdN4v_##name
#define RUSH_OF_TWO(name) _ZGVdN4vv_##name
#elif defined(__AVX__)
#define RUSH_OF_ONE(name) _ZGVcN4v_##name
#define RUSH_OF_TWO(name) _ZGVcN4vv_##name
#else
#define RUSH_OF_ONE(name) _ZGVbN2v_##name
#define RUSH_OF_TWO(name) _ZGVbN2vv_##name
#endif
#endif

namespace rush::cpu {

#ifdef RUSH_OF_ONE
#define RUSH_DOUBLES(name)                                           \
  extern "C" DoubleVec::Floats RUSH_OF_ONE(name)(DoubleVec::Floats); \
  inline DoubleVec name(DoubleVec x) { return DoubleVec(RUSH_OF_ONE(name)(x.lanes())); }
#define RUSH_PAIRS_OF_DOUBLES(name)                                                     \
  extern "C" DoubleVec::Floats RUSH_OF_TWO(name)(DoubleVec::Floats, DoubleVec::Floats); \
  inline DoubleVec name(DoubleVec a, DoubleVec b) { return DoubleVec(RUSH_OF_TWO(name)(a.lanes(), b.lanes())); }
#else
#define RUSH_DOUBLES(name)                                      \
  inline DoubleVec name(DoubleVec x) {                          \
    return x.each([](double lane) { return std::name(lane); }); \
  }
#define RUSH_PAIRS_OF_DOUBLES(name)                                                \
  inline DoubleVec name(DoubleVec a, DoubleVec b) {                                \
    return lane_by_lane(a, b, [](double x, double y) { return std::name(x, y); }); \
  }
#endif

RUSH_DOUBLES(exp)
RUSH_DOUBLES(exp2)
RUSH_DOUBLES(expm1)
RUSH_DOUBLES(log)
RUSH_DOUBLES(log2)
RUSH_DOUBLES(log10)
RUSH_DOUBLES(log1p)
RUSH_DOUBLES(sin)
RUSH_DOUBLES(cos)
RUSH_DOUBLES(tan)
RUSH_DOUBLES(asin)
RUSH_DOUBLES(acos)
RUSH_DOUBLES(atan)
RUSH_DOUBLES(sinh)
RUSH_DOUBLES(cosh)
RUSH_DOUBLES(tanh)
RUSH_DOUBLES(asinh)
RUSH_DOUBLES(acosh)
RUSH_DOUBLES(atanh)
RUSH_DOUBLES(erf)
RUSH_DOUBLES(erfc)
RUSH_PAIRS_OF_DOUBLES(atan2)
RUSH_PAIRS_OF_DOUBLES(hypot)
RUSH_PAIRS_OF_DOUBLES(pow)

#undef RUSH_OF_ONE
#undef RUSH_OF_TWO
#undef RUSH_DOUBLES
#undef RUSH_PAIRS_OF_DOUBLES

}  // namespace rush::cpu
