// Functions of complex numbers on a GPU, which core/complex_math.h includes in its code: nvcc's and NVRTC's. They are
// as accurate as libm's, for numbers of every magnitude, and have its values at infinities and its branch cuts. The
// inverse functions are those of W. Kahan ("Branch cuts for complex elementary functions, or much ado about nothing's
// sign bit", 1987): products of square roots, in which nothing cancels.
#pragma once
#include <cmath>
#include <limits>

#include "core/complex.h"

// Calls among these functions name the namespace, since core has functions of the same names for the same arguments.
namespace rush::device_code {

// i z and z / i.
template <class T>
__device__ complex<T> times_i(const complex<T>& z) {
  return {-z.imag(), z.real()};
}
template <class T>
__device__ complex<T> over_i(const complex<T>& z) {
  return {z.imag(), -z.real()};
}

// (a cos t, b sin t). At t = 0, where a or b may be infinite, the sine's part is a zero of t's sign.
template <class T>
__device__ complex<T> turned(T a, T b, T t) {
  return {a * std::cos(t), t == 0 ? std::copysign(t, b < 0 ? -t : t) : b * std::sin(t)};
}

// Above this, e^x is near its overflow, and sinh x and cosh x are e^|x| / 2.
template <class T>
constexpr T kLargeExponent = sizeof(T) == 4 ? 88 : 709;

// factor e^(x + i y) for a large x: e^x may be infinite where its product with the cosine is not.
template <class T>
__device__ complex<T> large_exp(T x, T y, T factor = 1) {
  const T half = std::exp(x / 2);
  const complex<T> part = turned(half * factor, half * factor, y);
  return {part.real() * half, part.imag() * half};
}

template <class T>
__device__ complex<T> exp(const complex<T>& z) {
  const T x = z.real(), y = z.imag();
  if (std::isinf(x) && !std::isfinite(y)) return x > 0 ? complex<T>(x, y - y) : complex<T>(0, 0);
  if (x > kLargeExponent<T> && std::isfinite(x)) return large_exp(x, y);
  return turned(std::exp(x), std::exp(x), y);
}

template <class T>
constexpr T kLog2 = T(0.69314718055994530942);

// log|z|: near |z| = 1 from |z|^2 - 1, in which nothing that matters cancels.
template <class T>
__device__ T log_abs(const complex<T>& z) {
  const T a = std::fmax(std::abs(z.real()), std::abs(z.imag())), b = std::fmin(std::abs(z.real()), std::abs(z.imag()));
  if (a > std::numeric_limits<T>::max() / 2) return std::log(std::hypot(z.real() / 2, z.imag() / 2)) + kLog2<T>;
  if (a > T(0.7) && a < T(1.4) && a * a + b * b < 2) return std::log1p((a - 1) * (a + 1) + b * b) / 2;
  return std::log(std::hypot(z.real(), z.imag()));
}

template <class T>
__device__ complex<T> log(const complex<T>& z) {
  return {log_abs(z), std::atan2(z.imag(), z.real())};
}

template <class T>
__device__ complex<T> log10(const complex<T>& z) {
  constexpr T kLog10E = T(0.43429448190325182765);
  return {log_abs(z) * kLog10E, std::atan2(z.imag(), z.real()) * kLog10E};
}

template <class T>
__device__ complex<T> sqrt(const complex<T>& z) {
  const T x = z.real(), y = z.imag();
  if (x == 0 && y == 0) return {0, y};
  if (std::isinf(y)) return {std::abs(y), y};
  if (std::isinf(x)) return x > 0 ? complex<T>(x, std::copysign(y - y, y)) : complex<T>(y - y, std::copysign(x, y));
  // |x| + |z| neither overflows nor loses digits to the subnormal numbers.
  const T largest = std::fmax(std::abs(x), std::abs(y));
  const T scale = largest > std::numeric_limits<T>::max() / 8    ? T(0.25)
                  : largest < std::numeric_limits<T>::min() * 16 ? T(sizeof(T) == 4 ? 0x1p48 : 0x1p108)
                                                                 : T(1);
  const T scaled = std::abs(x * scale), t = std::sqrt((scaled + std::hypot(scaled, y * scale)) / 2);
  const T root = std::sqrt(scale), small = y * scale / (2 * t);
  return x >= 0 ? complex<T>(t / root, small / root) : complex<T>(std::abs(small) / root, std::copysign(t / root, y));
}

template <class T>
__device__ complex<T> sinh(const complex<T>& z) {
  const T x = z.real(), y = z.imag();
  if ((x == 0 || std::isinf(x)) && !std::isfinite(y)) return {x, y - y};
  if (std::abs(x) > kLargeExponent<T> && std::isfinite(x)) {
    const complex<T> half = large_exp(std::abs(x), y, T(0.5));
    return {x < 0 ? -half.real() : half.real(), half.imag()};
  }
  return turned(std::sinh(x), std::cosh(x), y);
}

template <class T>
__device__ complex<T> cosh(const complex<T>& z) {
  const T x = z.real(), y = z.imag();
  if (!std::isfinite(y)) {
    if (x == 0) return {y - y, x};
    if (std::isinf(x)) return {x * x, y - y};
  }
  if (std::abs(x) > kLargeExponent<T> && std::isfinite(x)) {
    const complex<T> half = large_exp(std::abs(x), y, T(0.5));
    return {half.real(), x < 0 ? -half.imag() : half.imag()};
  }
  return turned(std::cosh(x), std::sinh(x), y);
}

template <class T>
__device__ complex<T> tanh(const complex<T>& z) {
  const T x = z.real(), y = z.imag();
  if (std::isinf(x)) return {std::copysign(T(1), x), std::copysign(T(0), std::isfinite(y) ? std::sin(2 * y) : y)};
  if (x == 0) return {x, std::tan(y)};
  if (y == 0) return {std::tanh(x), y};
  if (std::abs(x) > T(sizeof(T) == 4 ? 11 : 22) && std::isfinite(y)) {  // the real part is 1 to the last digit
    const T small = std::exp(-std::abs(x));
    return {std::copysign(T(1), x), 4 * std::sin(y) * std::cos(y) * small * small};
  }
  const T t = std::tan(y), beta = 1 + t * t, s = std::sinh(x), divisor = 1 + beta * s * s;
  return {beta * std::sqrt(1 + s * s) * s / divisor, t / divisor};
}

template <class T>
__device__ complex<T> sin(const complex<T>& z) {
  return over_i(device_code::sinh(times_i(z)));
}
template <class T>
__device__ complex<T> cos(const complex<T>& z) {
  return device_code::cosh(times_i(z));
}
template <class T>
__device__ complex<T> tan(const complex<T>& z) {
  return over_i(device_code::tanh(times_i(z)));
}

// sqrt(1 - z) and sqrt(1 + z); for a z on a branch cut, the zero that is its imaginary part keeps its sign.
template <class T>
struct Roots {
  complex<T> minus, plus;
  __device__ explicit Roots(const complex<T>& z)
      : minus(device_code::sqrt(complex<T>(1 - z.real(), -z.imag()))),
        plus(device_code::sqrt(complex<T>(1 + z.real(), z.imag()))) {}
};

template <class T>
constexpr T kRightAngle = T(1.57079632679489661923);

// Whether z^2 + 1 is z^2, except for what rounding takes.
template <class T>
__device__ bool is_large(const complex<T>& z) {
  return std::fmax(std::abs(z.real()), std::abs(z.imag())) > 1 / std::numeric_limits<T>::epsilon();
}

template <class T>
__device__ complex<T> acos(const complex<T>& z) {
  if (is_large(z)) return {std::atan2(std::abs(z.imag()), z.real()), -std::copysign(log_abs(z) + kLog2<T>, z.imag())};
  if (z.real() == 0) return {kRightAngle<T>, -std::asinh(z.imag())};
  const Roots<T> roots(z);
  return {2 * std::atan2(roots.minus.real(), roots.plus.real()), std::asinh((conj(roots.plus) * roots.minus).imag())};
}

template <class T>
__device__ complex<T> asin(const complex<T>& z) {
  if (is_large(z)) return {std::atan2(z.real(), std::abs(z.imag())), std::copysign(log_abs(z) + kLog2<T>, z.imag())};
  if (z.real() == 0) return {z.real(), std::asinh(z.imag())};
  const Roots<T> roots(z);
  return {std::atan2(z.real(), (roots.minus * roots.plus).real()), std::asinh((conj(roots.minus) * roots.plus).imag())};
}

template <class T>
__device__ complex<T> asinh(const complex<T>& z) {
  return over_i(device_code::asin(times_i(z)));
}

// acos turned by a right angle, to where the real part is positive.
template <class T>
__device__ complex<T> acosh(const complex<T>& z) {
  const complex<T> angle = device_code::acos(z);
  return std::signbit(angle.imag()) ? times_i(angle) : over_i(angle);
}

template <class T>
__device__ complex<T> atanh(const complex<T>& z) {
  const T x = std::abs(z.real()), y = z.imag();
  if (x == 0) return {z.real(), std::atan(y)};
  if (is_large(z)) {  // 1 / z and a right angle
    const T largest = std::fmax(x, std::abs(y));
    const T real = std::isinf(largest) ? T(0) : x / largest / (x / largest * x + y / largest * y);
    return {std::copysign(real, z.real()), std::isnan(y) ? y : std::copysign(kRightAngle<T>, y)};
  }
  const T distance2 = (1 - x) * (1 - x) + y * y;  // from 1
  return {std::copysign(std::log1p(4 * x / distance2) / 4, z.real()), std::atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2};
}

template <class T>
__device__ complex<T> atan(const complex<T>& z) {
  return over_i(device_code::atanh(times_i(z)));
}

template <class T>
__device__ complex<T> pow(const complex<T>& base, const complex<T>& exponent) {
  return device_code::exp(exponent * device_code::log(base));
}

}  // namespace rush::device_code
