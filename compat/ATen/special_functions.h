// torch.special: the operators that have a second name there, and functions and polynomials that operators make.
// https://pytorch.org/docs/stable/special.html
#pragma once
#include "ATen/operator_names.h"
#include "core/ops/pointwise/special.h"

namespace rush {
inline namespace aten {

namespace aten_detail {
inline Tensor as_floating(const Tensor& x) {
  return x.is_floating_point() || x.is_complex() ? x : x.to(get_default_dtype());
}
// Writes a result into the tensor that an _out function was given.
inline Tensor& written_to(Tensor& result, const Tensor& value) {
  if (result.sizes() != value.sizes()) result.resize_(value.sizes());
  return result.copy_(value);
}
}  // namespace aten_detail

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
inline Tensor special_zeta(const Scalar& self, const Tensor& other) {
  return special_zeta(rush::detail::wrapped_number(self, other), other);
}
inline Tensor special_zeta(const Tensor& self, const Scalar& other) {
  return special_zeta(self, rush::detail::wrapped_number(other, self));
}
inline Tensor special_logit(const Tensor& self, std::optional<double> eps = std::nullopt) { return logit(self, eps); }
inline Tensor special_polygamma(int64_t n, const Tensor& self) { return polygamma(n, self); }
inline Tensor special_round(const Tensor& self, int64_t decimals = 0) { return round(self, decimals); }
inline Tensor special_logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim = false) {
  return logsumexp(self, dim, keepdim);
}
inline Tensor special_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) {
  return self.softmax(dim, dtype);
}
inline Tensor special_log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) {
  return self.log_softmax(dim, dtype);
}
inline Tensor special_xlogy(const Tensor& self, const Tensor& other) { return xlogy(self, other); }
inline Tensor special_xlogy(const Scalar& self, const Tensor& other) { return xlogy(self, other); }
inline Tensor special_xlogy(const Tensor& self, const Scalar& other) { return xlogy(self, other); }
inline Tensor special_xlog1py(const Scalar& self, const Tensor& other) {
  return special_xlog1py(rush::detail::wrapped_number(self, other), other);
}
inline Tensor special_xlog1py(const Tensor& self, const Scalar& other) {
  return special_xlog1py(self, rush::detail::wrapped_number(other, self));
}

// ---- functions that operators make ----
/// -x log x; 0 at 0 and minus infinity below.
inline Tensor special_entr(const Tensor& self) {
  const Tensor x = aten_detail::as_floating(self);
  const Tensor positive = x.gt(0);
  const Tensor safe = where(positive, x, 1);  // keeps the derivative of the branch that is not taken finite
  const Tensor otherwise = zeros_like(x).masked_fill(x.lt(0), -std::numeric_limits<double>::infinity());
  return where(positive, safe.mul(safe.log()).neg(), where(x.isnan(), x, otherwise));
}
/// exp(x^2) erfc(x). From 3 on by the continued fraction 1/sqrt(pi) 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + ...)))), whose
/// first 40 terms are exact there; Abramowitz and Stegun 7.1.14. Each branch gets arguments that it is finite for.
inline Tensor special_erfcx(const Tensor& self) {
  const Tensor x = aten_detail::as_floating(self);
  const Tensor low = x.clamp_max(3), high = x.clamp_min(3);
  Tensor fraction = high;
  for (int term = 40; term > 0; --term) fraction = high.add(fraction.reciprocal().mul(0.5 * term));
  return where(x.gt(3), fraction.reciprocal().mul(1 / std::sqrt(std::numbers::pi)), low.square().exp().mul(low.erfc()));
}
/// The normal distribution function: the probability of a number below x.
inline Tensor special_ndtr(const Tensor& self) {
  return aten_detail::as_floating(self).div(std::numbers::sqrt2).erf().add(1).mul(0.5);
}
/// Its logarithm, accurate in the tail, where it is log(erfcx(-x / sqrt 2) / 2) - x^2 / 2.
inline Tensor special_log_ndtr(const Tensor& self) {
  const Tensor t = aten_detail::as_floating(self).div(std::numbers::sqrt2);
  const Tensor tail = t.clamp_max(-1 / std::numbers::sqrt2), centre = t.clamp_min(-1 / std::numbers::sqrt2);
  return where(t.lt(-1 / std::numbers::sqrt2), special_erfcx(tail.neg()).div(2).log().sub(tail.square()),
               centre.erfc().div(2).neg().log1p());
}
/// The logarithm of the multivariate gamma function: p (p - 1) / 4 log pi + the sum of lgamma(x - j / 2), j < p.
inline Tensor mvlgamma(const Tensor& self, int64_t p) {
  RUSH_CHECK_VALUE(p >= 1, "mvlgamma: p must be at least 1, got ", p);
  const Tensor x = aten_detail::as_floating(self);
  const Tensor shifts = arange(p, x.options()).div(-2);
  const double offset = static_cast<double>(p * (p - 1)) / 4 * std::log(std::numbers::pi);
  return x.unsqueeze(-1).add(shifts).lgamma().sum(-1).add(offset);
}
inline Tensor special_multigammaln(const Tensor& self, int64_t p) { return mvlgamma(self, p); }

