// Complex numbers and tensors under one name, and the standard library's functions of the numbers.
#pragma once
#include "c10/macros/Macros.h"

#include <complex>
#include <concepts>
#include <istream>
#include <ostream>

#include "core/complex_functions.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/pointwise/unary.h"

namespace rush {

/// torch::complex(real, imag) is a function and complex<double> a number. Here the tensor that the function makes is
/// one of the template's types.
template <>
struct complex<Tensor> : Tensor {
  complex(const Tensor& real, const Tensor& imag) : Tensor(make_complex(real, imag)) {}
  const Tensor& tensor() const { return *this; }
};
inline Tensor real(const complex<Tensor>& z) { return rush::real(z.tensor()); }
inline Tensor imag(const complex<Tensor>& z) { return rush::imag(z.tensor()); }
inline Tensor conj(const complex<Tensor>& z) { return z.tensor().conj(); }

// Else the product of two numbers would be as good a match.
#define RUSH_COMPLEX_OPERATOR(op)                                     \
  template <class T>                                                  \
  Tensor operator op(const complex<Tensor>& a, const complex<T>& b) { \
    return a.tensor() op Scalar(b);                                   \
  }                                                                   \
  template <class T>                                                  \
  Tensor operator op(const complex<T>& a, const complex<Tensor>& b) { \
    return Scalar(a) op b.tensor();                                   \
  }                                                                   \
  inline Tensor operator op(const complex<Tensor>& a, const complex<Tensor>& b) { return a.tensor() op b.tensor(); }
RUSH_COMPLEX_OPERATOR(+)
RUSH_COMPLEX_OPERATOR(-)
RUSH_COMPLEX_OPERATOR(*)
RUSH_COMPLEX_OPERATOR(/)
#undef RUSH_COMPLEX_OPERATOR

}  // namespace rush

// The standard library's functions, and in namespace std, too, three that it has for real numbers alone.
#define RUSH_FORALL_FUNCTIONS_OF_COMPLEX(X) \
  RUSH_FORALL_COMPLEX_FUNCTIONS(X)          \
  X(log2)                                   \
  X(expm1)                                  \
  X(log1p)

namespace std {
#define RUSH_REAL_OF_COMPLEX(name)              \
  template <floating_point T>                   \
  constexpr T name(const rush::complex<T>& z) { \
    return name(static_cast<complex<T>>(z));    \
  }
RUSH_REAL_OF_COMPLEX(abs)
RUSH_REAL_OF_COMPLEX(arg)
RUSH_REAL_OF_COMPLEX(norm)
RUSH_REAL_OF_COMPLEX(real)
RUSH_REAL_OF_COMPLEX(imag)
#undef RUSH_REAL_OF_COMPLEX
template <floating_point T>
constexpr rush::complex<T> conj(const rush::complex<T>& z) {
  return {z.real(), -z.imag()};
}

#define RUSH_FUNCTION_OF_COMPLEX(name)                      \
  rush::complex<float> name(const rush::complex<float>& z); \
  rush::complex<double> name(const rush::complex<double>& z);
RUSH_FORALL_FUNCTIONS_OF_COMPLEX(RUSH_FUNCTION_OF_COMPLEX)
#undef RUSH_FUNCTION_OF_COMPLEX
rush::complex<float> pow(const rush::complex<float>& base, const rush::complex<float>& exponent);
rush::complex<double> pow(const rush::complex<double>& base, const rush::complex<double>& exponent);

/// "(1,2)", and back.
template <floating_point T>
ostream& operator<<(ostream& out, const rush::complex<T>& z) {
  return out << static_cast<complex<T>>(z);
}
template <floating_point T>
istream& operator>>(istream& in, rush::complex<T>& z) {
  complex<T> read;
  in >> read;
  z = read;
  return in;
}
}  // namespace std

namespace c10 {
using rush::complex;

/// What the parts of a complex number are; T itself of a real one.
template <class T>
struct scalar_value_type {
  using type = T;
};
template <class T>
struct scalar_value_type<complex<T>> {
  using type = T;
};
template <class T>
struct scalar_value_type<std::complex<T>> {
  using type = T;
};

/// The number of that magnitude and angle, in radians.
template <std::floating_point T>
complex<T> polar(const T& radius, const T& angle = T()) {
  return complex<T>(std::polar(radius, angle));
}

/// 2.5_id is 2.5 times the imaginary unit, as a complex<double>; _if makes a complex<float>.
namespace complex_literals {
constexpr complex<float> operator""_if(long double imag) { return {0, static_cast<float>(imag)}; }
constexpr complex<float> operator""_if(unsigned long long imag) { return {0, static_cast<float>(imag)}; }
constexpr complex<double> operator""_id(long double imag) { return {0, static_cast<double>(imag)}; }
constexpr complex<double> operator""_id(unsigned long long imag) { return {0, static_cast<double>(imag)}; }
}  // namespace complex_literals
}  // namespace c10

namespace at {
using c10::scalar_value_type;
}  // namespace at
