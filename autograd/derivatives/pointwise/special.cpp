#include "core/ops/pointwise/special.h"

#include <array>

#include "autograd/derivatives/pointwise/pointwise.h"
#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"

namespace rush {

namespace {

// 1 / x, and 0 at 0: there it stands for i1(x) / x - 1/2 and the like, whose other terms are right.
Tensor reciprocal_or_zero(const Tensor& x) { return where(x == 0, 0, 1 / where(x == 0, 1, x)); }

RUSH_BY_INPUT(I0Backward) { return g * special_i1(x); }                                 // i1
RUSH_BY_INPUT(I0eBackward) { return g * (special_i1e(x) - x.sgn() * special_i0e(x)); }  // i1e - sgn x i0e
// i0 - i1 / x, which is 1/2 at 0
RUSH_BY_INPUT(I1Backward) { return g * where(x == 0, 0.5, x.i0() - special_i1(x) * reciprocal_or_zero(x)); }
// i0e - i1e (sgn x + 1 / x), which is 1/2 at 0
RUSH_BY_INPUT(I1eBackward) {
  return g * where(x == 0, 0.5, special_i0e(x) - special_i1e(x) * (x.sgn() + reciprocal_or_zero(x)));
}
// sqrt(2 pi) exp(y^2 / 2)
RUSH_BY_RESULT(NdtriBackward) { return g * (y.square() / 2).exp() * 2.50662827463100050242; }

// By the limit of the integral: its integrand x^(a - 1) e^-x / gamma(a). There is none by a, as in PyTorch.
template <int sign>
struct IgammaBackward final : FromInputs {
  static constexpr std::array<size_t, 1> kConstants = {0};
  Tensors apply(const Tensors& g) override {
    const Tensor a = self.get(), x = other.get();
    return {Tensor(), g[0] * ((a - 1) * x.log() - x - a.lgamma()).exp() * sign};
  }
};
struct ZetaBackward final : FromInputs {  // by the second argument, -s zeta(s + 1, q)
  static constexpr std::array<size_t, 1> kConstants = {0};
  Tensors apply(const Tensors& g) override {
    const Tensor s = self.get();
    return {Tensor(), g[0] * -s * special_zeta(s + 1, other.get())};
  }
};

}  // namespace

void register_special_derivatives(Registry& r) {
  derive_all<I0Backward, ops::i0, ops::i0_>(r);
  derive<ops::special_i0e, I0eBackward>(r);
  derive<ops::special_i1, I1Backward>(r);
  derive<ops::special_i1e, I1eBackward>(r);
  derive<ops::special_ndtri, NdtriBackward>(r);
  derive_all<IgammaBackward<1>, ops::igamma, ops::igamma_>(r);
  derive_all<IgammaBackward<-1>, ops::igammac, ops::igammac_>(r);
  derive<ops::special_zeta, ZetaBackward>(r);
}

}  // namespace rush
