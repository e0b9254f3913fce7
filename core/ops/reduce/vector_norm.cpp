#include "core/ops/reduce/vector_norm.h"

#include <cmath>

#include "core/ops/basic.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

static void check_norm_dtype(const char* op, const Tensor& self, std::optional<ScalarType> dtype) {
  const ScalarType own = self.scalar_type();
  RUSH_CHECK_TYPE(is_differentiable(own), op, ": expected a floating or complex tensor, got ", own);
  if (!dtype) return;
  RUSH_CHECK_TYPE(
      is_differentiable(*dtype) && is_complex(*dtype) == is_complex(own) && promote_types(own, *dtype) == *dtype, op,
      ": cannot compute in ", *dtype, " without losing what ", own, " holds");
}

static Tensor linalg_vector_norm(const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool keepdim,
                                 std::optional<ScalarType> dtype) {
  check_norm_dtype("linalg_vector_norm", self, dtype);
  const double p = ord.toDouble();
  const Reduction reduction("linalg_vector_norm", self, dim, keepdim);
  if (p < 0 || std::isinf(p)) {
    for (int64_t d : reduction.dims) {
      RUSH_CHECK_VALUE(self.sizes()[d] != 0, "linalg_vector_norm: order ", ord,
                       " has no value for the empty dimension ", d, " of shape ", self.sizes());
    }
  }
  const Tensor input = dtype && *dtype != self.scalar_type() ? to_dtype(self, *dtype) : self;
  const Tensor output = reduction.allocate(self, to_real(input.scalar_type()));
  kernels::vector_norm(self.device().type, output, input, reduction.dims, p);
  return reduction.finish(output);
}

static Scalar order_of(const std::optional<Scalar>& p) { return p ? *p : Scalar(2); }

static Tensor norm(const Tensor& self, const Scalar& p) {
  return ops::linalg_vector_norm(self, p, std::nullopt, false, std::nullopt);
}
static Tensor norm_dtype(const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype) {
  return ops::linalg_vector_norm(self, order_of(p), std::nullopt, false, dtype);
}
static Tensor norm_dim(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim) {
  return ops::linalg_vector_norm(self, order_of(p), dim, keepdim, std::nullopt);
}
static Tensor norm_dim_dtype(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim,
                             ScalarType dtype) {
  return ops::linalg_vector_norm(self, order_of(p), dim, keepdim, dtype);
}

static Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) { return ops::norm(self - other, p); }

// What to scale the slices along `dim` by, as PyTorch computes it: 16-bit norms in float, and 1e-7 against a division
// by zero.
static Tensor renorm_factor(const char* op, const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  const ScalarType real = to_real(self.scalar_type());
  RUSH_CHECK_VALUE(p.toDouble() > 0, op, ": expected a positive p, got ", p);
  RUSH_CHECK_VALUE(maxnorm.toDouble() >= 0, op, ": expected a maxnorm that is not negative, got ", maxnorm);
  RUSH_CHECK_VALUE(self.dim() > 1, op, ": expected at least two dimensions, got shape ", self.sizes());
  const DimVector others = other_dims(self, wrap_dim(dim, self.dim(), op));
  const bool reduced_float = real == kFloat16 || real == kBFloat16;
  const Tensor norm =
      ops::linalg_vector_norm(self, p, others, true, reduced_float ? std::optional(kFloat32) : std::nullopt);
  const double limit = maxnorm.toDouble();
  return where(norm > limit, limit / (norm + 1e-7), 1).to(real);
}

static Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  return self * renorm_factor("renorm", self, p, dim, maxnorm);
}
static Tensor& renorm_(Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  // The norms' derivative needs the values that the product is about to replace.
  const Tensor before = self.requires_grad() ? self.clone() : self;
  return self.mul_(renorm_factor("renorm_", before, p, dim, maxnorm));
}

}  // namespace native

void register_vector_norm_ops(Registry& r) {
  r.native(ops::linalg_vector_norm, native::linalg_vector_norm);
  r.composite(ops::norm, native::norm);
  r.composite(ops::norm_dim, native::norm_dim);
  r.composite(ops::norm_dtype, native::norm_dtype);
  r.composite(ops::norm_dim_dtype, native::norm_dim_dtype);
  r.composite(ops::dist, native::dist);
  r.composite(ops::renorm, native::renorm);
  r.composite(ops::renorm_, native::renorm_);
}

Tensor Tensor::norm(const Scalar& p) const { return ops::norm(*this, p); }
Tensor Tensor::norm(const std::optional<Scalar>& p, ScalarType dtype) const { return ops::norm_dtype(*this, p, dtype); }
Tensor Tensor::norm(const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim) const {
  return ops::norm_dim(*this, p, dim, keepdim);
}
Tensor Tensor::norm(const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim, ScalarType dtype) const {
  return ops::norm_dim_dtype(*this, p, dim, keepdim, dtype);
}
Tensor Tensor::renorm(const Scalar& p, int64_t dim, const Scalar& maxnorm) const {
  return ops::renorm(*this, p, dim, maxnorm);
}
Tensor& Tensor::renorm_(const Scalar& p, int64_t dim, const Scalar& maxnorm) const {
  return ops::renorm_(self(), p, dim, maxnorm);
}
Tensor Tensor::dist(const Tensor& other, const Scalar& p) const { return ops::dist(*this, other, p); }

}  // namespace rush
