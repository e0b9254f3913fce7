// torch::special: second names of operators, functions that operators make with their derivatives, Bessel functions,
// incomplete gamma functions, the zeta function, and orthogonal polynomials.
#include "show.h"

namespace special = torch::special;

using Unary = torch::Tensor (*)(const torch::Tensor&);
using UnaryOut = torch::Tensor& (*)(torch::Tensor&, const torch::Tensor&);

// The function at x, the same written into a tensor, and its derivative.
static void show_unary(const char* name, Unary function, UnaryOut out, const torch::Tensor& points) {
  std::printf("-- %s\n", name);
  const torch::Tensor x = points.clone().requires_grad_();
  const torch::Tensor y = function(x);
  show("value", y);
  torch::Tensor written = torch::empty({0}, torch::kFloat64);
  out(written, points);
  show("out", written);
  y.sum().backward();
  show("gradient", x.grad());
}

static void second_names() {
  const torch::Tensor x = torch::tensor({-0.8, -0.3, 0.2, 0.9}, torch::kFloat64);
  const torch::Tensor positive = torch::tensor({0.3, 1.0, 2.5, 7.25}, torch::kFloat64);
  const torch::Tensor open = torch::tensor({0.1, 0.4, 0.6, 0.95}, torch::kFloat64);
  show_unary("digamma", special::digamma, special::digamma_out, positive);
  show_unary("psi", special::psi, special::psi_out, positive);
  show_unary("gammaln", special::gammaln, special::gammaln_out, positive);
  show_unary("erf", special::erf, special::erf_out, x);
  show_unary("erfc", special::erfc, special::erfc_out, x);
  show_unary("erfinv", special::erfinv, special::erfinv_out, x);
  show_unary("exp2", special::exp2, special::exp2_out, x);
  show_unary("expit", special::expit, special::expit_out, x);
  show_unary("expm1", special::expm1, special::expm1_out, x);
  show_unary("log1p", special::log1p, special::log1p_out, x);
  show_unary("sinc", special::sinc, special::sinc_out, x);
  show_unary("logit", special::logit, special::logit_out, open);
  show_unary("round", special::round, special::round_out, positive);
  show("logit with eps", torch::special_logit(x, 0.1));
  show("round to decimals", torch::special_round(positive, 1));
  show("polygamma", special::polygamma(2, positive));
  show("logsumexp", special::logsumexp(wave({2, 3}, 0.1), 1, true));
  show("softmax", special::softmax(wave({2, 3}, 0.1), 1, torch::kFloat64));
  show("log_softmax", special::log_softmax(wave({2, 3}, 0.1), 0, torch::kFloat64));
  const torch::Tensor zero = torch::tensor({0.0, 1.0, 2.0, 0.5}, torch::kFloat64);
  show("xlogy", special::xlogy(zero, positive));
  show("xlogy of a number", special::xlogy(2, positive));
  show("xlogy with a number", special::xlogy(zero, 3));
  show("xlog1py", special::xlog1py(zero, x));
  show("xlog1py of a number", special::xlog1py(2, x));
  show("xlog1py with a number", special::xlog1py(zero, 3));
  torch::Tensor out = torch::empty({4}, torch::kFloat64);
  show("xlogy out", special::xlogy_out(out, zero, positive));
  show("polygamma out", special::polygamma_out(out, 1, positive));
}

static void composed() {
  const torch::Tensor positive = torch::tensor({0.2, 0.5, 1.0, 3.0}, torch::kFloat64);
  const torch::Tensor wide = torch::tensor({-30.0, -6.0, -1.5, -0.7, 0.0, 0.4, 2.0, 9.0}, torch::kFloat64);
  const torch::Tensor scaled = torch::tensor({-2.0, -0.5, 0.0, 1.0, 2.9, 3.1, 8.0, 40.0}, torch::kFloat64);
  show_unary("entr", special::entr, special::entr_out, positive);
  show_unary("erfcx", special::erfcx, special::erfcx_out, scaled);
  show_unary("ndtr", special::ndtr, special::ndtr_out, wide);
  show_unary("log_ndtr", special::log_ndtr, special::log_ndtr_out, wide);
  show("entr elsewhere", special::entr(torch::tensor({0.0, 1.0})));
  std::printf("entr below 0 is %f, of nan %f\n", special::entr(torch::tensor({-1.0})).item<double>(),
              special::entr(torch::tensor({NAN})).item<double>());
  show("of integers", special::erfcx(torch::arange(3)));
  show("dtype kept", (special::ndtr(wide.to(torch::kFloat32)).dtype() == torch::kFloat32) ? 1 : 0);
  const torch::Tensor x = torch::tensor({2.5, 3.0, 7.5}, torch::kFloat64).requires_grad_();
  const torch::Tensor y = special::multigammaln(x, 4);
  show("multigammaln", y);
  y.sum().backward();
  show("gradient", x.grad());
  show("mvlgamma of integers", torch::mvlgamma(torch::tensor({3, 4}), 2));
  torch::Tensor out = torch::empty({3}, torch::kFloat64);
  show("multigammaln out", special::multigammaln_out(out, x.detach(), 3));
}

