#include "core/ops/binary.h"

#include "autograd/derivatives/register.h"
#include "autograd/derive.h"
#include "core/ops/unary.h"

namespace rush {

namespace {

struct AddBackward final : Node {  // d(a + alpha b) = g, alpha g
  Scalar alpha;
  void save(const Tensor&, const Tensor&, const Scalar& scale) { alpha = scale; }
  Tensors apply(const Tensors& g) override {
    return {g[0], !needs(1) ? Tensor() : alpha.equal(1) ? g[0] : g[0] * alpha};
  }
};

struct SubBackward final : Node {  // d(a - alpha b) = g, -alpha g
  Scalar alpha;
  void save(const Tensor&, const Tensor&, const Scalar& scale) { alpha = scale; }
  Tensors apply(const Tensors& g) override { return {g[0], needs(1) ? g[0] * -alpha : Tensor()}; }
};

struct MulBackward final : Node {  // d(a b) = g b, g a
  Saved self, other;
  RUSH_SAVED(self, other)
  void save(const Tensor& a, const Tensor& b) {
    if (needs(1)) self = a;
    if (needs(0)) other = b;
  }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? g[0] * other.get() : Tensor(), needs(1) ? g[0] * self.get() : Tensor()};
  }
};

struct DivBackward final : Node {  // d(a / b) = g / b, -g a / b^2
  Saved self, other;
  RUSH_SAVED(self, other)
  void save(const Tensor& a, const Tensor& b) {
    if (needs(1)) self = a;
    other = b;
  }
  Tensors apply(const Tensors& g) override {
    const Tensor scaled = g[0] / other.get();
    return {scaled, needs(1) ? -(scaled * (self.get() / other.get())) : Tensor()};
  }
};

}  // namespace

void register_binary_derivatives(Registry& r) {
  derive<ops::add, AddBackward>(r);
  derive<ops::add_, AddBackward>(r);
  derive<ops::sub, SubBackward>(r);
  derive<ops::sub_, SubBackward>(r);
  derive<ops::mul, MulBackward>(r);
  derive<ops::mul_, MulBackward>(r);
  derive<ops::div, DivBackward>(r);
  derive<ops::div_, DivBackward>(r);
}

}  // namespace rush
