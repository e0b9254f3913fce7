#include "core/ops/pointwise/power.h"

#include <limits>

#include "autograd/derivatives/pointwise/pointwise.h"
#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"

namespace rush {

namespace {

struct PowBackward final : Node {  // d(a^b) = g b a^(b-1), g y ln a; the first is 0 where b is, the second where a is
  Saved self, exponent, result;
  RUSH_SAVED(self, exponent, result)
  auto saved_arguments() { return std::tie(self, exponent); }
  void save_output(const Tensor& y) {
    if (needs(1)) result = Saved::output(y, this);
  }
  Tensors apply(const Tensors& g) override {
    const Tensor a = self.get(), b = exponent.get();
    Tensors grads(2);
    if (needs(0)) grads[0] = where(b == 0, 0, g[0] * conj_of(b * a.pow(b - 1)));
    if (needs(1)) {
      const Tensor flat = (a == 0) & ((b.is_complex() ? real(b) : b) >= 0);
      grads[1] = where(flat, 0, g[0] * conj_of(result.get() * a.log()));
    }
    return grads;
  }
};

struct PowScalarBackward final : Node {  // g n a^(n-1)
  Saved self;
  Scalar exponent;
  RUSH_SAVED(self)
  auto saved_arguments() { return std::tie(self, exponent); }
  Tensors apply(const Tensors& g) override {
    if (exponent.equal(0)) return {zeros_like(g[0])};
    if (exponent.equal(1)) return {g[0]};
    const Tensor a = self.get();
    return {g[0] * conj_of((exponent.equal(2) ? a : a.pow(minus_one(exponent))) * exponent)};
  }

 private:
  static Scalar minus_one(const Scalar& n) {
    if (n.is_complex()) return n.to<complex<double>>() - complex<double>(1);
    const bool whole = n.is_integral(true) && n.toLong() > std::numeric_limits<int64_t>::min();
    return whole ? Scalar(n.toLong() - 1) : Scalar(n.toDouble() - 1);
  }
};

struct Atan2Backward final : FromInputs {  // d atan2(y, x) = g x / (x^2 + y^2), -g y / (x^2 + y^2); 0 at 0, 0
  Tensors apply(const Tensors& g) override {
    const Tensor y = self.get(), x = other.get();
    const Tensor square = x * x + y * y;
    const Tensor scaled = g[0] / where(square == 0, 1, square);
    return {needs(0) ? scaled * x : Tensor(), needs(1) ? scaled * -y : Tensor()};
  }
};

struct HypotBackward final : Node {  // d c = g a / c, g b / c
  Saved self, other, result;
  RUSH_SAVED(self, other, result)
  auto saved_arguments() { return std::tie(self, other); }
  void save_output(const Tensor& c) { result = Saved::output(c, this); }
  Tensors apply(const Tensors& g) override {
    const Tensor scaled = g[0] / result.get();
    return {needs(0) ? scaled * self.get() : Tensor(), needs(1) ? scaled * other.get() : Tensor()};
  }
};

struct CopysignBackward final : Node {  // y / a, which is 1 or -1, and 0 at 0
  Saved self, result;
  RUSH_SAVED(self, result)
  void save(const Tensor& a, const Tensor&) { self = a; }
  void save_output(const Tensor& y) { result = Saved::output(y, this); }
  Tensors apply(const Tensors& g) override {
    const Tensor sign = self.get().sign() * result.get().sign();
    return {needs(0) ? g[0] * sign : Tensor(), needs(1) ? zeros_like(g[0]) : Tensor()};
  }
};

struct XlogyBackward final : FromInputs {  // d(a ln b) = g ln b, g a / b; the first is 0 where a is 0 and b <= 0
  Tensors apply(const Tensors& g) override {
    const Tensor a = self.get(), b = other.get();
    return {needs(0) ? where((a == 0) & (b <= 0), 0, xlogy(g[0], b)) : Tensor(), needs(1) ? g[0] * a / b : Tensor()};
  }
};

// d(a ln(1 + b)) = g ln(1 + b), g a / (1 + b); the first is 0 where a is 0 and b <= -1.
struct Xlog1pyBackward final : FromInputs {
  Tensors apply(const Tensors& g) override {
    const Tensor a = self.get(), b = other.get();
    return {needs(0) ? where((a == 0) & (b <= -1), 0, special_xlog1py(g[0], b)) : Tensor(),
            needs(1) ? g[0] * a / (b + 1) : Tensor()};
  }
};

struct LogaddexpBackward final : FromInputs {  // d log(e^a + e^b) = g / (1 + e^(b-a)), g / (1 + e^(a-b))
  Tensors apply(const Tensors& g) override {
    const Tensor difference = conj_of(other.get() - self.get());
    return {needs(0) ? g[0] / (difference.exp() + 1) : Tensor(),
            needs(1) ? g[0] / ((-difference).exp() + 1) : Tensor()};
  }
};
struct Logaddexp2Backward final : FromInputs {  // likewise to base 2
  Tensors apply(const Tensors& g) override {
    const Tensor difference = other.get() - self.get();
    return {needs(0) ? g[0] / (difference.exp2() + 1) : Tensor(),
            needs(1) ? g[0] / ((-difference).exp2() + 1) : Tensor()};
  }
};

struct ComplexBackward final : Node {  // the parts of g
  Tensors apply(const Tensors& g) override { return {real(g[0]), imag(g[0])}; }
};
struct PolarBackward final : FromResult {  // d(r e^it): Re(conj(g) e^it), Re(conj(g) i r e^it)
  Tensors apply(const Tensors& g) override {
    const Tensor conjugate = g[0].conj(), z = result.get();
    return {needs(0) ? real(conjugate * z.sgn()) : Tensor(),
            needs(1) ? real(conjugate * (z * complex<double>(0, 1))) : Tensor()};
  }
};
RUSH_BY_INPUT(AngleBackward) {  // of x = a + ib: g (-b + ia) / |x|^2; of a real number 0
  if (!x.is_complex()) return zeros_like(g);
  const Tensor turned = x * complex<double>(0, 1);
  return where(x == 0, 0, g * turned / real(x * x.conj()));
}

}  // namespace

void register_power_derivatives(Registry& r) {
  derive_all<PowBackward, ops::pow, ops::pow_>(r);
  derive_all<PowScalarBackward, ops::pow_scalar, ops::pow_scalar_>(r);
  derive_all<Atan2Backward, ops::atan2, ops::atan2_>(r);
  derive_all<HypotBackward, ops::hypot, ops::hypot_>(r);
  derive_all<CopysignBackward, ops::copysign, ops::copysign_>(r);
  derive_all<XlogyBackward, ops::xlogy, ops::xlogy_>(r);
  derive<ops::logaddexp, LogaddexpBackward>(r);
  derive<ops::logaddexp2, Logaddexp2Backward>(r);
  derive<ops::special_xlog1py, Xlog1pyBackward>(r);
  derive<ops::complex, ComplexBackward>(r);
  derive<ops::polar, PolarBackward>(r);
  derive<ops::angle, AngleBackward>(r);
}

}  // namespace rush