static void bessel() {
  const torch::Tensor x = torch::tensor({-20.0, -7.5, -1.25, 0.5, 2.0, 4.0, 9.0, 30.0}, torch::kFloat64);
  const torch::Tensor positive = torch::tensor({0.01, 0.5, 1.5, 2.5, 6.0, 12.0, 40.0}, torch::kFloat64);
  show_unary("i0", special::i0, special::i0_out, x.slice(0, 1, 7));
  show_unary("i0e", special::i0e, special::i0e_out, x);
  show_unary("i1", special::i1, special::i1_out, x.slice(0, 1, 7));
  show_unary("i1e", special::i1e, special::i1e_out, x);
  const torch::Tensor open = torch::tensor({1e-30, 1e-5, 0.1, 0.4, 0.5, 0.8, 0.999}, torch::kFloat64);
  show("ndtri", special::ndtri(open));
  show_unary("ndtri", special::ndtri, special::ndtri_out, open.slice(0, 2));
#define SHOW_PLAIN(name, points)            \
  show(#name, special::name(points));       \
  out = torch::empty({0}, torch::kFloat64); \
  show("out", special::name##_out(out, points));
  torch::Tensor out = torch::empty({0}, torch::kFloat64);
  SHOW_PLAIN(modified_bessel_i0, x.slice(0, 1, 7))
  SHOW_PLAIN(modified_bessel_i1, x.slice(0, 1, 7))
  SHOW_PLAIN(modified_bessel_k0, positive)
  SHOW_PLAIN(modified_bessel_k1, positive)
  SHOW_PLAIN(scaled_modified_bessel_k0, positive)
  SHOW_PLAIN(scaled_modified_bessel_k1, positive)
  SHOW_PLAIN(bessel_j0, x)
  SHOW_PLAIN(bessel_j1, x)
  SHOW_PLAIN(bessel_y0, positive)
  SHOW_PLAIN(bessel_y1, positive)
  SHOW_PLAIN(spherical_bessel_j0, x)
  SHOW_PLAIN(airy_ai, x)
  show("of integers", special::bessel_j0(torch::arange(4)));
  show("method", x.slice(0, 2, 6).i0());
  torch::Tensor changed = x.slice(0, 2, 6).clone();
  changed.i0_();
  show("in place", changed);
}

static void gamma_and_zeta() {
  const torch::Tensor a = torch::tensor({0.1, 0.5, 1.0, 3.0, 25.0, 25.0, 300.0, 40.0}, torch::kFloat64);
  torch::Tensor x = torch::tensor({0.3, 0.01, 2.0, 8.0, 23.0, 60.0, 310.0, 2.0}, torch::kFloat64).requires_grad_();
  torch::Tensor out = torch::empty({0}, torch::kFloat64);
  show("igamma", torch::igamma(a, x));
  show("igammac", torch::igammac(a, x));
  show("gammainc", special::gammainc(a, x));
  show("gammaincc", special::gammaincc(a, x));
  show("out", special::gammainc_out(out, a, x.detach()));
  show("out", special::gammaincc_out(out, a, x.detach()));
  show("methods", a.igamma(x.detach()) + a.igammac(x.detach()));
  show("in place", a.clone().igamma_(x.detach()));
  show("gradient", torch::autograd::grad({torch::igamma(a, x).sum()}, {x})[0]);
  show("gradient", torch::autograd::grad({torch::igammac(a, x).sum()}, {x})[0]);
  const torch::Tensor s = torch::tensor({1.5, 2.0, 3.0, 4.5, 12.0, 1.0, 2.0}, torch::kFloat64).slice(0, 0, 5);
  torch::Tensor q = torch::tensor({1.0, 0.25, 2.5, 10.0, 0.9}, torch::kFloat64).requires_grad_();
  show("zeta", special::zeta(s, q));
  show("zeta of a number", special::zeta(2, q));
  show("zeta with a number", special::zeta(s, 1));
  out = torch::empty({0}, torch::kFloat64);
  show("out", special::zeta_out(out, s, q.detach()));
  show("gradient", torch::autograd::grad({special::zeta(s, q).sum()}, {q})[0]);
  torch::Tensor changed = s.clone();
  show("polygamma_", changed.polygamma_(1));
}

// Rounding differs in float32, where libtorch computes some of these by cosines.
#define SHOW_POLYNOMIAL(name)                              \
  show(#name, special::name(points, degrees));             \
  show("degree 4", special::name(points.select(1, 0), 4)); \
  show("at a number", special::name(0.3, degrees));        \
  show("out", special::name##_out(out, points, degrees));  \
  show("float32", agrees(torch::special_##name(points.to(torch::kFloat32), degrees), out));

static double agrees(const torch::Tensor& single, const torch::Tensor& exact) {
  return single.dtype() == torch::kFloat32 && torch::allclose(single.to(torch::kFloat64), exact, 1e-5, 1e-4) ? 1 : 0;
}

static void polynomials() {
  const torch::Tensor points = torch::tensor({-1.5, -0.6, 0.25, 0.9, 2.0}, torch::kFloat64).unsqueeze(1);
  const torch::Tensor degrees = torch::tensor({-1, 0, 1, 2, 5, 9}, torch::kInt64);
  torch::Tensor out = torch::empty({5, 6}, torch::kFloat64);
  SHOW_POLYNOMIAL(chebyshev_polynomial_t)
  SHOW_POLYNOMIAL(chebyshev_polynomial_u)
  SHOW_POLYNOMIAL(chebyshev_polynomial_v)
  SHOW_POLYNOMIAL(chebyshev_polynomial_w)
  SHOW_POLYNOMIAL(hermite_polynomial_h)
  SHOW_POLYNOMIAL(hermite_polynomial_he)
  SHOW_POLYNOMIAL(laguerre_polynomial_l)
  SHOW_POLYNOMIAL(legendre_polynomial_p)
  SHOW_POLYNOMIAL(shifted_chebyshev_polynomial_t)
  SHOW_POLYNOMIAL(shifted_chebyshev_polynomial_u)
  SHOW_POLYNOMIAL(shifted_chebyshev_polynomial_v)
  SHOW_POLYNOMIAL(shifted_chebyshev_polynomial_w)
}

int main() {
  second_names();
  composed();
  bessel();
  gamma_and_zeta();
  polynomials();
}
