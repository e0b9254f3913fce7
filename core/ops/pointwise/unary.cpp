#include "core/ops/pointwise/unary.h"

#include "core/ops/basic.h"
#include "core/ops/pointwise/power.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

template <PointwiseKernel& kernel>
static Tensor rounded(const Tensor& self) {
  if (is_integral(self.scalar_type(), false)) return ops::clone(self, std::nullopt);
  return unary<kernel, Promotion::Common>(self);
}

template <PointwiseKernel& kernel>
static Tensor& rounded_(Tensor& self) {
  if (is_integral(self.scalar_type(), false)) return self;
  return unary_<kernel, Promotion::Common>(self);
}

// A predicate that all integers, or none, fulfil.
template <PointwiseKernel& kernel, bool of_integers>
static Tensor constant_or(const Tensor& self) {
  if (is_integral(self.scalar_type(), true)) return full_like(self, of_integers, TensorOptions(kBool));
  return unary<kernel, Promotion::Compare>(self);
}
static Tensor isreal(const Tensor& self) {
  if (!self.is_complex()) return ones_like(self, TensorOptions(kBool));
  return unary<kernels::isreal, Promotion::Compare>(self);
}

static Tensor abs(const Tensor& self) {
  auto it = TensorIterator::pointwise("abs", Tensor(), {&self}, Promotion::None, to_real(self.scalar_type()));
  kernels::abs(it.device_type(), it);
  return it.take_output();
}

static Tensor& abs_(Tensor& self) {
  RUSH_CHECK_TYPE(!self.is_complex(), "abs_: the magnitudes of complex numbers are real and do not fit in place");
  return unary_<kernels::abs, Promotion::None>(self);
}

static Tensor positive(const Tensor& self) {
  RUSH_CHECK_TYPE(self.scalar_type() != kBool, "positive: not defined on bool");
  return self;
}

static Tensor square(const Tensor& self) { return ops::pow_scalar(self, 2); }
static Tensor& square_(Tensor& self) { return ops::pow_scalar_(self, 2); }

static Tensor round_decimals(const Tensor& self, int64_t decimals) {
  if (decimals == 0) return rounded<kernels::round>(self);
  return unary<kernels::round_decimals, Promotion::Common>(self, decimals);
}

static Tensor& round_decimals_(Tensor& self, int64_t decimals) {
  if (decimals == 0) return rounded_<kernels::round>(self);
  return unary_<kernels::round_decimals, Promotion::Common>(self, decimals);
}

static Tensor logit(const Tensor& self, std::optional<double> eps) {
  return unary<kernels::logit, Promotion::Float>(self, eps.value_or(-1));
}

static Tensor& logit_(Tensor& self, std::optional<double> eps) {
  return unary_<kernels::logit, Promotion::Float>(self, eps.value_or(-1));
}

static Tensor logit_backward(const Tensor& grad, const Tensor& self, std::optional<double> eps) {
  return binary<kernels::logit_backward, Promotion::Common>(grad, self, eps.value_or(-1));
}

using Replacement = std::optional<double>;
static Tensor nan_to_num(const Tensor& self, Replacement nan, Replacement posinf, Replacement neginf) {
  if (is_integral(self.scalar_type(), true)) return ops::clone(self, std::nullopt);
  return unary<kernels::nan_to_num, Promotion::Common>(self, nan, posinf, neginf);
}

static Tensor& nan_to_num_(Tensor& self, Replacement nan, Replacement posinf, Replacement neginf) {
  if (is_integral(self.scalar_type(), true)) return self;
  return unary_<kernels::nan_to_num, Promotion::Common>(self, nan, posinf, neginf);
}

static Tensor polygamma(int64_t n, const Tensor& self) {
  RUSH_CHECK_VALUE(n >= 0, "polygamma: n must not be negative, got ", n);
  if (n == 0) return unary<kernels::digamma, Promotion::Float>(self);
  return unary<kernels::polygamma, Promotion::Float>(self, n);
}

}  // namespace native

