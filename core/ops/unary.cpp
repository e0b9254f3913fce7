#include "core/ops/unary.h"

#include "core/dispatch/registry.h"
#include "core/ops/register.h"

namespace rush {

void register_unary_ops(Registry& r) {
  using native::unary, native::unary_;
  r.native(ops::neg, unary<kernels::neg, Promotion::Common>);
  r.native(ops::neg_, unary_<kernels::neg, Promotion::Common>);
  r.native(ops::exp, unary<kernels::exp, Promotion::Float>);
  r.native(ops::exp_, unary_<kernels::exp, Promotion::Float>);
}

Tensor Tensor::neg() const { return ops::neg(*this); }
Tensor& Tensor::neg_() const { return ops::neg_(self()); }
Tensor Tensor::exp() const { return ops::exp(*this); }
Tensor& Tensor::exp_() const { return ops::exp_(self()); }

}  // namespace rush
