#pragma once
#include "nn/options/embedding.h"

namespace rush::nn::functional {

/// Rows of `weight`: (...), (V, D) -> (..., D).
Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& options = {});
/// Sum, mean or maximum of the rows of `weight` in each bag of indices: bags (B, n), or indices of one dimension with
/// the offsets where bags begin (B), and (V, D) -> (B, D). Throws ValueError on other shapes.
Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& options = {});
/// A dimension of size num_classes with a one where the class number says; by default as many classes as there are.
Tensor one_hot(const Tensor& tensor, int64_t num_classes = -1);

}  // namespace rush::nn::functional
