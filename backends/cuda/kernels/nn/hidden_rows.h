// Rows of attention that see no key.
#pragma once
#include "core/tensor.h"

namespace rush::cuda {

// Rows of out (B, H, L, V), of 16 bits and with dense rows, whose logsumexp (B, H, L) is -inf or NaN become zero, and
// their logsumexp inf: exp(score - inf) is zero, so a gradient that computes the weights again is zero there, too.
void clear_hidden_rows(const Tensor& out, const Tensor& logsumexp);

}  // namespace rush::cuda
