#include "core/ops/pointwise/ternary.h"

#include "core/iterator/output_checks.h"
#include "core/ops/basic.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

using detail::wrapped_number;

static Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  RUSH_CHECK_TYPE(condition.scalar_type() == kBool || condition.scalar_type() == kUInt8,
                  "where: expected a condition of bool, got ", condition.scalar_type());
  const ScalarType type = result_type(self, other);
  const Tensor test = as_dtype(condition, kBool);
  const ScalarType moved = moved_as(type);
  const Tensor a = seen_as(as_dtype(self, type), moved);
  const Tensor b = seen_as(as_dtype(other, type), moved);
  auto it = TensorIterator::pointwise("where", Tensor(), {&test, &a, &b}, Promotion::None, moved);
  kernels::where(it.device_type(), it);
  return seen_as(it.take_output(), type);
}

static Tensor where_ScalarSelf(const Tensor& condition, const Scalar& self, const Tensor& other) {
  return ops::where(condition, wrapped_number(self, other), other);
}
static Tensor where_ScalarOther(const Tensor& condition, const Tensor& self, const Scalar& other) {
  return ops::where(condition, self, wrapped_number(other, self));
}
static Tensor where_Scalar(const Tensor& condition, const Scalar& self, const Scalar& other) {
  return ops::where(condition, wrapped_number(self), wrapped_number(other));
}

template <auto& kernel, class... Rest>
static Tensor ternary(const Tensor& a, const Tensor& b, const Tensor& c, Rest... rest) {
  auto it = TensorIterator::pointwise(kernel.name(), Tensor(), {&a, &b, &c}, Promotion::Common);
  kernel(it.device_type(), it, rest...);
  return it.take_output();
}
template <auto& kernel, class... Rest>
static Tensor& ternary_(Tensor& a, const Tensor& b, const Tensor& c, Rest... rest) {
  auto it = TensorIterator::pointwise(kernel.name(), a, {&a, &b, &c}, Promotion::Common);
  kernel(it.device_type(), it, rest...);
  it.finish();
  return a;
}

static void check_lerp(const Tensor& self, const Tensor& end, const Tensor* weight) {
  RUSH_CHECK_TYPE(self.scalar_type() == end.scalar_type(), "lerp: expected an end of dtype ", self.scalar_type(),
                  ", got ", end.scalar_type());
  // A single weight may be of any dtype.
  RUSH_CHECK_TYPE(!weight || weight->dim() == 0 || self.scalar_type() == weight->scalar_type(),
                  "lerp: expected a weight of dtype ", self.scalar_type(), ", got ", weight->scalar_type());
}
static Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight) {
  check_lerp(self, end, &weight);
  return ternary<kernels::lerp>(self, end, weight);
}
static Tensor& lerp_(Tensor& self, const Tensor& end, const Tensor& weight) {
  check_lerp(self, end, &weight);
  return ternary_<kernels::lerp>(self, end, weight);
}
static Tensor lerp_scalar(const Tensor& self, const Tensor& end, const Scalar& weight) {
  check_lerp(self, end, nullptr);
  return binary<kernels::lerp_scalar, Promotion::Common, const Scalar&>(self, end, weight);
}
static Tensor& lerp_scalar_(Tensor& self, const Tensor& end, const Scalar& weight) {
  check_lerp(self, end, nullptr);
  return binary_<kernels::lerp_scalar, Promotion::Common, const Scalar&>(self, end, weight);
}

static void check_addcdiv(const Tensor& self, const Tensor& a, const Tensor& b) {
  const bool integers =
      is_integral(self.scalar_type(), true) && is_integral(a.scalar_type(), true) && is_integral(b.scalar_type(), true);
  RUSH_CHECK_TYPE(!integers, "addcdiv: integers are not divided; convert them to a floating point dtype");
}
static Tensor addcdiv(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
  check_addcdiv(self, a, b);
  return ternary<kernels::addcdiv, const Scalar&>(self, a, b, value);
}
static Tensor& addcdiv_(Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
  check_addcdiv(self, a, b);
  return ternary_<kernels::addcdiv, const Scalar&>(self, a, b, value);
}

