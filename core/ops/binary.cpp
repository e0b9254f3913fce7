#include "core/ops/binary.h"

#include "core/dispatch/registry.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

static Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  auto it = TensorIterator::pointwise("add", Tensor(), {&self, &other}, Promotion::Common);
  kernels::add(it.device_type(), it, alpha);
  return it.take_output();
}

static Tensor& add_(Tensor& self, const Tensor& other, const Scalar& alpha) {
  auto it = TensorIterator::pointwise("add_", self, {&self, &other}, Promotion::Common);
  kernels::add(it.device_type(), it, alpha);
  it.finish();
  return self;
}

static void check_sub(const Tensor& self, const Tensor& other) {
  RUSH_CHECK_TYPE(self.scalar_type() != kBool && other.scalar_type() != kBool,
                  "sub: bool has no subtraction; use logical_xor or logical_not");
}

static Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_sub(self, other);
  return native::add(self, other, -alpha);
}

static Tensor& sub_(Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_sub(self, other);
  return native::add_(self, other, -alpha);
}

}  // namespace native

void register_binary_ops(Registry& r) {
  using native::binary, native::binary_;
  r.native(ops::add, native::add);
  r.native(ops::add_, native::add_);
  r.native(ops::sub, native::sub);
  r.native(ops::sub_, native::sub_);
  r.native(ops::mul, binary<kernels::mul, Promotion::Common>);
  r.native(ops::mul_, binary_<kernels::mul, Promotion::Common>);
  r.native(ops::div, binary<kernels::div, Promotion::Float>);
  r.native(ops::div_, binary_<kernels::div, Promotion::Float>);
}

using detail::wrapped_number;
Tensor Tensor::add(const Tensor& other, const Scalar& alpha) const { return ops::add(*this, other, alpha); }
Tensor Tensor::add(const Scalar& other, const Scalar& alpha) const {
  return ops::add(*this, wrapped_number(other), alpha);
}
Tensor& Tensor::add_(const Tensor& other, const Scalar& alpha) const { return ops::add_(self(), other, alpha); }
Tensor& Tensor::add_(const Scalar& other, const Scalar& alpha) const {
  return ops::add_(self(), wrapped_number(other), alpha);
}
Tensor Tensor::sub(const Tensor& other, const Scalar& alpha) const { return ops::sub(*this, other, alpha); }
Tensor Tensor::sub(const Scalar& other, const Scalar& alpha) const {
  return ops::sub(*this, wrapped_number(other), alpha);
}
Tensor& Tensor::sub_(const Tensor& other, const Scalar& alpha) const { return ops::sub_(self(), other, alpha); }
Tensor& Tensor::sub_(const Scalar& other, const Scalar& alpha) const {
  return ops::sub_(self(), wrapped_number(other), alpha);
}
Tensor Tensor::mul(const Tensor& other) const { return ops::mul(*this, other); }
Tensor Tensor::mul(const Scalar& other) const { return ops::mul(*this, wrapped_number(other)); }
Tensor& Tensor::mul_(const Tensor& other) const { return ops::mul_(self(), other); }
Tensor& Tensor::mul_(const Scalar& other) const { return ops::mul_(self(), wrapped_number(other)); }
Tensor Tensor::div(const Tensor& other) const { return ops::div(*this, other); }
Tensor Tensor::div(const Scalar& other) const { return ops::div(*this, wrapped_number(other)); }
Tensor& Tensor::div_(const Tensor& other) const { return ops::div_(self(), other); }
Tensor& Tensor::div_(const Scalar& other) const { return ops::div_(self(), wrapped_number(other)); }

}  // namespace rush
