#include "ATen/operators/special_functions.h"

#include <cmath>

namespace rush {
inline namespace aten {

namespace {
Tensor as_floating(const Tensor& x) { return x.is_floating_point() || x.is_complex() ? x : x.to(get_default_dtype()); }
}  // namespace

Tensor special_zeta(const Scalar& self, const Tensor& other) {
  return special_zeta(rush::detail::wrapped_number(self, other), other);
}
Tensor special_zeta(const Tensor& self, const Scalar& other) {
  return special_zeta(self, rush::detail::wrapped_number(other, self));
}
Tensor special_logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim) { return logsumexp(self, dim, keepdim); }
Tensor special_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return self.softmax(dim, dtype);
}
Tensor special_log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return self.log_softmax(dim, dtype);
}
Tensor special_xlog1py(const Scalar& self, const Tensor& other) {
  return special_xlog1py(rush::detail::wrapped_number(self, other), other);
}
Tensor special_xlog1py(const Tensor& self, const Scalar& other) {
  return special_xlog1py(self, rush::detail::wrapped_number(other, self));
}
Tensor special_entr(const Tensor& self) {
  const Tensor x = as_floating(self);
  const Tensor positive = x.gt(0);
  const Tensor safe = where(positive, x, 1);  // keeps the derivative of the branch that is not taken finite
  // The derivative, -(1 + log x), is infinite at 0 and NaN below, as the square root's is.
  const Tensor otherwise = x.sqrt().masked_fill(x.lt(0), -std::numeric_limits<double>::infinity());
  return where(positive, safe.mul(safe.log()).neg(), otherwise);
}
Tensor special_erfcx(const Tensor& self) {
  const Tensor x = as_floating(self);
  const Tensor low = x.clamp_max(3), high = x.clamp_min(3);
  Tensor fraction = high;
  for (int term = 40; term > 0; --term) fraction = high.add(fraction.reciprocal().mul(0.5 * term));
  return where(x.gt(3), fraction.reciprocal().mul(1 / std::sqrt(std::numbers::pi)), low.square().exp().mul(low.erfc()));
}
Tensor special_ndtr(const Tensor& self) { return as_floating(self).div(std::numbers::sqrt2).erf().add(1).mul(0.5); }
Tensor special_log_ndtr(const Tensor& self) {
  const Tensor t = as_floating(self).div(std::numbers::sqrt2);
  const Tensor tail = t.clamp_max(-1 / std::numbers::sqrt2), centre = t.clamp_min(-1 / std::numbers::sqrt2);
  return where(t.lt(-1 / std::numbers::sqrt2), special_erfcx(tail.neg()).div(2).log().sub(tail.square()),
               centre.erfc().div(2).neg().log1p());
}
Tensor mvlgamma(const Tensor& self, int64_t p) {
  RUSH_CHECK_VALUE(p >= 1, "mvlgamma: p must be at least 1, got ", p);
  const Tensor x = as_floating(self);
  const Tensor shifts = arange(p, x.options()).div(-2);
  const double offset = static_cast<double>(p * (p - 1)) / 4 * std::log(std::numbers::pi);
  return x.unsqueeze(-1).add(shifts).lgamma().sum(-1).add(offset);
}

// ---- orthogonal polynomials of degree n, by their recurrences ----
// P_0 = 1, P_1 = a x + b, P_(k+1) = ((step_x(k) x + step_1(k)) P_k - step_before(k) P_(k-1)) / divisor(k), where the
// steps are integers, which no rounding changes. A degree is truncated; the result is 0 for one that is negative or, as
// in PyTorch, no int64.
namespace {
struct Polynomials {
  double a, b;
  double (*step_x)(double k);
  double (*step_1)(double k);
  double (*step_before)(double k);
  double (*divisor)(double k) = nullptr;  // none: 1
};
// As integers, with -1 for all that gives 0.
Tensor degrees(const Tensor& degree) {
  if (!degree.is_floating_point()) return degree.to(kInt64);
  return where(degree.detach().abs().lt(0x1p63), degree.detach(), -1).to(kInt64);
}
// Whether a recurrence that has come to P_k = `now` gives NaN for all higher degrees that are asked for.
bool is_nan_from_here(const Tensor& now, const Tensor& n, int64_t k) {
  return now.isnan().logical_or(n.le(k)).all().item<bool>();
}
Tensor polynomial(const Tensor& argument, const Tensor& degree, const Polynomials& family, double scale = 1,
                  double offset = 0) {
  const ScalarType common = result_type(argument, degree);
  const ScalarType dtype = is_floating_point(common) ? common : get_default_dtype();
  const Tensor given = argument.to(dtype), x = scale == 1 ? given : given.mul(scale).add(offset);
  const Tensor n = degrees(degree);
  const int64_t highest = n.numel() > 0 ? n.max().item<int64_t>() : 0;
  const Tensor one = ones_like(x);
  Tensor before = one, now = x.mul(family.a).add(family.b);
  Tensor out = where(n.lt(0), zeros_like(x), n.eq(0).to(dtype).mul(one));
  for (int64_t k = 1; k <= highest; ++k) {
    out = where(n.eq(k), now, out);
    if (k % 64 == 0 && is_nan_from_here(now, n, k)) return where(n.gt(k), now, out);
    const auto d = static_cast<double>(k);
    Tensor next = x.mul(family.step_x(d)).add(family.step_1(d)).mul(now).sub(before.mul(family.step_before(d)));
    if (family.divisor) next = next.div(family.divisor(d));
    before = std::exchange(now, next);
  }
  return out;
}
double zero_step(double) { return 0; }
double one_step(double) { return 1; }
double minus_one_step(double) { return -1; }
double two_steps(double) { return 2; }
double k_steps(double k) { return k; }
double odd_steps(double k) { return 2 * k + 1; }
double next_k(double k) { return k + 1; }
constexpr Polynomials kChebyshevT{1, 0, two_steps, zero_step, one_step};
constexpr Polynomials kChebyshevU{2, 0, two_steps, zero_step, one_step};
constexpr Polynomials kChebyshevV{2, -1, two_steps, zero_step, one_step};
constexpr Polynomials kChebyshevW{2, 1, two_steps, zero_step, one_step};
constexpr Polynomials kHermiteH{2, 0, two_steps, zero_step, [](double k) { return 2 * k; }};
constexpr Polynomials kHermiteHe{1, 0, one_step, zero_step, k_steps};
constexpr Polynomials kLaguerre{-1, 1, minus_one_step, odd_steps, k_steps, next_k};
constexpr Polynomials kLegendre{1, 0, odd_steps, zero_step, k_steps, next_k};
}  // namespace

#define RUSH_UNPACKED(...) __VA_ARGS__
#define RUSH_POLYNOMIAL(name, family)                                                                        \
  Tensor special_##name(const Tensor& x, const Tensor& n) { return polynomial(x, n, RUSH_UNPACKED family); } \
  Tensor special_##name(const Scalar& x, const Tensor& n) {                                                  \
    return special_##name(rush::detail::wrapped_number(x, n), n);                                            \
  }                                                                                                          \
  Tensor special_##name(const Tensor& x, const Scalar& n) {                                                  \
    return special_##name(x, rush::detail::wrapped_number(n, x));                                            \
  }
RUSH_FORALL_SPECIAL_POLYNOMIALS(RUSH_POLYNOMIAL)
#undef RUSH_POLYNOMIAL
#undef RUSH_UNPACKED

}  // namespace aten
}  // namespace rush