// ---- clamp ----
static void check_clamp(const Tensor& self, bool bounded) {
  RUSH_CHECK_VALUE(bounded, "clamp: expected min, max or both");
  RUSH_CHECK_TYPE(!self.is_complex(), "clamp: complex numbers have no order");
}

static bool is_nan(const OptionalScalar& bound) { return bound && bound->toDouble() != bound->toDouble(); }

// A bound of a higher category than the tensor raises the result's dtype.
static ScalarType clamp_type(const Tensor& self, const OptionalScalar& min, const OptionalScalar& max) {
  const ScalarType low = min ? result_type(self, *min) : self.scalar_type();
  const ScalarType high = max ? result_type(self, *max) : self.scalar_type();
  return promote_types(low, high);
}

static Tensor clamp(const Tensor& self, const OptionalScalar& min, const OptionalScalar& max) {
  check_clamp(self, min || max);
  const ScalarType type = clamp_type(self, min, max);
  const Tensor input = as_dtype(self, type);
  if (is_nan(min) || is_nan(max)) return full_like(input, is_nan(min) ? *min : *max);
  auto it = TensorIterator::pointwise("clamp", Tensor(), {&input}, Promotion::None);
  kernels::clamp_scalar(it.device_type(), it, min, max);
  return it.take_output();
}

static Tensor& clamp_(Tensor& self, const OptionalScalar& min, const OptionalScalar& max) {
  check_clamp(self, min || max);
  const ScalarType type = clamp_type(self, min, max);
  check_result_type("clamp_", type, self.scalar_type());
  if (self.scalar_type() != type || is_nan(min) || is_nan(max))
    return copy_(self, native::clamp(self, min, max), false);
  auto it = TensorIterator::pointwise("clamp_", self, {&self}, Promotion::None);
  kernels::clamp_scalar(it.device_type(), it, min, max);
  return self;
}

static Tensor clamp_Tensor(const Tensor& self, const OptionalTensor& min, const OptionalTensor& max) {
  check_clamp(self, min || max);
  if (!max) return binary<kernels::maximum, Promotion::Common>(self, *min);
  if (!min) return binary<kernels::minimum, Promotion::Common>(self, *max);
  return ternary<kernels::clamp>(self, *min, *max);
}

static Tensor& clamp_Tensor_(Tensor& self, const OptionalTensor& min, const OptionalTensor& max) {
  check_clamp(self, min || max);
  if (!max) return binary_<kernels::maximum, Promotion::Common>(self, *min);
  if (!min) return binary_<kernels::minimum, Promotion::Common>(self, *max);
  return ternary_<kernels::clamp>(self, *min, *max);
}

// A clamp with one bound, a number or a tensor, in place or not.
template <auto& clamp, class R, class Self, class Bound>
static R at_least(Self self, Bound min) {
  return clamp(self, min, std::nullopt);
}
template <auto& clamp, class R, class Self, class Bound>
static R at_most(Self self, Bound max) {
  return clamp(self, std::nullopt, max);
}

}  // namespace native

