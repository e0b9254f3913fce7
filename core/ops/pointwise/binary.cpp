#include "core/ops/pointwise/binary.h"

#include "core/ops/pointwise/sum_check.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

static Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  auto it = TensorIterator::pointwise("add", Tensor(), {&self, &other}, Promotion::Common);
  check_factor("add", "alpha", it.common_dtype(), alpha);
  kernels::add(it.device_type(), it, alpha);
  return it.take_output();
}

static Tensor& add_(Tensor& self, const Tensor& other, const Scalar& alpha) {
  auto it = TensorIterator::pointwise("add_", self, {&self, &other}, Promotion::Common);
  check_factor("add_", "alpha", it.common_dtype(), alpha);
  kernels::add(it.device_type(), it, alpha);
  it.finish();
  return self;
}

static Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_sub(self, other);
  auto it = TensorIterator::pointwise("sub", Tensor(), {&self, &other}, Promotion::Common);
  check_factor("sub", "alpha", it.common_dtype(), alpha);
  kernels::add(it.device_type(), it, -alpha);
  return it.take_output();
}

static Tensor& sub_(Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_sub(self, other);
  auto it = TensorIterator::pointwise("sub_", self, {&self, &other}, Promotion::Common);
  check_factor("sub_", "alpha", it.common_dtype(), alpha);
  kernels::add(it.device_type(), it, -alpha);
  it.finish();
  return self;
}

static Tensor rsub(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return ops::sub(other, self, alpha);
}

static Tensor div_mode(const Tensor& self, const Tensor& other, std::optional<std::string_view> mode) {
  if (!mode) return binary<kernels::div, Promotion::Float>(self, other);
  if (*mode == "trunc") return binary<kernels::div_trunc, Promotion::Common>(self, other);
  RUSH_CHECK_VALUE(*mode == "floor", "div: rounding_mode must be none, \"trunc\" or \"floor\", got \"", *mode, "\"");
  return binary<kernels::div_floor, Promotion::Common>(self, other);
}

static Tensor& div_mode_(Tensor& self, const Tensor& other, std::optional<std::string_view> mode) {
  if (!mode) return binary_<kernels::div, Promotion::Float>(self, other);
  if (*mode == "trunc") return binary_<kernels::div_trunc, Promotion::Common>(self, other);
  RUSH_CHECK_VALUE(*mode == "floor", "div_: rounding_mode must be none, \"trunc\" or \"floor\", got \"", *mode, "\"");
  return binary_<kernels::div_floor, Promotion::Common>(self, other);
}

using detail::wrapped_number;
static Tensor add_Scalar(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return ops::add(self, wrapped_number(other, self), alpha);
}
static Tensor sub_Scalar(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return ops::sub(self, wrapped_number(other, self), alpha);
}
static Tensor rsub_Scalar(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return ops::sub(wrapped_number(other, self), self, alpha);
}
static Tensor div_Scalar_mode(const Tensor& self, const Scalar& other, std::optional<std::string_view> mode) {
  return ops::div_mode(self, wrapped_number(other, self), mode);
}

}  // namespace native

void register_binary_ops(Registry& r) {
  native::register_binary_fronts(r);
  r.native(ops::add, native::add);
  r.native(ops::add_, native::add_);
  r.native(ops::sub, native::sub);
  r.native(ops::sub_, native::sub_);
  r.native(ops::div_mode, native::div_mode);
  r.native(ops::div_mode_, native::div_mode_);
  r.composite(ops::rsub, native::rsub);
  r.composite(ops::add_Scalar, native::add_Scalar);
  r.composite(ops::sub_Scalar, native::sub_Scalar);
  r.composite(ops::rsub_Scalar, native::rsub_Scalar);
  r.composite(ops::div_Scalar_mode, native::div_Scalar_mode);
}

