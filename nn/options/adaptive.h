#pragma once
#include <cstdint>
#include <vector>

#include "nn/arg.h"

namespace rush::nn {

/// Classes before the first cutoff are part of the head; from each cutoff to the next, a cluster.
struct AdaptiveLogSoftmaxWithLossOptions {
  AdaptiveLogSoftmaxWithLossOptions(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(std::move(cutoffs)) {}
  RUSH_ARG(int64_t, in_features);
  RUSH_ARG(int64_t, n_classes);
  // Where the clusters of rarer classes begin, in increasing order.
  RUSH_ARG(std::vector<int64_t>, cutoffs);
  // How many times fewer features each cluster has than the one before.
  RUSH_ARG(double, div_value) = 4.0;
  RUSH_ARG(bool, head_bias) = false;
};

}  // namespace rush::nn
