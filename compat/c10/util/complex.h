// Complex numbers and tensors under one name, and the standard library's functions of the numbers.
#pragma once
#include <complex>

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

namespace std {
#define RUSH_COMPLEX_TO_REAL(name)               \
  template <class T>                             \
  T name(const rush::complex<T>& z) {            \
    return name(complex<T>(z.real(), z.imag())); \
  }
RUSH_COMPLEX_TO_REAL(abs)
RUSH_COMPLEX_TO_REAL(arg)
RUSH_COMPLEX_TO_REAL(norm)
RUSH_COMPLEX_TO_REAL(real)
RUSH_COMPLEX_TO_REAL(imag)
#undef RUSH_COMPLEX_TO_REAL
#define RUSH_COMPLEX_TO_COMPLEX(name)                               \
  template <class T>                                                \
  rush::complex<T> name(const rush::complex<T>& z) {                \
    const complex<T> result = name(complex<T>(z.real(), z.imag())); \
    return {result.real(), result.imag()};                          \
  }
RUSH_COMPLEX_TO_COMPLEX(conj)
RUSH_COMPLEX_TO_COMPLEX(exp)
RUSH_COMPLEX_TO_COMPLEX(log)
RUSH_COMPLEX_TO_COMPLEX(sqrt)
RUSH_COMPLEX_TO_COMPLEX(sin)
RUSH_COMPLEX_TO_COMPLEX(cos)
RUSH_COMPLEX_TO_COMPLEX(tanh)
#undef RUSH_COMPLEX_TO_COMPLEX
}  // namespace std
