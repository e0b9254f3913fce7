#include "core/ops/pointwise/unary.h"

#include "autograd/derivatives/pointwise/pointwise.h"
#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"

namespace rush {

namespace {

struct NegBackward final : Node {
  Tensors apply(const Tensors& g) override { return {-g[0]}; }
};
RUSH_BY_INPUT(AbsBackward) { return g * x.sgn(); }  // sgn x
struct ConjPhysicalBackward final : Node {
  Tensors apply(const Tensors& g) override { return {conj_of(g[0])}; }
};
struct FracBackward final : Node {  // 1 between the jumps
  Tensors apply(const Tensors& g) override { return {g[0]}; }
};
// Of complex x: what of g is at a right angle to y = x / |x|, over |x|.
RUSH_BY_INPUT(SgnBackward) {
  if (!x.is_complex()) return zeros_like(g);
  const Tensor size = x.abs(), y = x.sgn();
  return where(size == 0, 0, (g - real(g / y) * y) / size);
}
struct NanToNumBackward final : Node {
  Saved self;
  RUSH_SAVED(self)
  void save(const Tensor& x, std::optional<double>, std::optional<double>, std::optional<double>) { self = x; }
  Tensors apply(const Tensors& g) override { return {g[0] * self.get().isfinite()}; }
};
struct Deg2RadBackward final : Node {
  Tensors apply(const Tensors& g) override { return {g[0].deg2rad()}; }
};
struct Rad2DegBackward final : Node {
  Tensors apply(const Tensors& g) override { return {g[0].rad2deg()}; }
};

// ---- exponentials and logarithms ----
RUSH_BY_RESULT(ExpBackward) { return g * conj_of(y); }                              // y
RUSH_BY_RESULT(Exp2Backward) { return g * conj_of(y) * 0.69314718055994530942; }    // y ln 2
RUSH_BY_RESULT(Expm1Backward) { return g * (conj_of(y) + 1); }                      // y + 1
RUSH_BY_INPUT(LogBackward) { return g / conj_of(x); }                               // 1 / x
RUSH_BY_INPUT(Log2Backward) { return g / (conj_of(x) * 0.69314718055994530942); }   // 1 / (x ln 2)
RUSH_BY_INPUT(Log10Backward) { return g / (conj_of(x) * 2.30258509299404568402); }  // 1 / (x ln 10)
RUSH_BY_INPUT(Log1pBackward) { return g / (conj_of(x) + 1); }                       // 1 / (x + 1)

// ---- powers ----
RUSH_BY_RESULT(ReciprocalBackward) { return -g * conj_of(y * y); }       // -y^2
RUSH_BY_RESULT(SqrtBackward) { return g / (conj_of(y) * 2); }            // 1 / (2 y)
RUSH_BY_RESULT(RsqrtBackward) { return g * -0.5 * conj_of(y * y * y); }  // -y^3 / 2

// ---- trigonometry ----
RUSH_BY_INPUT(SinBackward) { return g * conj_of(x.cos()); }                // cos x
RUSH_BY_INPUT(CosBackward) { return g * -conj_of(x.sin()); }               // -sin x
RUSH_BY_RESULT(TanBackward) { return g * (conj_of(y * y) + 1); }           // 1 + y^2
RUSH_BY_INPUT(AsinBackward) { return g * conj_of((1 - x * x).rsqrt()); }   // 1 / sqrt(1 - x^2)
RUSH_BY_INPUT(AcosBackward) { return g * -conj_of((1 - x * x).rsqrt()); }  // -1 / sqrt(1 - x^2)
RUSH_BY_INPUT(AtanBackward) { return g / conj_of(x * x + 1); }             // 1 / (1 + x^2)
RUSH_BY_INPUT(SinhBackward) { return g * conj_of(x.cosh()); }              // cosh x
RUSH_BY_INPUT(CoshBackward) { return g * conj_of(x.sinh()); }              // sinh x
RUSH_BY_INPUT(AsinhBackward) { return g * conj_of((x * x + 1).rsqrt()); }  // 1 / sqrt(x^2 + 1)
// 1 / (sqrt(x - 1) sqrt(x + 1)), which has acosh's branch cut; of real numbers 1 / sqrt((x - 1) (x + 1)), which is one
// below -1, too, as PyTorch's is, so that what is masked there stays without a gradient
RUSH_BY_INPUT(AcoshBackward) {
  if (x.is_complex()) return g * conj_of((x - 1).rsqrt() * (x + 1).rsqrt());
  return g * ((x - 1) * (x + 1)).rsqrt();
}
RUSH_BY_INPUT(AtanhBackward) { return g / conj_of(1 - x * x); }  // 1 / (1 - x^2)

RUSH_BY_INPUT(SincBackward) {  // (pi x cos(pi x) - sin(pi x)) / (pi x^2), and 0 at 0
  constexpr double kPi = 3.14159265358979323846;
  const Tensor angle = x * kPi, below = x * angle;
  const Tensor slope = (angle * angle.cos() - angle.sin()) / below;
  return where(below == 0, 0, g * conj_of(slope));
}

// ---- sigmoid and tanh, and their own derivatives ----
RUSH_BY_RESULT(SigmoidBackward) { return sigmoid_backward(g, y); }
struct SigmoidBackwardBackward final : FromInputs {  // of g y (1 - y): y (1 - y), g (1 - 2 y)
  Tensors apply(const Tensors& g) override {
    const Tensor y = other.get();
    return {needs(0) ? sigmoid_backward(g[0], conj_of(y)) : Tensor(),
            needs(1) ? conj_of(g[0] * (1 - 2 * y)) * self.get() : Tensor()};
  }
};
RUSH_BY_RESULT(TanhBackward) { return tanh_backward(g, y); }
struct TanhBackwardBackward final : FromInputs {  // of g (1 - y^2): 1 - y^2, -2 g y
  Tensors apply(const Tensors& g) override {
    const Tensor y = other.get();
    return {needs(0) ? tanh_backward(g[0], conj_of(y)) : Tensor(),
            needs(1) ? conj_of(g[0] * y) * self.get() * -2 : Tensor()};
  }
};
struct LogitBackward final : ParametersBackward<ops::logit_backward, std::optional<double>> {};
struct LogitBackwardBackward final : Node {  // of g / (x (1 - x)): with s = 1 / (x (1 - x)), s and g s^2 (2 x - 1)
  Saved grad, self;
  std::optional<double> eps;
  RUSH_SAVED(grad, self)
  auto saved_arguments() { return std::tie(grad, self, eps); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    const Tensor slope = ops::logit_backward(g[0], x, eps);
    return {slope, needs(1) ? ops::logit_backward(slope * grad.get() * (2 * x - 1), x, eps) : Tensor()};
  }
};

// ---- special functions ----
constexpr double kTwoOverSqrtPi = 1.12837916709551257390;
RUSH_BY_INPUT(ErfBackward) { return g * (-(x * x)).exp() * kTwoOverSqrtPi; }         // 2 / sqrt(pi) exp(-x^2)
RUSH_BY_INPUT(ErfcBackward) { return g * (-(x * x)).exp() * -kTwoOverSqrtPi; }       // -2 / sqrt(pi) exp(-x^2)
RUSH_BY_RESULT(ErfinvBackward) { return g * (y * y).exp() * (1 / kTwoOverSqrtPi); }  // sqrt(pi) / 2 exp(y^2)
RUSH_BY_INPUT(LgammaBackward) { return g * x.digamma(); }                            // digamma
RUSH_BY_INPUT(DigammaBackward) { return g * polygamma(1, x); }                       // polygamma 1

struct PolygammaBackward final : Node {  // the next polygamma
  Saved self;
  int64_t n = 0;
  RUSH_SAVED(self)
  auto saved_arguments() { return std::tie(n, self); }
  Tensors apply(const Tensors& g) override {
    RUSH_CHECK_VALUE(n < INT64_MAX, "polygamma: derivative number ", n, " has no next one that can be counted");
    return {g[0] * polygamma(n + 1, self.get())};
  }
};

void register_elementary(Registry& r) {
  derive_all<ExpBackward, ops::exp, ops::exp_>(r);
  derive_all<Exp2Backward, ops::exp2, ops::exp2_>(r);
  derive_all<Expm1Backward, ops::expm1, ops::expm1_>(r);
  derive_all<LogBackward, ops::log, ops::log_>(r);
  derive_all<Log2Backward, ops::log2, ops::log2_>(r);
  derive_all<Log10Backward, ops::log10, ops::log10_>(r);
  derive_all<Log1pBackward, ops::log1p, ops::log1p_>(r);
  derive_all<ReciprocalBackward, ops::reciprocal, ops::reciprocal_>(r);
  derive_all<SqrtBackward, ops::sqrt, ops::sqrt_>(r);
  derive_all<RsqrtBackward, ops::rsqrt, ops::rsqrt_>(r);
  derive_all<SinBackward, ops::sin, ops::sin_>(r);
  derive_all<CosBackward, ops::cos, ops::cos_>(r);
  derive_all<TanBackward, ops::tan, ops::tan_>(r);
  derive_all<AsinBackward, ops::asin, ops::asin_>(r);
  derive_all<AcosBackward, ops::acos, ops::acos_>(r);
  derive_all<AtanBackward, ops::atan, ops::atan_>(r);
  derive_all<SinhBackward, ops::sinh, ops::sinh_>(r);
  derive_all<CoshBackward, ops::cosh, ops::cosh_>(r);
  derive_all<AsinhBackward, ops::asinh, ops::asinh_>(r);
  derive_all<AcoshBackward, ops::acosh, ops::acosh_>(r);
  derive_all<AtanhBackward, ops::atanh, ops::atanh_>(r);
  derive_all<SincBackward, ops::sinc, ops::sinc_>(r);
}

}  // namespace

void register_unary_derivatives(Registry& r) {
  register_elementary(r);
  derive_all<NegBackward, ops::neg, ops::neg_>(r);
  derive_all<AbsBackward, ops::abs, ops::abs_>(r);
  derive_all<ConjPhysicalBackward, ops::conj_physical, ops::conj_physical_>(r);
  derive_all<FracBackward, ops::frac, ops::frac_>(r);
  derive_all<SgnBackward, ops::sgn, ops::sgn_>(r);
  derive_all<NanToNumBackward, ops::nan_to_num, ops::nan_to_num_>(r);
  derive_all<Deg2RadBackward, ops::deg2rad, ops::deg2rad_>(r);
  derive_all<Rad2DegBackward, ops::rad2deg, ops::rad2deg_>(r);
  derive_all<StepBackward, ops::ceil, ops::ceil_, ops::floor, ops::floor_, ops::trunc, ops::trunc_, ops::round,
             ops::round_, ops::round_decimals, ops::round_decimals_, ops::sign, ops::sign_>(r);
  derive_all<SigmoidBackward, ops::sigmoid, ops::sigmoid_>(r);
  derive_all<TanhBackward, ops::tanh, ops::tanh_>(r);
  derive_all<LogitBackward, ops::logit, ops::logit_>(r);
  derive<ops::sigmoid_backward, SigmoidBackwardBackward>(r);
  derive<ops::tanh_backward, TanhBackwardBackward>(r);
  derive<ops::logit_backward, LogitBackwardBackward>(r);
  derive_all<ErfBackward, ops::erf, ops::erf_>(r);
  derive_all<ErfcBackward, ops::erfc, ops::erfc_>(r);
  derive_all<ErfinvBackward, ops::erfinv, ops::erfinv_>(r);
  derive_all<LgammaBackward, ops::lgamma, ops::lgamma_>(r);
  derive_all<DigammaBackward, ops::digamma, ops::digamma_>(r);
  derive<ops::polygamma, PolygammaBackward>(r);
}

}  // namespace rush
