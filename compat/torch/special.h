// torch::special, and the forms of its functions that write into a given tensor.
#pragma once
#include "ATen/operators/out_functions.h"
#include "ATen/operators/special_functions.h"
#include "torch/types.h"

namespace torch::special {

#define RUSH_FORALL_UNARY_OF_SPECIAL(X) \
  RUSH_FORALL_SPECIAL_UNARY(X)          \
  X(airy_ai)                            \
  X(bessel_j0)                          \
  X(bessel_j1)                          \
  X(bessel_y0)                          \
  X(bessel_y1)                          \
  X(entr)                               \
  X(erfcx)                              \
  X(i0e)                                \
  X(i1)                                 \
  X(i1e)                                \
  X(log_ndtr)                           \
  X(logit)                              \
  X(modified_bessel_i1)                 \
  X(modified_bessel_k0)                 \
  X(modified_bessel_k1)                 \
  X(ndtr)                               \
  X(ndtri)                              \
  X(round)                              \
  X(scaled_modified_bessel_k0)          \
  X(scaled_modified_bessel_k1)          \
  X(spherical_bessel_j0)
#define RUSH_FORALL_BINARY_OF_SPECIAL(X) \
  RUSH_FORALL_SPECIAL_POLYNOMIALS(X)     \
  X(xlog1py)                             \
  X(xlogy)                               \
  X(zeta)

#define RUSH_DECLARED(name, ...)   \
  Tensor name(const Tensor& self); \
  Tensor& name##_out(Tensor& result, const Tensor& self);
RUSH_FORALL_UNARY_OF_SPECIAL(RUSH_DECLARED)
#undef RUSH_DECLARED

#define RUSH_DECLARED_OF(name, First, Second)          \
  Tensor name(const First& self, const Second& other); \
  Tensor& name##_out(Tensor& result, const First& self, const Second& other);
#define RUSH_DECLARED(name, ...)         \
  RUSH_DECLARED_OF(name, Tensor, Tensor) \
  RUSH_DECLARED_OF(name, Scalar, Tensor) \
  RUSH_DECLARED_OF(name, Tensor, Scalar)
RUSH_FORALL_BINARY_OF_SPECIAL(RUSH_DECLARED)
RUSH_DECLARED_OF(gammainc, Tensor, Tensor)
RUSH_DECLARED_OF(gammaincc, Tensor, Tensor)
#undef RUSH_DECLARED
#undef RUSH_DECLARED_OF

Tensor polygamma(int64_t n, const Tensor& self);
Tensor& polygamma_out(Tensor& result, int64_t n, const Tensor& self);
Tensor multigammaln(const Tensor& self, int64_t p);
Tensor& multigammaln_out(Tensor& result, const Tensor& self, int64_t p);
Tensor logsumexp(const Tensor& self, IntArrayRef dims, bool keepdim);
Tensor& logsumexp_out(Tensor& result, const Tensor& self, IntArrayRef dims, bool keepdim);
Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype);
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype);

}  // namespace torch::special