void register_unary_ops(Registry& r) {
  using native::unary, native::unary_, native::binary, native::rounded, native::rounded_;
#define RUSH_REGISTER(name, promotion)                             \
  r.native(ops::name, unary<kernels::name, Promotion::promotion>); \
  r.native(ops::name##_, unary_<kernels::name, Promotion::promotion>);
#define RUSH_REGISTER_FLOAT(name) RUSH_REGISTER(name, Float)
#define RUSH_REGISTER_SAME(name) RUSH_REGISTER(name, Common)
#define RUSH_REGISTER_ROUNDING(name)           \
  r.native(ops::name, rounded<kernels::name>); \
  r.native(ops::name##_, rounded_<kernels::name>);
  RUSH_FORALL_FLOAT_UNARY(RUSH_REGISTER_FLOAT)
  RUSH_FORALL_SAME_UNARY(RUSH_REGISTER_SAME)
  RUSH_FORALL_ROUNDING(RUSH_REGISTER_ROUNDING)
  RUSH_REGISTER_ROUNDING(round)
  RUSH_REGISTER(logical_not, Compare)
#undef RUSH_REGISTER_ROUNDING
#undef RUSH_REGISTER_SAME
#undef RUSH_REGISTER_FLOAT
#undef RUSH_REGISTER
  r.native(ops::isfinite, (native::constant_or<kernels::isfinite, true>));
  r.native(ops::isinf, (native::constant_or<kernels::isinf, false>));
  r.native(ops::isnan, (native::constant_or<kernels::isnan, false>));
  r.native(ops::isneginf, (native::constant_or<kernels::isneginf, false>));
  r.native(ops::isposinf, (native::constant_or<kernels::isposinf, false>));
  r.native(ops::isreal, native::isreal);
  r.native(ops::signbit, unary<kernels::signbit, Promotion::Compare>);
  r.native(ops::abs, native::abs);
  r.native(ops::abs_, native::abs_);
  r.composite(ops::positive, native::positive);
  r.composite(ops::square, native::square);
  r.composite(ops::square_, native::square_);
  r.native(ops::round_decimals, native::round_decimals);
  r.native(ops::round_decimals_, native::round_decimals_);
  r.native(ops::logit, native::logit);
  r.native(ops::logit_, native::logit_);
  r.native(ops::logit_backward, native::logit_backward);
  r.native(ops::nan_to_num, native::nan_to_num);
  r.native(ops::nan_to_num_, native::nan_to_num_);
  r.native(ops::polygamma, native::polygamma);
  r.native(ops::sigmoid_backward, binary<kernels::sigmoid_backward, Promotion::Common>);
  r.native(ops::tanh_backward, binary<kernels::tanh_backward, Promotion::Common>);
}

#define RUSH_DEFINE_METHOD(name) \
  Tensor Tensor::name() const { return ops::name(*this); }
#define RUSH_DEFINE_METHODS(name) \
  RUSH_DEFINE_METHOD(name)        \
  Tensor& Tensor::name##_() const { return ops::name##_(self()); }
RUSH_FORALL_FLOAT_UNARY(RUSH_DEFINE_METHODS)
RUSH_FORALL_SAME_UNARY(RUSH_DEFINE_METHODS)
RUSH_FORALL_ROUNDING(RUSH_DEFINE_METHODS)
RUSH_FORALL_PREDICATES(RUSH_DEFINE_METHOD)
RUSH_DEFINE_METHODS(abs)
RUSH_DEFINE_METHODS(logical_not)
RUSH_DEFINE_METHODS(square)
#undef RUSH_DEFINE_METHODS
#undef RUSH_DEFINE_METHOD
Tensor Tensor::absolute() const { return ops::abs(*this); }
Tensor Tensor::positive() const { return ops::positive(*this); }
Tensor Tensor::round() const { return ops::round(*this); }
Tensor Tensor::round(int64_t decimals) const { return ops::round_decimals(*this, decimals); }
Tensor& Tensor::round_() const { return ops::round_(self()); }
Tensor& Tensor::round_(int64_t decimals) const { return ops::round_decimals_(self(), decimals); }
Tensor Tensor::logit(std::optional<double> eps) const { return ops::logit(*this, eps); }
Tensor& Tensor::logit_(std::optional<double> eps) const { return ops::logit_(self(), eps); }
Tensor Tensor::nan_to_num(std::optional<double> nan, std::optional<double> posinf, std::optional<double> neginf) const {
  return ops::nan_to_num(*this, nan, posinf, neginf);
}
Tensor& Tensor::nan_to_num_(std::optional<double> nan, std::optional<double> posinf,
                            std::optional<double> neginf) const {
  return ops::nan_to_num_(self(), nan, posinf, neginf);
}
Tensor Tensor::polygamma(int64_t n) const { return ops::polygamma(n, *this); }
Tensor& Tensor::polygamma_(int64_t n) const {
  RUSH_CHECK_TYPE(is_floating_point(), "polygamma_: the result is floating point, the tensor ", scalar_type());
  return copy_(ops::polygamma(n, *this));
}

}  // namespace rush
