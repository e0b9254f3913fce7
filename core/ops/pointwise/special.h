// Special functions: Bessel functions, the incomplete gamma functions, the zeta function. Those of one tensor that the
// standard library has, or nearly, are in core/ops/pointwise/unary.h. https://pytorch.org/docs/stable/special.html
#pragma once
#include "core/ops/pointwise/pointwise.h"

namespace rush {

// Of one tensor, called by its schema's name; integers give the default dtype.
#define RUSH_FORALL_BESSEL(X)                                                                             \
  X(special_airy_ai, x)                   /* Airy function Ai; NaN at infinities */                       \
  X(special_bessel_j0, self)              /* of the first kind, order 0 */                                \
  X(special_bessel_j1, self)              /* of the first kind, order 1 */                                \
  X(special_bessel_y0, self)              /* of the second kind, order 0; NaN below 0 */                  \
  X(special_bessel_y1, self)              /* of the second kind, order 1; NaN below 0 */                  \
  X(special_i0e, self)                    /* exp(-|x|) i0(x) */                                           \
  X(special_i1, self)                     /* modified, of the first kind, order 1 */                      \
  X(special_i1e, self)                    /* exp(-|x|) i1(x) */                                           \
  X(special_modified_bessel_k0, self)     /* modified, of the second kind, order 0; NaN below 0 */        \
  X(special_modified_bessel_k1, self)     /* modified, of the second kind, order 1; NaN below 0 */        \
  X(special_ndtri, self)                  /* the x that a normal number is below with this probability */ \
  X(special_scaled_modified_bessel_k0, x) /* exp(x) k0(x) */                                              \
  X(special_scaled_modified_bessel_k1, x) /* exp(x) k1(x) */                                              \
  X(special_spherical_bessel_j0, x)       /* sin(x) / x, and 1 at 0 */

namespace ops {
#define RUSH_DECLARE_OP(name, argument) \
  inline constinit UnaryOp name{"aten::" #name "(Tensor " #argument ") -> Tensor"};
RUSH_FORALL_BESSEL(RUSH_DECLARE_OP)
#undef RUSH_DECLARE_OP
inline constinit BinaryOp igamma{"aten::igamma(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryInplaceOp igamma_{"aten::igamma_(Tensor(a!) self, Tensor other) -> Tensor(a!)"};
inline constinit BinaryOp igammac{"aten::igammac(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryInplaceOp igammac_{"aten::igammac_(Tensor(a!) self, Tensor other) -> Tensor(a!)"};
inline constinit BinaryOp special_zeta{"aten::special_zeta(Tensor self, Tensor other) -> Tensor"};
}  // namespace ops
/// A function for each row above.
#define RUSH_DEFINE_FUNCTION(name, argument) \
  inline Tensor name(const Tensor& argument) { return ops::name(argument); }
RUSH_FORALL_BESSEL(RUSH_DEFINE_FUNCTION)
#undef RUSH_DEFINE_FUNCTION
/// The regularised lower incomplete gamma function P(self, other): the integral of t^(self - 1) e^-t from 0 to other,
/// over gamma(self); and the upper one, 1 - P. NaN where an argument is negative, or both are 0 or infinite.
inline Tensor igamma(const Tensor& self, const Tensor& other) { return ops::igamma(self, other); }
inline Tensor igammac(const Tensor& self, const Tensor& other) { return ops::igammac(self, other); }
/// The Hurwitz zeta function, the sum of (k + other)^-self over k = 0, 1, ...
inline Tensor special_zeta(const Tensor& self, const Tensor& other) { return ops::special_zeta(self, other); }

namespace kernels {
#define RUSH_DECLARE_KERNEL(name, argument) inline constinit PointwiseKernel name{#name};
RUSH_FORALL_BESSEL(RUSH_DECLARE_KERNEL)
#undef RUSH_DECLARE_KERNEL
inline constinit PointwiseKernel igamma{"igamma"}, igammac{"igammac"}, special_zeta{"special_zeta"};
}  // namespace kernels

}  // namespace rush
