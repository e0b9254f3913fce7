#include "core/ops/pointwise/unary.h"

#include "autograd/derivatives/pointwise/pointwise.h"
#include "autograd/derivatives/register.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/compare.h"
#include "core/ops/pointwise/power.h"
#include "core/ops/pointwise/ternary.h"

namespace rush {

namespace {

struct NegBackward final : Node {
  Tensors apply(const Tensors& g) override { return {-g[0]}; }
};
struct AbsBackward final : FromInput {  // sgn x
  Tensors apply(const Tensors& g) override { return {g[0] * self.get().sgn()}; }
};
struct ConjPhysicalBackward final : Node {
  Tensors apply(const Tensors& g) override { return {conj_of(g[0])}; }
};
struct FracBackward final : Node {  // 1 between the jumps
  Tensors apply(const Tensors& g) override { return {g[0]}; }
};
// Of complex x: what of g is at a right angle to y = x / |x|, over |x|.
struct SgnBackward final : FromInput {
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    if (!x.is_complex()) return {zeros_like(g[0])};
    const Tensor size = x.abs(), y = x.sgn();
    return {where(size == 0, 0, (g[0] - real(g[0] / y) * y) / size)};
  }
};
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
struct ExpBackward final : FromResult {  // y
  Tensors apply(const Tensors& g) override { return {g[0] * conj_of(result.get())}; }
};
struct Exp2Backward final : FromResult {  // y ln 2
  Tensors apply(const Tensors& g) override { return {g[0] * conj_of(result.get()) * 0.69314718055994530942}; }
};
struct Expm1Backward final : FromResult {  // y + 1
  Tensors apply(const Tensors& g) override { return {g[0] * (conj_of(result.get()) + 1)}; }
};
struct LogBackward final : FromInput {  // 1 / x
  Tensors apply(const Tensors& g) override { return {g[0] / conj_of(self.get())}; }
};
struct Log2Backward final : FromInput {  // 1 / (x ln 2)
  Tensors apply(const Tensors& g) override { return {g[0] / (conj_of(self.get()) * 0.69314718055994530942)}; }
};
struct Log10Backward final : FromInput {  // 1 / (x ln 10)
  Tensors apply(const Tensors& g) override { return {g[0] / (conj_of(self.get()) * 2.30258509299404568402)}; }
};
struct Log1pBackward final : FromInput {  // 1 / (x + 1)
  Tensors apply(const Tensors& g) override { return {g[0] / (conj_of(self.get()) + 1)}; }
};

// ---- powers ----
struct ReciprocalBackward final : FromResult {  // -y^2
  Tensors apply(const Tensors& g) override {
    const Tensor y = conj_of(result.get());
    return {-g[0] * (y * y)};
  }
};
struct SqrtBackward final : FromResult {  // 1 / (2 y)
  Tensors apply(const Tensors& g) override { return {g[0] / (conj_of(result.get()) * 2)}; }
};
struct RsqrtBackward final : FromResult {  // -y^3 / 2
  Tensors apply(const Tensors& g) override {
    const Tensor y = conj_of(result.get());
    return {g[0] * -0.5 * (y * y * y)};
  }
};

// ---- trigonometry ----
struct SinBackward final : FromInput {  // cos x
  Tensors apply(const Tensors& g) override { return {g[0] * conj_of(self.get().cos())}; }
};
struct CosBackward final : FromInput {  // -sin x
  Tensors apply(const Tensors& g) override { return {g[0] * -conj_of(self.get().sin())}; }
};
struct TanBackward final : FromResult {  // 1 + y^2
  Tensors apply(const Tensors& g) override {
    const Tensor y = conj_of(result.get());
    return {g[0] * (y * y + 1)};
  }
};
struct AsinBackward final : FromInput {  // 1 / sqrt(1 - x^2)
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    return {g[0] * conj_of((1 - x * x).rsqrt())};
  }
};
struct AcosBackward final : FromInput {  // -1 / sqrt(1 - x^2)
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    return {g[0] * -conj_of((1 - x * x).rsqrt())};
  }
};
struct AtanBackward final : FromInput {  // 1 / (1 + x^2)
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    return {g[0] / conj_of(x * x + 1)};
  }
};
struct SinhBackward final : FromInput {  // cosh x
  Tensors apply(const Tensors& g) override { return {g[0] * conj_of(self.get().cosh())}; }
};
struct CoshBackward final : FromInput {  // sinh x
  Tensors apply(const Tensors& g) override { return {g[0] * conj_of(self.get().sinh())}; }
};
struct AsinhBackward final : FromInput {  // 1 / sqrt(x^2 + 1)
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    return {g[0] * conj_of((x * x + 1).rsqrt())};
  }
};
struct AcoshBackward final : FromInput {  // 1 / (sqrt(x - 1) sqrt(x + 1)), which has acosh's branch cut
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    return {g[0] * conj_of((x - 1).rsqrt() * (x + 1).rsqrt())};
  }
};
struct AtanhBackward final : FromInput {  // 1 / (1 - x^2)
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    return {g[0] / conj_of(1 - x * x)};
  }
};
struct SincBackward final : FromInput {  // (pi x cos(pi x) - sin(pi x)) / (pi x^2), and 0 at 0
  Tensors apply(const Tensors& g) override {
    constexpr double kPi = 3.14159265358979323846;
    const Tensor x = self.get(), angle = x * kPi, below = x * angle;
    const Tensor slope = (angle * angle.cos() - angle.sin()) / below;
    return {where(below == 0, 0, g[0] * conj_of(slope))};
  }
};

