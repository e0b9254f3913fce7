// complex<T>: two numbers side by side, laid out as std::complex<T> and as cuComplex are. Unlike std::complex, it runs
// on the GPU, has constexpr arithmetic, and multiplies by the plain formula (an infinity times something may give NaN,
// as it does in PyTorch). exp, sqrt, pow and the other functions are in core/complex_math.h.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>  // the primary template of std::hash, without <functional>

#include "core/macros.h"

namespace rush {

template <class T>
struct alignas(2 * sizeof(T)) complex {
  static_assert(std::same_as<T, float> || std::same_as<T, double>);
  using value_type = T;

  T real_;
  T imag_;

  complex() = default;  // indeterminate, as T is
  RUSH_HD constexpr complex(T real, T imag = T()) : real_(real), imag_(imag) {}

  /// Between complex<float> and complex<double>; implicit only where it widens.
  template <class U>
  RUSH_HD explicit(sizeof(U) > sizeof(T)) constexpr complex(const complex<U>& other)
      : real_(static_cast<T>(other.real())), imag_(static_cast<T>(other.imag())) {}

  /// As std::complex has them; the two with an argument change one part.
  RUSH_HD constexpr T real() const { return real_; }
  RUSH_HD constexpr T imag() const { return imag_; }
  RUSH_HD constexpr void real(T value) { real_ = value; }
  RUSH_HD constexpr void imag(T value) { imag_ = value; }
#include "core/ops/libtorch_complex.inc"
  RUSH_HD constexpr complex& operator+=(const complex& other) { return *this = *this + other; }
  RUSH_HD constexpr complex& operator-=(const complex& other) { return *this = *this - other; }
  RUSH_HD constexpr complex& operator*=(const complex& other) { return *this = *this * other; }
  RUSH_HD constexpr complex& operator/=(const complex& other) { return *this = *this / other; }

  // Friends, not templates: a real number or an int on either side converts to complex.
  RUSH_HD friend constexpr complex operator+(const complex& a) { return a; }
  RUSH_HD friend constexpr complex operator-(const complex& a) { return {-a.real_, -a.imag_}; }

  RUSH_HD friend constexpr complex operator+(const complex& a, const complex& b) {
    return {a.real_ + b.real_, a.imag_ + b.imag_};
  }

  RUSH_HD friend constexpr complex operator-(const complex& a, const complex& b) {
    return {a.real_ - b.real_, a.imag_ - b.imag_};
  }

  RUSH_HD friend constexpr complex operator*(const complex& a, const complex& b) {
    return {a.real_ * b.real_ - a.imag_ * b.imag_, a.real_ * b.imag_ + a.imag_ * b.real_};
  }

  /// Smith's method (Algorithm 116: Complex division, CACM 1962): dividing through by b's larger part keeps |b|^2,
  /// which may overflow or vanish where the quotient does not, from being formed.
  RUSH_HD friend constexpr complex operator/(const complex& a, const complex& b) {
    const T abs_real = b.real_ < 0 ? -b.real_ : b.real_;
    const T abs_imag = b.imag_ < 0 ? -b.imag_ : b.imag_;
    if (abs_real >= abs_imag) {
      if (abs_real == 0) return {a.real_ / abs_real, a.imag_ / abs_real};  // infinities and NaN, as numpy
      const T ratio = b.imag_ / b.real_;
      const T divisor = b.real_ + b.imag_ * ratio;
      return {(a.real_ + a.imag_ * ratio) / divisor, (a.imag_ - a.real_ * ratio) / divisor};
    }
    const T ratio = b.real_ / b.imag_;
    const T divisor = b.real_ * ratio + b.imag_;
    return {(a.real_ * ratio + a.imag_) / divisor, (a.imag_ * ratio - a.real_) / divisor};
  }

  RUSH_HD friend constexpr bool operator==(const complex& a, const complex& b) {
    return a.real_ == b.real_ && a.imag_ == b.imag_;
  }
};

using complex64 = complex<float>;
using complex128 = complex<double>;

/// As std::real, std::imag and std::conj.
template <class T>
RUSH_HD constexpr T real(const complex<T>& z) {
  return z.real();
}
template <class T>
RUSH_HD constexpr T imag(const complex<T>& z) {
  return z.imag();
}
template <class T>
RUSH_HD constexpr complex<T> conj(const complex<T>& z) {
  return {z.real(), -z.imag()};
}

/// |z|^2, the squared magnitude: std::norm's meaning of the name.
template <class T>
RUSH_HD constexpr T norm(const complex<T>& z) {
  return z.real() * z.real() + z.imag() * z.imag();
}

}  // namespace rush

/// Equal values have equal hashes; -0 equals 0, and std::hash of a floating type gives both the same.
template <class T>
struct std::hash<rush::complex<T>> {
  std::size_t operator()(const rush::complex<T>& z) const noexcept {
    return std::hash<T>()(z.real()) * 31 + std::hash<T>()(z.imag());
  }
};
