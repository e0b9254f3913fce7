// What core/complex_math.h includes under NVRTC where a kernel did not ask for functions of complex numbers: they are
// declared, and calling one is an error.
#pragma once
#include "core/complex.h"

namespace rush::device_code {
#define RUSH_DEFINE_FUNCTION(name) \
  template <class T>               \
  __device__ complex<T> name(const complex<T>&) = delete;
RUSH_FORALL_COMPLEX_FUNCTIONS(RUSH_DEFINE_FUNCTION)
#undef RUSH_DEFINE_FUNCTION
template <class T>
__device__ complex<T> pow(const complex<T>&, const complex<T>&) = delete;
}  // namespace rush::device_code
