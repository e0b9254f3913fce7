// Scalar: a number, as arguments such as `alpha` take it; it remembers if it was a bool, integer, float or complex.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "core/error/error.h"
#include "core/integer.h"
#include "core/scalar_type.h"

namespace rush {

class Scalar {
 public:
  constexpr Scalar() : type_(kInt64), integer_(0) {}
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) constexpr Scalar(T value)
      : type_(std::is_unsigned_v<T> && value > T(INT64_MAX) && sizeof(T) == 8 ? kUInt64 : kInt64),
        integer_(static_cast<int64_t>(value)) {}
  template <class T>
  requires(std::is_same_v<T, bool>) constexpr Scalar(T value) : type_(kBool), integer_(value) {}
  constexpr Scalar(double value) : type_(kFloat64), real_(value) {}
  constexpr Scalar(float value) : type_(kFloat64), real_(value) {}
  Scalar(Half value) : type_(kFloat64), real_(static_cast<float>(value)) {}
  Scalar(BFloat16 value) : type_(kFloat64), real_(static_cast<float>(value)) {}
  template <class T>
  requires is_float8_v<T> Scalar(T value) : type_(kFloat64), real_(static_cast<float>(value)) {}
  Scalar(complex<double> value) : type_(kComplex128), real_(value.real()), imag_(value.imag()) {}
  Scalar(complex<float> value) : type_(kComplex128), real_(value.real()), imag_(value.imag()) {}

  /// kBool, kInt64, kFloat64 or kComplex128; kUInt64 for what an int64 does not hold.
  ScalarType type() const { return type_; }
  bool is_boolean() const { return type_ == kBool; }
  bool is_integral(bool include_bool) const { return rush::is_integral(type_, include_bool); }
  bool is_floating_point() const { return type_ == kFloat64; }
  bool is_complex() const { return type_ == kComplex128; }

  /// The value as T. Throws ValueError when a complex with an imaginary part is asked for as a real number, and when an
  /// integer type does not hold it; negative integers wrap around in an unsigned one, down to -max, as in PyTorch.
  template <class T>
  T to() const {
    if constexpr (is_complex_v<T>) {
      using Real = decltype(T().real());
      return is_complex() ? T(static_cast<Real>(real_), static_cast<Real>(imag_))
                          : T(static_cast<Real>(to<double>()), Real(0));
    } else {
      RUSH_CHECK_VALUE(!is_complex() || imag_ == 0, "Scalar: a complex number cannot be converted to a real one");
      if constexpr (std::is_same_v<T, bool>) {
        return type_ == kFloat64 || is_complex() ? real_ != 0 : integer_ != 0;
      } else if constexpr (is_reduced_float_v<T> || is_float8_v<T>) {
        return T(static_cast<float>(to<double>()));
      } else {
        if (type_ == kFloat64 || is_complex()) return converted<T>(real_);
        return type_ == kUInt64 ? converted<T>(static_cast<uint64_t>(integer_)) : converted<T>(integer_);
      }
    }
  }
  double toDouble() const { return to<double>(); }
  int64_t toLong() const { return to<int64_t>(); }
  bool toBool() const { return to<bool>(); }
#include "core/ops/libtorch_scalar.inc"

  Scalar conj() const { return is_complex() ? Scalar(complex<double>(real_, -imag_)) : *this; }  // itself if real

  /// Whether the value equals `other` exactly; cheap tests such as alpha == 1.
  bool equal(double other) const { return !is_complex() && toDouble() == other; }
  Scalar operator-() const {  // integers wrap around
    if (is_complex()) return Scalar(complex<double>(-real_, -imag_));
    return is_floating_point() ? Scalar(-real_) : Scalar(wrap_sub<int64_t>(0, to<int64_t>()));
  }

 private:
  template <class T>
  static constexpr bool held_by(double value) {
    using Limits = std::numeric_limits<T>;
    constexpr double kAbove = 2.0 * static_cast<double>(Limits::max() / 2 + 1);  // max of 64 bits is no double
    return value >= static_cast<double>(Limits::min()) && value <= static_cast<double>(Limits::max()) && value < kAbove;
  }
  template <class T>
  static constexpr bool held_by(uint64_t value) {
    return value <= static_cast<uint64_t>(std::numeric_limits<T>::max());
  }
  template <class T>
  static constexpr bool held_by(int64_t value) {
    using Limits = std::numeric_limits<T>;
    if constexpr (sizeof(T) == sizeof(value)) {
      return true;
    } else {
      return value <= Limits::max() && value >= (std::is_signed_v<T> ? Limits::min() : -int64_t{Limits::max()});
    }
  }
  template <class T, class Number>
  T converted(Number value) const {
    if constexpr (std::is_integral_v<T>) {
      if (!held_by<T>(value)) throw_not_held(std::is_signed_v<T> ? "int" : "uint", 8 * sizeof(T));
    }
    return static_cast<T>(value);
  }
  [[noreturn]] void throw_not_held(const char* kind, size_t bits) const;

  ScalarType type_;
  union {
    int64_t integer_;
    double real_;
  };
  double imag_ = 0;
};

void append(std::string& out, const Scalar& scalar);  // "0.5", "true", "(0.5 + 2.5j)"

}  // namespace rush