using detail::wrapped_number;
Tensor Tensor::add(const Tensor& other, const Scalar& alpha) const { return ops::add(*this, other, alpha); }
Tensor Tensor::add(const Scalar& other, const Scalar& alpha) const {
  return ops::add(*this, wrapped_number(other, *this), alpha);
}
Tensor& Tensor::add_(const Tensor& other, const Scalar& alpha) const { return ops::add_(self(), other, alpha); }
Tensor& Tensor::add_(const Scalar& other, const Scalar& alpha) const {
  return ops::add_(self(), wrapped_number(other, *this), alpha);
}
Tensor Tensor::sub(const Tensor& other, const Scalar& alpha) const { return ops::sub(*this, other, alpha); }
Tensor Tensor::sub(const Scalar& other, const Scalar& alpha) const {
  return ops::sub(*this, wrapped_number(other, *this), alpha);
}
Tensor& Tensor::sub_(const Tensor& other, const Scalar& alpha) const { return ops::sub_(self(), other, alpha); }
Tensor& Tensor::sub_(const Scalar& other, const Scalar& alpha) const {
  return ops::sub_(self(), wrapped_number(other, *this), alpha);
}
Tensor Tensor::mul(const Tensor& other) const { return ops::mul(*this, other); }
Tensor Tensor::mul(const Scalar& other) const { return ops::mul(*this, wrapped_number(other, *this)); }
Tensor& Tensor::mul_(const Tensor& other) const { return ops::mul_(self(), other); }
Tensor& Tensor::mul_(const Scalar& other) const { return ops::mul_(self(), wrapped_number(other, *this)); }
Tensor Tensor::div(const Tensor& other) const { return ops::div(*this, other); }
Tensor Tensor::div(const Scalar& other) const { return ops::div(*this, wrapped_number(other, *this)); }
Tensor& Tensor::div_(const Tensor& other) const { return ops::div_(self(), other); }
Tensor& Tensor::div_(const Scalar& other) const { return ops::div_(self(), wrapped_number(other, *this)); }

Tensor Tensor::div(const Tensor& other, std::optional<std::string_view> mode) const {
  return ops::div_mode(*this, other, mode);
}
Tensor Tensor::div(const Scalar& other, std::optional<std::string_view> mode) const {
  return ops::div_mode(*this, wrapped_number(other, *this), mode);
}
Tensor& Tensor::div_(const Tensor& other, std::optional<std::string_view> mode) const {
  return ops::div_mode_(self(), other, mode);
}
Tensor& Tensor::div_(const Scalar& other, std::optional<std::string_view> mode) const {
  return ops::div_mode_(self(), wrapped_number(other, *this), mode);
}
#define RUSH_DEFINE_METHODS(name, op)                                              \
  Tensor Tensor::name(const Tensor& other) const { return ops::op(*this, other); } \
  Tensor Tensor::name(const Scalar& other) const { return ops::op(*this, wrapped_number(other, *this)); }
#define RUSH_DEFINE_INPLACE_METHODS(name, op)                                        \
  Tensor& Tensor::name(const Tensor& other) const { return ops::op(self(), other); } \
  Tensor& Tensor::name(const Scalar& other) const { return ops::op(self(), wrapped_number(other, *this)); }
RUSH_DEFINE_METHODS(true_divide, div)
RUSH_DEFINE_INPLACE_METHODS(true_divide_, div_)
RUSH_DEFINE_METHODS(divide, div)
RUSH_DEFINE_METHODS(multiply, mul)
RUSH_DEFINE_METHODS(floor_divide, floor_divide)
RUSH_DEFINE_INPLACE_METHODS(floor_divide_, floor_divide_)
RUSH_DEFINE_METHODS(fmod, fmod)
RUSH_DEFINE_INPLACE_METHODS(fmod_, fmod_)
RUSH_DEFINE_METHODS(remainder, remainder)
RUSH_DEFINE_INPLACE_METHODS(remainder_, remainder_)
#undef RUSH_DEFINE_INPLACE_METHODS
#undef RUSH_DEFINE_METHODS
Tensor Tensor::subtract(const Tensor& other, const Scalar& alpha) const { return ops::sub(*this, other, alpha); }
Tensor Tensor::subtract(const Scalar& other, const Scalar& alpha) const {
  return ops::sub(*this, wrapped_number(other, *this), alpha);
}

}  // namespace rush
