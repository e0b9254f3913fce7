// The two halves of vector_norm, which take a while to compile.
#pragma once
#include "core/tensor.h"

namespace rush::cuda {

// Orders 1, 2 and infinity, and all others.
void common_vector_norm(const Tensor& output, const Tensor& input, IntArrayRef dims, double ord);
void rare_vector_norm(const Tensor& output, const Tensor& input, IntArrayRef dims, double ord);

}  // namespace rush::cuda
