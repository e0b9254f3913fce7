// The indices of rows of a table, which embedding and embedding_bag check alike.
#pragma once
#include "core/tensor.h"

namespace rush::native {

/// The argument `name` as int64 on `device`. Throws TypeError naming `op` unless it holds integers.
Tensor embedding_indices(const Tensor& indices, const char* name, Device device, const char* op);

}  // namespace rush::native
