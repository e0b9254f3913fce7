// Says what a tensor's memory is for: Note [What memory is for].
#pragma once
#include "core/tensor.h"

namespace rush::detail {

inline void claim_memory(const Tensor& tensor, MemoryUse use) {
  if (tensor.has_storage()) tensor.impl()->storage()->claim(use);
}

}  // namespace rush::detail
