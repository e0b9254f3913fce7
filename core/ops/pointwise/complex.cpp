#include "core/ops/pointwise/complex.h"

#include "core/ops/pointwise/unary.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

static Tensor imag(const Tensor& self) {
  RUSH_CHECK_TYPE(self.is_complex(), "imag: expected a complex tensor, got ", self.scalar_type());
  return ops::view_as_real(self).select(-1, 1);
}

static Tensor conj(const Tensor& self) { return self.is_complex() ? ops::conj_physical(self) : self; }

static Tensor angle(const Tensor& self) {
  if (self.is_complex()) {
    auto it = TensorIterator::pointwise("angle", Tensor(), {&self}, Promotion::None, to_real(self.scalar_type()));
    kernels::angle(it.device_type(), it);
    return it.take_output();
  }
  return unary<kernels::angle, Promotion::Float>(self);
}

template <PointwiseKernel& kernel>
static Tensor make_complex(const Tensor& a, const Tensor& b) {
  const ScalarType type = a.scalar_type();
  RUSH_CHECK_TYPE(type == b.scalar_type() && (type == kFloat32 || type == kFloat64), kernel.name(),
                  ": expected two tensors of float32 or of float64, got ", type, " and ", b.scalar_type());
  auto it = TensorIterator::pointwise(kernel.name(), Tensor(), {&a, &b}, Promotion::None, to_complex(type));
  kernel(it.device_type(), it);
  return it.take_output();
}

}  // namespace native

void register_complex_ops(Registry& r) {
  r.composite(ops::imag, native::imag);
  r.composite(ops::conj, native::conj);
  r.composite(ops::_conj, native::conj);
  r.native(ops::angle, native::angle);
  r.native(ops::complex, native::make_complex<kernels::complex>);
  r.native(ops::polar, native::make_complex<kernels::polar>);
}

Tensor Tensor::conj() const { return ops::conj(*this); }
Tensor Tensor::angle() const { return ops::angle(*this); }

}  // namespace rush
