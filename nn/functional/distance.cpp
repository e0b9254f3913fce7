#include "nn/functional/distance.h"

#include "core/ops/linalg/distance.h"
#include "core/ops/nn/norm.h"

namespace rush::nn::functional {

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, const CosineSimilarityFuncOptions& o) {
  return rush::cosine_similarity(x1, x2, o.dim(), o.eps());
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& o) {
  return rush::pairwise_distance(x1, x2, o.p(), o.eps(), o.keepdim());
}

Tensor pdist(const Tensor& input, double p) { return rush::pdist(input, p); }

}  // namespace rush::nn::functional
