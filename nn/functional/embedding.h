#pragma once
#include "nn/options/embedding.h"

namespace rush::nn::functional {

// Rows of `weight`: (...), (V, D) -> (..., D).
Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& options = {});
// A dimension of size num_classes with a one where the class number says; by default as many classes as there are.
Tensor one_hot(const Tensor& tensor, int64_t num_classes = -1);

}  // namespace rush::nn::functional
