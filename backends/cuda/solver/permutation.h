#pragma once
#include "core/tensor.h"

namespace rush::cuda {

// kernels::pivots_to_permutation.
void permutation(const Tensor& order, const Tensor& pivots);

}  // namespace rush::cuda
