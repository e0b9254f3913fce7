// Rows of attention whose keys are all hidden by the mask.
#pragma once
#include "core/tensor.h"

namespace rush::cuda {

// Sets each row of out (B, H, L, V) whose LSE (B, H, L) is -inf or NaN to zero, and its LSE to +inf: a backward pass
// that recomputes P = exp(S - LSE) then gets zero. out has 16 bits, and its last dimension has stride 1.
void clear_hidden_rows(const Tensor& out, const Tensor& logsumexp);

}  // namespace rush::cuda
