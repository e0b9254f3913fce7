#pragma once
#include "core/tensor.h"
#include "nn/options/distance.h"

namespace rush::nn::functional {

/// x1 x2 / (max(|x1|, eps) max(|x2|, eps)), the vectors lying along a dimension.
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, const CosineSimilarityFuncOptions& options = {});
/// The p-norm of x1 - x2 + eps over the last dimension.
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& options = {});

/// The p-norms of the differences of all pairs of rows: (n, d) -> (n (n - 1) / 2).
Tensor pdist(const Tensor& input, double p = 2.0);

}  // namespace rush::nn::functional