// ---- sigmoid and tanh, and their own derivatives ----
struct SigmoidBackward final : FromResult {
  Tensors apply(const Tensors& g) override { return {sigmoid_backward(g[0], result.get())}; }
};
struct SigmoidBackwardBackward final : FromInputs {  // of g y (1 - y): y (1 - y), g (1 - 2 y)
  Tensors apply(const Tensors& g) override {
    const Tensor y = other.get();
    return {needs(0) ? sigmoid_backward(g[0], y) : Tensor(),
            needs(1) ? g[0] * conj_of(self.get()) * (1 - 2 * y) : Tensor()};
  }
};
struct TanhBackward final : FromResult {
  Tensors apply(const Tensors& g) override { return {tanh_backward(g[0], result.get())}; }
};
struct TanhBackwardBackward final : FromInputs {  // of g (1 - y^2): 1 - y^2, -2 g y
  Tensors apply(const Tensors& g) override {
    const Tensor y = other.get();
    return {needs(0) ? tanh_backward(g[0], y) : Tensor(), needs(1) ? g[0] * conj_of(self.get()) * y * -2 : Tensor()};
  }
};
struct LogitBackward final : Node {
  Saved self;
  std::optional<double> eps;
  RUSH_SAVED(self)
  auto saved_arguments() { return std::tie(self, eps); }
  Tensors apply(const Tensors& g) override { return {ops::logit_backward(g[0], self.get(), eps)}; }
};
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
struct ErfBackward final : FromInput {  // 2 / sqrt(pi) exp(-x^2)
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    return {g[0] * (-(x * x)).exp() * kTwoOverSqrtPi};
  }
};
struct ErfcBackward final : FromInput {  // -2 / sqrt(pi) exp(-x^2)
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    return {g[0] * (-(x * x)).exp() * -kTwoOverSqrtPi};
  }
};
struct ErfinvBackward final : FromResult {  // sqrt(pi) / 2 exp(y^2)
  Tensors apply(const Tensors& g) override {
    const Tensor y = result.get();
    return {g[0] * (y * y).exp() * (1 / kTwoOverSqrtPi)};
  }
};
struct LgammaBackward final : FromInput {  // digamma
  Tensors apply(const Tensors& g) override { return {g[0] * self.get().digamma()}; }
};
struct DigammaBackward final : FromInput {  // polygamma 1
  Tensors apply(const Tensors& g) override { return {g[0] * polygamma(1, self.get())}; }
};
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
#define RUSH_DERIVE(name, Node) \
  derive<ops::name, Node>(r);   \
  derive<ops::name##_, Node>(r);
  RUSH_DERIVE(exp, ExpBackward)
  RUSH_DERIVE(exp2, Exp2Backward)
  RUSH_DERIVE(expm1, Expm1Backward)
  RUSH_DERIVE(log, LogBackward)
  RUSH_DERIVE(log2, Log2Backward)
  RUSH_DERIVE(log10, Log10Backward)
  RUSH_DERIVE(log1p, Log1pBackward)
  RUSH_DERIVE(reciprocal, ReciprocalBackward)
  RUSH_DERIVE(sqrt, SqrtBackward)
  RUSH_DERIVE(rsqrt, RsqrtBackward)
  RUSH_DERIVE(sin, SinBackward)
  RUSH_DERIVE(cos, CosBackward)
  RUSH_DERIVE(tan, TanBackward)
  RUSH_DERIVE(asin, AsinBackward)
  RUSH_DERIVE(acos, AcosBackward)
  RUSH_DERIVE(atan, AtanBackward)
  RUSH_DERIVE(sinh, SinhBackward)
  RUSH_DERIVE(cosh, CoshBackward)
  RUSH_DERIVE(asinh, AsinhBackward)
  RUSH_DERIVE(acosh, AcoshBackward)
  RUSH_DERIVE(atanh, AtanhBackward)
  RUSH_DERIVE(sinc, SincBackward)
}

}  // namespace

void register_unary_derivatives(Registry& r) {
  register_elementary(r);
  RUSH_DERIVE(neg, NegBackward)
  RUSH_DERIVE(abs, AbsBackward)
  RUSH_DERIVE(conj_physical, ConjPhysicalBackward)
  RUSH_DERIVE(frac, FracBackward)
  RUSH_DERIVE(sgn, SgnBackward)
  RUSH_DERIVE(nan_to_num, NanToNumBackward)
  RUSH_DERIVE(deg2rad, Deg2RadBackward)
  RUSH_DERIVE(rad2deg, Rad2DegBackward)
  RUSH_DERIVE(ceil, StepBackward)
  RUSH_DERIVE(floor, StepBackward)
  RUSH_DERIVE(trunc, StepBackward)
  RUSH_DERIVE(round, StepBackward)
  RUSH_DERIVE(round_decimals, StepBackward)
  RUSH_DERIVE(sign, StepBackward)
  RUSH_DERIVE(sigmoid, SigmoidBackward)
  RUSH_DERIVE(tanh, TanhBackward)
  RUSH_DERIVE(logit, LogitBackward)
  derive<ops::sigmoid_backward, SigmoidBackwardBackward>(r);
  derive<ops::tanh_backward, TanhBackwardBackward>(r);
  derive<ops::logit_backward, LogitBackwardBackward>(r);
  RUSH_DERIVE(erf, ErfBackward)
  RUSH_DERIVE(erfc, ErfcBackward)
  RUSH_DERIVE(erfinv, ErfinvBackward)
  RUSH_DERIVE(lgamma, LgammaBackward)
  RUSH_DERIVE(digamma, DigammaBackward)
  derive<ops::polygamma, PolygammaBackward>(r);
#undef RUSH_DERIVE
}

}  // namespace rush
