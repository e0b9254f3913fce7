// Tells whether a dense tensor's elements lie in memory of this process.
#pragma once
#include "core/tensor.h"

namespace rush::detail {

/// Those of a tensor on meta do not, nor those of a DTensor, which its local tensors have: their data_ptr() is null.
inline bool has_data(const Tensor& tensor) {
  return !tensor.is_meta() && (tensor.layout() != kStrided || tensor.numel() == 0 || tensor.storage()->data());
}

/// Whether a file can hold it: of a sparse one the parts can be saved, not the tensor.
inline bool can_be_saved(const Tensor& tensor) {
  return tensor.defined() && tensor.layout() == kStrided && has_data(tensor);
}
/// What an error says of one that cannot.
inline constexpr const char* kCannotBeSaved =
    "' is undefined, sparse or has no data; the parts of a sparse tensor, such as indices() and values(), can be saved";

}  // namespace rush::detail