// ---- orthogonal polynomials of degree n, by their recurrences ----
// P_0 = 1, P_1 = a x + b, P_(k+1) = (step_x(k) x + step_1(k)) P_k - step_before(k) P_(k-1); 0 for a negative degree.
namespace aten_detail {
struct Polynomials {
  double a, b;
  double (*step_x)(double k);
  double (*step_1)(double k);
  double (*step_before)(double k);
};
inline Tensor polynomial(const Tensor& argument, const Tensor& degree, const Polynomials& family, double scale = 1,
                         double offset = 0) {
  const ScalarType common = result_type(argument, degree);
  const ScalarType dtype = is_floating_point(common) ? common : get_default_dtype();
  const Tensor given = argument.to(dtype), x = scale == 1 ? given : given.mul(scale).add(offset);
  const Tensor n = degree.detach().trunc();
  const int64_t highest = n.numel() > 0 ? n.max().to(kInt64).item<int64_t>() : 0;
  const Tensor one = ones_like(x);
  Tensor before = one, now = x.mul(family.a).add(family.b);
  Tensor out = where(n.lt(0), zeros_like(x), n.eq(0).to(dtype).mul(one));
  for (int64_t k = 1; k <= highest; ++k) {
    out = where(n.eq(k), now, out);
    const auto d = static_cast<double>(k);
    Tensor next = x.mul(family.step_x(d)).add(family.step_1(d)).mul(now).sub(before.mul(family.step_before(d)));
    before = std::exchange(now, next);
  }
  return out;
}
inline double zero_step(double) { return 0; }
inline double one_step(double) { return 1; }
inline double two_steps(double) { return 2; }
inline constexpr Polynomials kChebyshevT{1, 0, two_steps, zero_step, one_step};
inline constexpr Polynomials kChebyshevU{2, 0, two_steps, zero_step, one_step};
inline constexpr Polynomials kChebyshevV{2, -1, two_steps, zero_step, one_step};
inline constexpr Polynomials kChebyshevW{2, 1, two_steps, zero_step, one_step};
inline constexpr Polynomials kHermiteH{2, 0, two_steps, zero_step, [](double k) { return 2 * k; }};
inline constexpr Polynomials kHermiteHe{1, 0, one_step, zero_step, [](double k) { return k; }};
inline constexpr Polynomials kLaguerre{-1, 1, [](double k) { return -1 / (k + 1); },
                                       [](double k) { return (2 * k + 1) / (k + 1); },
                                       [](double k) { return k / (k + 1); }};
inline constexpr Polynomials kLegendre{1, 0, [](double k) { return (2 * k + 1) / (k + 1); }, zero_step,
                                       [](double k) { return k / (k + 1); }};
}  // namespace aten_detail

// The shifted ones are of 2 x - 1.
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
#define RUSH_UNPACKED(...) __VA_ARGS__
#define RUSH_POLYNOMIAL(name, family)                              \
  inline Tensor special_##name(const Tensor& x, const Tensor& n) { \
    using namespace aten_detail;                                   \
    return polynomial(x, n, RUSH_UNPACKED family);                 \
  }                                                                \
  inline Tensor special_##name(const Scalar& x, const Tensor& n) { \
    return special_##name(rush::detail::wrapped_number(x, n), n);  \
  }                                                                \
  inline Tensor special_##name(const Tensor& x, const Scalar& n) { \
    return special_##name(x, rush::detail::wrapped_number(n, x));  \
  }
RUSH_FORALL_SPECIAL_POLYNOMIALS(RUSH_POLYNOMIAL)
#undef RUSH_POLYNOMIAL
#undef RUSH_UNPACKED

}  // namespace aten
}  // namespace rush
