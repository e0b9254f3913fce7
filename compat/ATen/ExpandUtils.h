#pragma once
#include <vector>

#include "core/iterator/tensor_iterator.h"
#include "torch/types.h"

namespace at {
/// The sizes to which two tensors broadcast. Throws ValueError where they do not.
inline std::vector<int64_t> infer_size(IntArrayRef a, IntArrayRef b) {
  return IntArrayRef(rush::broadcast_shapes(a, b, "infer_size")).vec();
}
}  // namespace at
