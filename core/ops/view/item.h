// A number that is read from a tensor.
#pragma once
#include "core/dispatch/op.h"
#include "core/error/source_location.h"
#include "core/scalar.h"

namespace rush::ops {
inline constinit Op<Scalar(const Tensor&)> _local_scalar_dense{"aten::_local_scalar_dense(Tensor self) -> Scalar"};
}  // namespace rush::ops

namespace rush::detail {
// Where this thread's last call of Tensor::item stands: traces that end there name it.
inline thread_local constinit SourceLocation item_read_at;
}  // namespace rush::detail
