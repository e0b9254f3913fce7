// Functions of complex numbers by libcu++, for core/complex_math.h, which includes this in .cu files.
#pragma once
#include <cuda/std/complex>

#include "core/complex.h"

namespace rush::device_code {
template <class T>
__device__ ::cuda::std::complex<T> to_std(const complex<T>& z) {
  return {z.real(), z.imag()};
}

template <class T>
__device__ complex<T> from_std(const ::cuda::std::complex<T>& z) {
  return {z.real(), z.imag()};
}

#define RUSH_DEFINE_FUNCTION(name)                  \
  template <class T>                                \
  __device__ complex<T> name(const complex<T>& z) { \
    return from_std(::cuda::std::name(to_std(z)));  \
  }
RUSH_FORALL_COMPLEX_FUNCTIONS(RUSH_DEFINE_FUNCTION)
#undef RUSH_DEFINE_FUNCTION

// libcu++ divides by cosh 2x + cos 2y, of which near the poles no digit is left. This is W. Kahan's way ("Branch cuts
// for complex elementary functions", 1987), which C libraries go.
template <class T>
__device__ complex<T> finite_tanh(const complex<T>& z) {
  const T x = z.real(), y = z.imag();
  if (!std::isfinite(x) || !std::isfinite(y)) return from_std(::cuda::std::tanh(to_std(z)));
  if (std::abs(x) > T(sizeof(T) == 4 ? 11 : 22)) {  // the real part is 1 to the last digit
    const T small = std::exp(-std::abs(x));
    return {std::copysign(T(1), x), 4 * std::sin(y) * std::cos(y) * small * small};
  }
  const T t = std::tan(y), beta = 1 + t * t, s = std::sinh(x), divisor = 1 + beta * s * s;
  return {beta * std::sqrt(1 + s * s) * s / divisor, t / divisor};
}
// Chosen before the template above.
inline __device__ complex<float> tanh(const complex<float>& z) { return finite_tanh(z); }
inline __device__ complex<double> tanh(const complex<double>& z) { return finite_tanh(z); }

template <class T>
__device__ complex<T> pow(const complex<T>& base, const complex<T>& exponent) {
  return from_std(::cuda::std::pow(to_std(base), to_std(exponent)));
}
}  // namespace rush::device_code
