#pragma once
#include <cstdint>

#include "nn/arg.h"

namespace rush::nn {

struct CosineSimilarityOptions {
  RUSH_ARG(int64_t, dim) = 1;
  RUSH_ARG(double, eps) = 1e-8;
};

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
