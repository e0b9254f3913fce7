#include "core/ops/pointwise/binary.h"

#include "autograd/derivatives/pointwise/pointwise.h"
#include "autograd/derivatives/register.h"
#include "core/ops/pointwise/bitwise.h"
#include "core/ops/pointwise/compare.h"
#include "core/ops/pointwise/unary.h"

namespace rush {

namespace {

struct AddBackward final : Node {  // d(a + alpha b) = g, conj(alpha) g
  Scalar alpha;
  void save(const Tensor&, const Tensor&, const Scalar& scale) { alpha = scale.conj(); }
  Tensors apply(const Tensors& g) override {
    return {g[0], !needs(1) ? Tensor() : alpha.equal(1) ? g[0] : g[0] * alpha};
  }
};

struct SubBackward final : Node {  // d(a - alpha b) = g, -conj(alpha) g
  Scalar alpha;
  void save(const Tensor&, const Tensor&, const Scalar& scale) { alpha = scale.conj(); }
  Tensors apply(const Tensors& g) override {
    return {g[0], !needs(1) ? Tensor() : alpha.equal(1) ? -g[0] : g[0] * -alpha};
  }
};

struct MulBackward final : Node {  // d(a b) = g b, g a
  Saved self, other;
  RUSH_SAVED(self, other)
  void save(const Tensor& a, const Tensor& b) {
    if (needs(1)) self = a;
    if (needs(0)) other = b;
  }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? g[0] * conj_of(other.get()) : Tensor(), needs(1) ? g[0] * conj_of(self.get()) : Tensor()};
  }
};

// d(a / b) = g / b, -g a / b^2.
struct DivNode : Node {
  Saved self, other;
  RUSH_SAVED(self, other)
  void keep(const Tensor& a, const Tensor& b) {
    if (needs(1)) self = a;
    other = b;
  }
  Tensors quotient_rule(const Tensor& grad) const {
    const Tensor b = other.get();
    const Tensor scaled = grad / conj_of(b);
    return {scaled, needs(1) ? -(scaled * conj_of(self.get() / b)) : Tensor()};
  }
};
struct DivBackward final : DivNode {
  void save(const Tensor& a, const Tensor& b) { keep(a, b); }
  Tensors apply(const Tensors& g) override { return quotient_rule(g[0]); }
};
struct DivModeBackward final : DivNode {  // piecewise constant if it rounds
  bool rounds = false;
  void save(const Tensor& a, const Tensor& b, std::optional<std::string_view> mode) {
    rounds = mode.has_value();
    if (!rounds) keep(a, b);
  }
  Tensors apply(const Tensors& g) override {
    return rounds ? Tensors{zeros_like(g[0]), zeros_like(g[0])} : quotient_rule(g[0]);
  }
};

// a - b * (a / b rounded): g, -g * (a / b rounded).
struct RestBackward : Node {
  Saved self, other;
  RUSH_SAVED(self, other)
  void save(const Tensor& a, const Tensor& b) {
    if (!needs(1)) return;
    self = a;
    other = b;
  }
  Tensors with_rounding(const Tensors& g, std::string_view mode) const {
    return {g[0], needs(1) ? -g[0] * self.get().div(other.get(), mode) : Tensor()};
  }
};
struct FmodBackward final : RestBackward {
  Tensors apply(const Tensors& g) override { return with_rounding(g, "trunc"); }
};
struct RemainderBackward final : RestBackward {
  Tensors apply(const Tensors& g) override { return with_rounding(g, "floor"); }
};

}  // namespace

void register_binary_derivatives(Registry& r) {
  derive_all<AddBackward, ops::add, ops::add_>(r);
  derive_all<SubBackward, ops::sub, ops::sub_>(r);
  derive_all<MulBackward, ops::mul, ops::mul_>(r);
  derive_all<DivBackward, ops::div, ops::div_>(r);
  derive_all<DivModeBackward, ops::div_mode, ops::div_mode_>(r);
  derive_all<StepBackward, ops::floor_divide, ops::floor_divide_>(r);
  derive_all<FmodBackward, ops::fmod, ops::fmod_>(r);
  derive_all<RemainderBackward, ops::remainder, ops::remainder_>(r);
  // Of truth values there are no gradients; written in place of numbers, they are constants.
#define RUSH_DERIVE(name) derive<ops::name##_, StepBackward>(r);
  RUSH_FORALL_COMPARISONS(RUSH_DERIVE)
  RUSH_FORALL_LOGICAL(RUSH_DERIVE)
  RUSH_DERIVE(logical_not)
#undef RUSH_DERIVE
}

}  // namespace rush
