#include "core/ops/pointwise/compare.h"

#include <algorithm>

#include "core/ops/basic.h"
#include "core/ops/register.h"
#include "core/ops/view/view.h"

namespace rush {

namespace native {

// eq and ne. Numbers without arithmetic can be told equal: unsigned ones as signed ones of their size, 8-bit floats as
// float32.
template <auto& kernel>
static Tensor equality(const Tensor& self, const Tensor& other) {
  constexpr auto binary = native::binary<kernel, Promotion::Compare>;
  if (has_arithmetic(self.scalar_type()) && has_arithmetic(other.scalar_type())) return binary(self, other);
  const ScalarType type = result_type({self, other});
  const auto comparable = [type](const Tensor& operand) {
    const Tensor value = as_dtype(operand, type);
    return is_floating_point(type) && !has_arithmetic(type) ? to_dtype(value, kFloat32)
                                                            : seen_as(value, moved_as(type));
  };
  return binary(comparable(self), comparable(other));
}

static Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  RUSH_CHECK_TYPE(self.scalar_type() == other.scalar_type(), "isclose: cannot compare ", self.scalar_type(), " with ",
                  other.scalar_type());
  RUSH_CHECK_VALUE(rtol >= 0 && atol >= 0, "isclose: tolerances must not be negative, got rtol ", rtol, " and atol ",
                   atol);
  Tensor close = self == other;
  if (equal_nan && rush::is_differentiable(self.scalar_type())) close = close | (self.isnan() & other.isnan());
  if (rtol == 0 && atol == 0) return close;
  // Integers are compared as floating point numbers: their difference could overflow.
  const bool integers = is_integral(self.scalar_type(), true);
  const Tensor a = integers ? self.to(get_default_dtype()) : self;
  const Tensor b = integers ? other.to(get_default_dtype()) : other;
  const Tensor allowed = (b * rtol).abs() + atol;
  const Tensor actual = (a - b).abs();
  return close | (actual.isfinite() & (actual <= allowed));
}

static bool all_true(const Tensor& self, const char* op) {
  RUSH_CHECK_NOT_IMPLEMENTED(!self.is_meta(), op, ": a meta tensor has no values to compare");
  bool result = true;
  kernels::all_true(self.device().type, self, result);
  return result;
}

static bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return all_true(native::contiguous(native::isclose(self, other, rtol, atol, equal_nan)), "allclose");
}

// Elements of the first chunk: comparing it takes about a microsecond.
static constexpr int64_t kFirstCompared = 4096;

static bool equal(const Tensor& self, const Tensor& other) {
  if (!(self.sizes() == other.sizes())) return false;
  const auto same = [](const Tensor& a, const Tensor& b) {
    return all_true(native::contiguous(equality<kernels::eq>(a, b)), "equal");
  };
  if (!self.is_cpu() || self.numel() == 0 || self.dim() == 0) return same(self, other);
  // On a CPU a difference near the beginning ends it: the largest dimension is compared in ever longer chunks.
  const int64_t dim = std::max_element(self.sizes().begin(), self.sizes().end()) - self.sizes().begin();
  const int64_t size = self.sizes()[dim];
  int64_t length = std::max<int64_t>(1, kFirstCompared / (self.numel() / size));
  for (int64_t start = 0; start < size; start += length, length *= 8) {
    length = std::min(length, size - start);
    if (!same(part(self, dim, start, length), part(other, dim, start, length))) return false;
  }
  return true;
}

}  // namespace native

void register_compare_ops(Registry& r) {
  using native::binary, native::binary_, native::with_scalar, native::with_scalar_;
  native::register_compare_fronts(r);
#define RUSH_REGISTER(name)                                           \
  r.native(ops::name##_, binary_<kernels::name, Promotion::Compare>); \
  r.composite(ops::name##_Scalar, with_scalar<ops::name>);            \
  r.composite(ops::name##_Scalar_, with_scalar_<ops::name##_>);
  RUSH_FORALL_COMPARISONS(RUSH_REGISTER)
#undef RUSH_REGISTER
  r.native(ops::eq, native::equality<kernels::eq>);
  r.native(ops::ne, native::equality<kernels::ne>);
  r.native(ops::ge, binary<kernels::ge, Promotion::Compare>);
  r.native(ops::gt, binary<kernels::gt, Promotion::Compare>);
  r.native(ops::le, binary<kernels::le, Promotion::Compare>);
  r.native(ops::lt, binary<kernels::lt, Promotion::Compare>);
  r.native(ops::isclose, native::isclose);
  r.native(ops::allclose, native::allclose);
  r.native(ops::equal, native::equal);
}

RUSH_FORALL_COMPARISONS(RUSH_BINARY_AND_SCALAR_METHODS)
Tensor Tensor::fmax(const Tensor& other) const { return ops::fmax(*this, other); }
Tensor Tensor::fmin(const Tensor& other) const { return ops::fmin(*this, other); }
Tensor Tensor::maximum(const Tensor& other) const { return ops::maximum(*this, other); }
Tensor Tensor::minimum(const Tensor& other) const { return ops::minimum(*this, other); }
Tensor Tensor::max(const Tensor& other) const { return ops::maximum(*this, other); }
Tensor Tensor::min(const Tensor& other) const { return ops::minimum(*this, other); }
Tensor Tensor::isclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return ops::isclose(*this, other, rtol, atol, equal_nan);
}
bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return ops::allclose(*this, other, rtol, atol, equal_nan);
}
bool Tensor::equal(const Tensor& other) const { return ops::equal(*this, other); }

}  // namespace rush
