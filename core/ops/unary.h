// Element-wise operators on one tensor: signs, powers, exponentials, rounding, trigonometry.
#pragma once
#include "core/ops/pointwise.h"

namespace rush {

using UnaryOp = Op<Tensor(const Tensor&)>;
using UnaryInplaceOp = Op<Tensor&(Tensor&)>;

namespace ops {
inline constinit UnaryOp neg{"aten::neg(Tensor self) -> Tensor"};
inline constinit UnaryInplaceOp neg_{"aten::neg_(Tensor(a!) self) -> Tensor(a!)"};
inline constinit UnaryOp exp{"aten::exp(Tensor self) -> Tensor"};
inline constinit UnaryInplaceOp exp_{"aten::exp_(Tensor(a!) self) -> Tensor(a!)"};
}  // namespace ops

// -self. Throws TypeError on bool.
inline Tensor neg(const Tensor& self) { return ops::neg(self); }
// e to the power of each element; integers give the default dtype.
inline Tensor exp(const Tensor& self) { return ops::exp(self); }

namespace kernels {
inline constinit PointwiseKernel neg{"neg"}, exp{"exp"};
}  // namespace kernels

}  // namespace rush
