// Tells whether a dense tensor's elements lie in memory of this process.
#pragma once
#include "core/tensor.h"

namespace rush::detail {

/// Those of a tensor on meta do not, nor those of a DTensor, which its local tensors have: their data_ptr() is null.
inline bool has_data(const Tensor& tensor) {
  return !tensor.is_meta() && (tensor.layout() != kStrided || tensor.numel() == 0 || tensor.storage()->data());
}

}  // namespace rush::detail
