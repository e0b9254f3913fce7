#include "core/ops/pointwise/power.h"

#include "core/iterator/output_checks.h"
#include "core/ops/factory/factories.h"
#include "core/ops/register.h"
#include "core/ops/view/copy.h"

namespace rush {

namespace native {

static void check_exponent(const Tensor& self, const Scalar& exponent, const char* op) {
  const bool negative = exponent.is_integral(true) && exponent.toLong() < 0;
  RUSH_CHECK_VALUE(!(is_integral(self.scalar_type(), true) && negative), op,
                   ": integers cannot be raised to the negative integer power ", exponent);
}

static Tensor pow_scalar(const Tensor& self, const Scalar& exponent) {
  check_exponent(self, exponent, "pow");
  const Tensor base = as_dtype(self, result_type(self, exponent));
  if (exponent.equal(1)) return ops::clone(base, std::nullopt);
  if (exponent.equal(0)) return full_like(base, 1);
  return unary<kernels::pow_scalar, Promotion::None, const Scalar&>(base, exponent);
}

static Tensor& pow_scalar_(Tensor& self, const Scalar& exponent) {
  check_exponent(self, exponent, "pow_");
  const ScalarType type = result_type(self, exponent);
  check_result_type("pow_", type, self.scalar_type());
  if (self.scalar_type() != type) return copy_(self, native::pow_scalar(self, exponent), false);
  return unary_<kernels::pow_scalar, Promotion::None, const Scalar&>(self, exponent);
}

static Tensor pow_Scalar(const Scalar& self, const Tensor& exponent) {
  return ops::pow(detail::wrapped_number(self, exponent), exponent);
}

static ScalarType float_power_type(bool is_complex) { return is_complex ? kComplex128 : kFloat64; }

static Tensor float_power(const Tensor& self, const Tensor& exponent) {
  const ScalarType type = float_power_type(self.is_complex() || exponent.is_complex());
  return ops::pow(self.to(type), exponent.to(type));
}

static Tensor float_power_scalar(const Tensor& self, const Scalar& exponent) {
  return ops::pow_scalar(self.to(float_power_type(self.is_complex() || exponent.is_complex())), exponent);
}

static Tensor float_power_Scalar(const Scalar& self, const Tensor& exponent) {
  const ScalarType type = float_power_type(exponent.is_complex() || self.is_complex());
  return ops::pow_Scalar(self, exponent.to(type));
}

static Tensor heaviside(const Tensor& self, const Tensor& values) {
  RUSH_CHECK_TYPE(self.scalar_type() == values.scalar_type(), "heaviside: expected values of dtype ",
                  self.scalar_type(), ", got ", values.scalar_type());
  return binary<kernels::heaviside, Promotion::Common>(self, values);
}

static Tensor& heaviside_(Tensor& self, const Tensor& values) {
  RUSH_CHECK_TYPE(self.scalar_type() == values.scalar_type(), "heaviside_: expected values of dtype ",
                  self.scalar_type(), ", got ", values.scalar_type());
  return binary_<kernels::heaviside, Promotion::Common>(self, values);
}

}  // namespace native

void register_power_ops(Registry& r) {
  native::register_power_fronts(r);
  r.native(ops::pow_scalar, native::pow_scalar);
  r.native(ops::pow_scalar_, native::pow_scalar_);
  r.composite(ops::pow_Scalar, native::pow_Scalar);
  r.composite(ops::float_power, native::float_power);
  r.composite(ops::float_power_scalar, native::float_power_scalar);
  r.composite(ops::float_power_Scalar, native::float_power_Scalar);
  r.native(ops::heaviside, native::heaviside);
  r.native(ops::heaviside_, native::heaviside_);
}

RUSH_BINARY_METHODS(pow)
RUSH_FORALL_BINARY_MATH(RUSH_BINARY_METHODS)
RUSH_BINARY_METHODS(atan2)
RUSH_BINARY_METHODS(heaviside)
RUSH_BINARY_AND_SCALAR_METHODS(copysign)
RUSH_BINARY_AND_SCALAR_METHODS(xlogy)
Tensor Tensor::pow(const Scalar& exponent) const { return ops::pow_scalar(*this, exponent); }
Tensor& Tensor::pow_(const Scalar& exponent) const { return ops::pow_scalar_(self(), exponent); }
Tensor Tensor::float_power(const Tensor& exponent) const { return ops::float_power(*this, exponent); }
Tensor Tensor::float_power(const Scalar& exponent) const { return ops::float_power_scalar(*this, exponent); }
Tensor Tensor::logaddexp(const Tensor& other) const { return ops::logaddexp(*this, other); }
Tensor Tensor::logaddexp2(const Tensor& other) const { return ops::logaddexp2(*this, other); }

}  // namespace rush
