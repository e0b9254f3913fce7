// A number that is read from a tensor.
#pragma once
#include "core/dispatch/op.h"
#include "core/scalar.h"

namespace rush::ops {
inline constinit Op<Scalar(const Tensor&)> _local_scalar_dense{"aten::_local_scalar_dense(Tensor self) -> Scalar"};
}  // namespace rush::ops