void register_ternary_ops(Registry& r) {
  using native::at_least, native::at_most, native::ternary, native::ternary_;
  r.native(ops::where, native::where);
  r.composite(ops::where_ScalarSelf, native::where_ScalarSelf);
  r.composite(ops::where_ScalarOther, native::where_ScalarOther);
  r.composite(ops::where_Scalar, native::where_Scalar);
  r.native(ops::addcmul, ternary<kernels::addcmul, const Scalar&>);
  r.native(ops::addcmul_, ternary_<kernels::addcmul, const Scalar&>);
  r.native(ops::addcdiv, native::addcdiv);
  r.native(ops::addcdiv_, native::addcdiv_);
  r.native(ops::lerp, native::lerp);
  r.native(ops::lerp_, native::lerp_);
  r.native(ops::lerp_scalar, native::lerp_scalar);
  r.native(ops::lerp_scalar_, native::lerp_scalar_);
  r.native(ops::clamp, native::clamp);
  r.native(ops::clamp_, native::clamp_);
  r.native(ops::clamp_Tensor, native::clamp_Tensor);
  r.native(ops::clamp_Tensor_, native::clamp_Tensor_);
  r.composite(ops::clamp_min, at_least<ops::clamp>);
  r.composite(ops::clamp_max, at_most<ops::clamp>);
  r.composite(ops::clamp_min_, at_least<ops::clamp_>);
  r.composite(ops::clamp_max_, at_most<ops::clamp_>);
  r.composite(ops::clamp_min_Tensor, at_least<ops::clamp_Tensor>);
  r.composite(ops::clamp_max_Tensor, at_most<ops::clamp_Tensor>);
  r.composite(ops::clamp_min_Tensor_, at_least<ops::clamp_Tensor_>);
  r.composite(ops::clamp_max_Tensor_, at_most<ops::clamp_Tensor_>);
}

Tensor Tensor::addcmul(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const {
  return ops::addcmul(*this, tensor1, tensor2, value);
}
Tensor& Tensor::addcmul_(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const {
  return ops::addcmul_(self(), tensor1, tensor2, value);
}
Tensor Tensor::addcdiv(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const {
  return ops::addcdiv(*this, tensor1, tensor2, value);
}
Tensor& Tensor::addcdiv_(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const {
  return ops::addcdiv_(self(), tensor1, tensor2, value);
}
Tensor Tensor::lerp(const Tensor& end, const Tensor& weight) const { return ops::lerp(*this, end, weight); }
Tensor Tensor::lerp(const Tensor& end, const Scalar& weight) const { return ops::lerp_scalar(*this, end, weight); }
Tensor& Tensor::lerp_(const Tensor& end, const Tensor& weight) const { return ops::lerp_(self(), end, weight); }
Tensor& Tensor::lerp_(const Tensor& end, const Scalar& weight) const { return ops::lerp_scalar_(self(), end, weight); }
Tensor Tensor::where(const Tensor& condition, const Tensor& other) const { return ops::where(condition, *this, other); }
Tensor Tensor::where(const Tensor& condition, const Scalar& other) const {
  return ops::where_ScalarOther(condition, *this, other);
}
Tensor Tensor::clamp(const std::optional<Scalar>& min, const std::optional<Scalar>& max) const {
  return ops::clamp(*this, min, max);
}
Tensor Tensor::clamp(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const {
  return ops::clamp_Tensor(*this, min, max);
}
Tensor& Tensor::clamp_(const std::optional<Scalar>& min, const std::optional<Scalar>& max) const {
  return ops::clamp_(self(), min, max);
}
Tensor& Tensor::clamp_(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const {
  return ops::clamp_Tensor_(self(), min, max);
}
Tensor Tensor::clip(const std::optional<Scalar>& min, const std::optional<Scalar>& max) const {
  return ops::clamp(*this, min, max);
}
Tensor Tensor::clamp_min(const Scalar& min) const { return ops::clamp(*this, min, std::nullopt); }
Tensor Tensor::clamp_min(const Tensor& min) const { return ops::clamp_Tensor(*this, min, std::nullopt); }
Tensor& Tensor::clamp_min_(const Scalar& min) const { return ops::clamp_(self(), min, std::nullopt); }
Tensor& Tensor::clamp_min_(const Tensor& min) const { return ops::clamp_Tensor_(self(), min, std::nullopt); }
Tensor Tensor::clamp_max(const Scalar& max) const { return ops::clamp(*this, std::nullopt, max); }
Tensor Tensor::clamp_max(const Tensor& max) const { return ops::clamp_Tensor(*this, std::nullopt, max); }
Tensor& Tensor::clamp_max_(const Scalar& max) const { return ops::clamp_(self(), std::nullopt, max); }
Tensor& Tensor::clamp_max_(const Tensor& max) const { return ops::clamp_Tensor_(self(), std::nullopt, max); }

}  // namespace rush
