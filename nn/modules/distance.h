// CosineSimilarity and PairwiseDistance.
#pragma once
#include "nn/modules/options_module.h"
#include "nn/options/distance.h"

namespace rush::nn {

// torch.nn.CosineSimilarity, PairwiseDistance: forward(x1, x2) is the function of nn::functional.
RUSH_OPTIONS_MODULE_WITH(CosineSimilarity, Tensor forward(const Tensor& x1, const Tensor& x2);)
RUSH_OPTIONS_MODULE_WITH(PairwiseDistance, Tensor forward(const Tensor& x1, const Tensor& x2);)

}  // namespace rush::nn
