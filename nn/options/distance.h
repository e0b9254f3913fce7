#pragma once
#include <cstdint>

#include "nn/arg.h"

namespace rush::nn {

/// dim: that of the vectors. A norm counts as eps at least.
struct CosineSimilarityOptions {
  RUSH_ARG(int64_t, dim) = 1;
  RUSH_ARG(double, eps) = 1e-8;
};

/// The p of the norm; eps is added to every difference. keepdim: the last dimension stays, with size 1.
struct PairwiseDistanceOptions {
  RUSH_ARG(double, p) = 2.0;
  RUSH_ARG(double, eps) = 1e-6;
  RUSH_ARG(bool, keepdim) = false;
};

namespace functional {
using CosineSimilarityFuncOptions = CosineSimilarityOptions;
using PairwiseDistanceFuncOptions = PairwiseDistanceOptions;
}  // namespace functional

}  // namespace rush::nn
