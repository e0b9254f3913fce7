// torch::special, and the forms of its functions that write into a given tensor.
#pragma once
#include "ATen/special_functions.h"
#include "torch/types.h"

namespace torch::special {

#define RUSH_SPECIAL_UNARY(name, ...)                                     \
  inline Tensor name(const Tensor& self) { return special_##name(self); } \
  inline Tensor& name##_out(Tensor& result, const Tensor& self) {         \
    return aten_detail::written_to(result, special_##name(self));         \
  }
RUSH_FORALL_SPECIAL_UNARY(RUSH_SPECIAL_UNARY)
RUSH_SPECIAL_UNARY(airy_ai)
RUSH_SPECIAL_UNARY(bessel_j0)
RUSH_SPECIAL_UNARY(bessel_j1)
RUSH_SPECIAL_UNARY(bessel_y0)
RUSH_SPECIAL_UNARY(bessel_y1)
RUSH_SPECIAL_UNARY(entr)
RUSH_SPECIAL_UNARY(erfcx)
RUSH_SPECIAL_UNARY(i0e)
RUSH_SPECIAL_UNARY(i1)
RUSH_SPECIAL_UNARY(i1e)
RUSH_SPECIAL_UNARY(log_ndtr)
RUSH_SPECIAL_UNARY(logit)
RUSH_SPECIAL_UNARY(modified_bessel_i1)
RUSH_SPECIAL_UNARY(modified_bessel_k0)
RUSH_SPECIAL_UNARY(modified_bessel_k1)
RUSH_SPECIAL_UNARY(ndtr)
RUSH_SPECIAL_UNARY(ndtri)
RUSH_SPECIAL_UNARY(round)
RUSH_SPECIAL_UNARY(scaled_modified_bessel_k0)
RUSH_SPECIAL_UNARY(scaled_modified_bessel_k1)
RUSH_SPECIAL_UNARY(spherical_bessel_j0)
#undef RUSH_SPECIAL_UNARY

#define RUSH_SPECIAL_BINARY_OF(name, First, Second)                                                  \
  inline Tensor name(const First& self, const Second& other) { return special_##name(self, other); } \
  inline Tensor& name##_out(Tensor& result, const First& self, const Second& other) {                \
    return aten_detail::written_to(result, special_##name(self, other));                             \
  }
#define RUSH_SPECIAL_BINARY(name, ...)         \
  RUSH_SPECIAL_BINARY_OF(name, Tensor, Tensor) \
  RUSH_SPECIAL_BINARY_OF(name, Scalar, Tensor) \
  RUSH_SPECIAL_BINARY_OF(name, Tensor, Scalar)
RUSH_FORALL_SPECIAL_POLYNOMIALS(RUSH_SPECIAL_BINARY)
RUSH_SPECIAL_BINARY(xlog1py)
RUSH_SPECIAL_BINARY(xlogy)
RUSH_SPECIAL_BINARY(zeta)
RUSH_SPECIAL_BINARY_OF(gammainc, Tensor, Tensor)
RUSH_SPECIAL_BINARY_OF(gammaincc, Tensor, Tensor)
#undef RUSH_SPECIAL_BINARY
#undef RUSH_SPECIAL_BINARY_OF

inline Tensor polygamma(int64_t n, const Tensor& self) { return special_polygamma(n, self); }
inline Tensor& polygamma_out(Tensor& result, int64_t n, const Tensor& self) {
  return aten_detail::written_to(result, special_polygamma(n, self));
}
inline Tensor multigammaln(const Tensor& self, int64_t p) { return mvlgamma(self, p); }
inline Tensor& multigammaln_out(Tensor& result, const Tensor& self, int64_t p) {
  return aten_detail::written_to(result, mvlgamma(self, p));
}
inline Tensor logsumexp(const Tensor& self, IntArrayRef dims, bool keepdim) {
  return special_logsumexp(self, dims, keepdim);
}
inline Tensor& logsumexp_out(Tensor& result, const Tensor& self, IntArrayRef dims, bool keepdim) {
  return aten_detail::written_to(result, special_logsumexp(self, dims, keepdim));
}
inline Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return special_softmax(self, dim, dtype);
}
inline Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return special_log_softmax(self, dim, dtype);
}

}  // namespace torch::special
