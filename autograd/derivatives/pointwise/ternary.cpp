// Derivatives of where, clamp, lerp, addcmul, addcdiv, and of the larger and smaller of two tensors.
#include "core/ops/pointwise/ternary.h"

#include "autograd/derivatives/pointwise/pointwise.h"
#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"

namespace rush {

namespace {

// Equal elements share the gradient.
template <bool larger>
struct LargerOrSmallerBackward : FromInputs {
  Tensors apply(const Tensors& g) override {
    const Tensor a = self.get(), b = other.get();
    const Tensor shared = where(a == b, g[0] / 2, g[0]);
    return {needs(0) ? where(larger ? a < b : a > b, 0, shared) : Tensor(),
            needs(1) ? where(larger ? a > b : a < b, 0, shared) : Tensor()};
  }
};
struct MaximumBackward final : LargerOrSmallerBackward<true> {};
struct MinimumBackward final : LargerOrSmallerBackward<false> {};
// The first takes all of it.
template <bool larger>
struct LargerOrSmallerNumberBackward : FromInputs {
  Tensors apply(const Tensors& g) override {
    const Tensor a = self.get(), b = other.get();
    const Tensor first = (larger ? a >= b : a <= b) | b.isnan();
    return {where(first, g[0], 0), where(first, 0, g[0])};
  }
};
struct FmaxBackward final : LargerOrSmallerNumberBackward<true> {};
struct FminBackward final : LargerOrSmallerNumberBackward<false> {};

struct ClampBackward final : Node {
  Saved self;
  OptionalScalar min, max;
  RUSH_SAVED(self)
  auto saved_arguments() { return std::tie(self, min, max); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    if (!max) return {where(x >= *min, g[0], 0)};
    if (!min) return {where(x <= *max, g[0], 0)};
    return {where((x >= *min) & (x <= *max), g[0], 0)};
  }
};

// A bound takes the gradient where it is the result; min gives way to max.
struct ClampTensorBackward final : Node {
  Saved self, min, max;
  RUSH_SAVED(self, min, max)
  auto saved_arguments() { return std::tie(self, min, max); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    if (!max.defined()) {
      return {where(x >= min.get(), g[0], 0), where(x < min.get(), g[0], 0), Tensor()};
    }
    if (!min.defined()) {
      return {where(x <= max.get(), g[0], 0), Tensor(), where(x > max.get(), g[0], 0)};
    }
    const Tensor low = min.get(), high = max.get();
    return {where((x >= low) & (x <= high), g[0], 0), where((low < high) & (x < low), g[0], 0),
            where((high < low) | (x > high), g[0], 0)};
  }
};

struct WhereBackward final : Node {
  Saved condition;
  RUSH_SAVED(condition)
  void save(const Tensor& test, const Tensor&, const Tensor&) { condition = test; }
  Tensors apply(const Tensors& g) override {
    const Tensor test = condition.get();
    return {Tensor(), needs(1) ? where(test, g[0], 0) : Tensor(), needs(2) ? where(test, 0, g[0]) : Tensor()};
  }
};

// d(a + v b c) = g, g v c, g v b; d(a + v b / c) = g, g v / c, -g v b / c^2.
struct AddcNode : Node {
  Saved tensor1, tensor2;
  Scalar value;
  RUSH_SAVED(tensor1, tensor2)
  auto saved_arguments() { return std::tie(std::ignore, tensor1, tensor2, value); }
};
struct AddcmulBackward final : AddcNode {
  Tensors apply(const Tensors& g) override {
    return {g[0], needs(1) ? g[0] * conj_of(tensor2.get() * value) : Tensor(),
            needs(2) ? g[0] * conj_of(tensor1.get() * value) : Tensor()};
  }
};
struct AddcdivBackward final : AddcNode {
  Tensors apply(const Tensors& g) override {
    const Tensor c = tensor2.get();
    return {g[0], needs(1) ? g[0] * conj_of(value / c) : Tensor(),
            needs(2) ? -g[0] * conj_of(tensor1.get() * value / (c * c)) : Tensor()};
  }
};

struct LerpBackward final : Node {  // d(a + w (b - a)) = g (1 - w), g w, g (b - a)
  Saved self, end, weight;
  RUSH_SAVED(self, end, weight)
  void save(const Tensor& a, const Tensor& b, const Tensor& w) {
    if (needs(2)) {
      self = a;
      end = b;
    }
    weight = w;
  }
  Tensors apply(const Tensors& g) override {
    const Tensor w = conj_of(weight.get());
    return {needs(0) ? g[0] * (1 - w) : Tensor(), needs(1) ? g[0] * w : Tensor(),
            needs(2) ? g[0] * conj_of(end.get() - self.get()) : Tensor()};
  }
};
struct LerpScalarBackward final : Node {
  Scalar weight;
  void save(const Tensor&, const Tensor&, const Scalar& w) { weight = w.conj(); }
  Tensors apply(const Tensors& g) override {
    const Scalar rest =
        weight.is_complex() ? Scalar(complex<double>(1) - weight.to<complex<double>>()) : Scalar(1 - weight.toDouble());
    return {needs(0) ? g[0] * rest : Tensor(), needs(1) ? g[0] * weight : Tensor()};
  }
};

}  // namespace

void register_ternary_derivatives(Registry& r) {
  derive<ops::maximum, MaximumBackward>(r);
  derive<ops::minimum, MinimumBackward>(r);
  derive<ops::fmax, FmaxBackward>(r);
  derive<ops::fmin, FminBackward>(r);
  derive<ops::where, WhereBackward>(r);
  derive_all<ClampBackward, ops::clamp, ops::clamp_>(r);
  derive_all<ClampTensorBackward, ops::clamp_Tensor, ops::clamp_Tensor_>(r);
  derive_all<AddcmulBackward, ops::addcmul, ops::addcmul_>(r);
  derive_all<AddcdivBackward, ops::addcdiv, ops::addcdiv_>(r);
  derive_all<LerpBackward, ops::lerp, ops::lerp_>(r);
  derive_all<LerpScalarBackward, ops::lerp_scalar, ops::lerp_scalar_>(r);
}

}  // namespace rush
