// What all loss functions do with the losses of their elements.
#pragma once
#include "core/ops/nn/loss.h"

namespace rush::detail {

// Throws ValueError naming `op` unless `reduction` is one of Reduction's.
void check_reduction(const char* op, int64_t reduction);
// The losses themselves, their mean or their sum.
Tensor reduce_loss(const Tensor& loss, int64_t reduction);

}  // namespace rush::detail
