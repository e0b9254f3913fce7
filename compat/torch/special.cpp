#include "torch/special.h"

namespace torch::special {

#define RUSH_UNARY(name, ...)                                      \
  Tensor name(const Tensor& self) { return special_##name(self); } \
  Tensor& name##_out(Tensor& result, const Tensor& self) {         \
    return aten_detail::written_to(result, special_##name(self));  \
  }
RUSH_FORALL_UNARY_OF_SPECIAL(RUSH_UNARY)
#undef RUSH_UNARY

#define RUSH_BINARY_OF(name, First, Second)                                                   \
  Tensor name(const First& self, const Second& other) { return special_##name(self, other); } \
  Tensor& name##_out(Tensor& result, const First& self, const Second& other) {                \
    return aten_detail::written_to(result, special_##name(self, other));                      \
  }
#define RUSH_BINARY(name, ...)         \
  RUSH_BINARY_OF(name, Tensor, Tensor) \
  RUSH_BINARY_OF(name, Scalar, Tensor) \
  RUSH_BINARY_OF(name, Tensor, Scalar)
RUSH_FORALL_BINARY_OF_SPECIAL(RUSH_BINARY)
RUSH_BINARY_OF(gammainc, Tensor, Tensor)
RUSH_BINARY_OF(gammaincc, Tensor, Tensor)
#undef RUSH_BINARY
#undef RUSH_BINARY_OF

Tensor polygamma(int64_t n, const Tensor& self) { return special_polygamma(n, self); }
Tensor& polygamma_out(Tensor& result, int64_t n, const Tensor& self) {
  return aten_detail::written_to(result, special_polygamma(n, self));
}
Tensor multigammaln(const Tensor& self, int64_t p) { return mvlgamma(self, p); }
Tensor& multigammaln_out(Tensor& result, const Tensor& self, int64_t p) {
  return aten_detail::written_to(result, mvlgamma(self, p));
}
Tensor logsumexp(const Tensor& self, IntArrayRef dims, bool keepdim) { return special_logsumexp(self, dims, keepdim); }
Tensor& logsumexp_out(Tensor& result, const Tensor& self, IntArrayRef dims, bool keepdim) {
  return aten_detail::written_to(result, special_logsumexp(self, dims, keepdim));
}
Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return special_softmax(self, dim, dtype);
}
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return special_log_softmax(self, dim, dtype);
}

}  // namespace torch::special
