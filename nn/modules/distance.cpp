#include "nn/modules/distance.h"

#include "nn/functional/distance.h"
#include "nn/module_text.h"

namespace rush::nn {

Tensor CosineSimilarityImpl::forward(const Tensor& x1, const Tensor& x2) {
  const ModuleScope scope(*this);
  return functional::cosine_similarity(x1, x2, options);
}
void CosineSimilarityImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("CosineSimilarity(dim=", options.dim(), ", eps=", options.eps(), ")");
}

Tensor PairwiseDistanceImpl::forward(const Tensor& x1, const Tensor& x2) {
  const ModuleScope scope(*this);
  return functional::pairwise_distance(x1, x2, options);
}
void PairwiseDistanceImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("PairwiseDistance(p=", options.p(), ", eps=", options.eps(),
                                ", keepdim=", options.keepdim(), ")");
}

}  // namespace rush::nn
