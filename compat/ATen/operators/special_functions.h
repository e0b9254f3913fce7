// torch.special: the operators that have a second name there, and functions and polynomials that operators make.
// https://pytorch.org/docs/stable/special.html
#pragma once
#include "ATen/operators/operator_names.h"
#include "core/ops/pointwise/special.h"

namespace rush {
inline namespace aten {

// ---- second names ----
#define RUSH_FORALL_SPECIAL_UNARY(X) \
  X(digamma, digamma)                \
  X(erf, erf)                        \
  X(erfc, erfc)                      \
  X(erfinv, erfinv)                  \
  X(exp2, exp2)                      \
  X(expit, sigmoid)                  \
  X(expm1, expm1)                    \
  X(gammaln, lgamma)                 \
  X(i0, i0)                          \
  X(log1p, log1p)                    \
  X(modified_bessel_i0, i0)          \
  X(psi, digamma)                    \
  X(sinc, sinc)
#define RUSH_SPECIAL_NAME(special, name) \
  inline Tensor special_##special(const Tensor& self) { return self.name(); }
RUSH_FORALL_SPECIAL_UNARY(RUSH_SPECIAL_NAME)
#undef RUSH_SPECIAL_NAME
inline Tensor special_modified_bessel_i1(const Tensor& self) { return special_i1(self); }
inline Tensor special_gammainc(const Tensor& self, const Tensor& other) { return igamma(self, other); }
inline Tensor special_gammaincc(const Tensor& self, const Tensor& other) { return igammac(self, other); }
Tensor special_zeta(const Scalar& self, const Tensor& other);
Tensor special_zeta(const Tensor& self, const Scalar& other);
inline Tensor special_logit(const Tensor& self, std::optional<double> eps = std::nullopt) { return logit(self, eps); }
inline Tensor special_polygamma(int64_t n, const Tensor& self) { return polygamma(n, self); }
inline Tensor special_round(const Tensor& self, int64_t decimals = 0) { return round(self, decimals); }
Tensor special_logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim = false);
Tensor special_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor special_log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
inline Tensor special_xlogy(const Tensor& self, const Tensor& other) { return xlogy(self, other); }
inline Tensor special_xlogy(const Scalar& self, const Tensor& other) { return xlogy(self, other); }
inline Tensor special_xlogy(const Tensor& self, const Scalar& other) { return xlogy(self, other); }
Tensor special_xlog1py(const Scalar& self, const Tensor& other);
Tensor special_xlog1py(const Tensor& self, const Scalar& other);

// ---- functions that operators make ----
/// -x log x; 0 at 0 and minus infinity below.
Tensor special_entr(const Tensor& self);
/// exp(x^2) erfc(x). From 3 on by the continued fraction 1/sqrt(pi) 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + ...)))), whose
/// first 40 terms are exact there; Abramowitz and Stegun 7.1.14. Each branch gets arguments that it is finite for.
Tensor special_erfcx(const Tensor& self);
/// The normal distribution function: the probability of a number below x.
Tensor special_ndtr(const Tensor& self);
/// Its logarithm, accurate in the tail, where it is log(erfcx(-x / sqrt 2) / 2) - x^2 / 2.
Tensor special_log_ndtr(const Tensor& self);
/// The logarithm of the multivariate gamma function: p (p - 1) / 4 log pi + the sum of lgamma(x - j / 2), j < p.
Tensor mvlgamma(const Tensor& self, int64_t p);
inline Tensor special_multigammaln(const Tensor& self, int64_t p) { return mvlgamma(self, p); }

// ---- orthogonal polynomials of degree n, by their recurrences ----
// By families of special_functions.cpp; the shifted ones are of 2 x - 1.
#define RUSH_FORALL_SPECIAL_POLYNOMIALS(X)                \
  X(chebyshev_polynomial_t, (kChebyshevT))                \
  X(chebyshev_polynomial_u, (kChebyshevU))                \
  X(chebyshev_polynomial_v, (kChebyshevV))                \
  X(chebyshev_polynomial_w, (kChebyshevW))                \
  X(hermite_polynomial_h, (kHermiteH))                    \
  X(hermite_polynomial_he, (kHermiteHe))                  \
  X(laguerre_polynomial_l, (kLaguerre))                   \
  X(legendre_polynomial_p, (kLegendre))                   \
  X(shifted_chebyshev_polynomial_t, (kChebyshevT, 2, -1)) \
  X(shifted_chebyshev_polynomial_u, (kChebyshevU, 2, -1)) \
  X(shifted_chebyshev_polynomial_v, (kChebyshevV, 2, -1)) \
  X(shifted_chebyshev_polynomial_w, (kChebyshevW, 2, -1))
#define RUSH_POLYNOMIAL(name, family)                      \
  Tensor special_##name(const Tensor& x, const Tensor& n); \
  Tensor special_##name(const Scalar& x, const Tensor& n); \
  Tensor special_##name(const Tensor& x, const Scalar& n);
RUSH_FORALL_SPECIAL_POLYNOMIALS(RUSH_POLYNOMIAL)
#undef RUSH_POLYNOMIAL

}  // namespace aten
}  // namespace rush
