// CosineSimilarity and PairwiseDistance.
#pragma once
#include "nn/cloneable.h"
#include "nn/options/distance.h"

namespace rush::nn {

// torch.nn.CosineSimilarity, PairwiseDistance: forward(x1, x2) is the function of nn::functional.
#define RUSH_DISTANCE_MODULE(Name)                                               \
  class Name##Impl : public Cloneable<Name##Impl> {                              \
   public:                                                                       \
    explicit Name##Impl(const Name##Options& options = {}) : options(options) {} \
    void reset() override {}                                                     \
    void pretty_print(std::ostream& stream) const override;                      \
    Tensor forward(const Tensor& x1, const Tensor& x2);                          \
                                                                                 \
    Name##Options options;                                                       \
  };                                                                             \
  RUSH_MODULE(Name)
RUSH_DISTANCE_MODULE(CosineSimilarity);
RUSH_DISTANCE_MODULE(PairwiseDistance);
#undef RUSH_DISTANCE_MODULE

}  // namespace rush::nn
