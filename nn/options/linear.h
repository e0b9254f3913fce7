#pragma once
#include <cstdint>
#include <vector>

#include "nn/arg.h"

namespace rush::nn {

/// The size of the last dimension before and after, and whether a bias is added.
struct LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features) : in_features_(in_features), out_features_(out_features) {}
  RUSH_ARG(int64_t, in_features);
  RUSH_ARG(int64_t, out_features);
  RUSH_ARG(bool, bias) = true;
};

/// The sizes of the last dimensions of both inputs and of the output, and whether a bias is added.
struct BilinearOptions {
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  RUSH_ARG(int64_t, in1_features);
  RUSH_ARG(int64_t, in2_features);
  RUSH_ARG(int64_t, out_features);
  RUSH_ARG(bool, bias) = true;
};

/// The first and the last one of the dimensions that become one.
struct FlattenOptions {
  RUSH_ARG(int64_t, start_dim) = 1;
  RUSH_ARG(int64_t, end_dim) = -1;
};

/// Dimension `dim` becomes several of these sizes, one of which may be -1.
struct UnflattenOptions {
  UnflattenOptions(int64_t dim, std::vector<int64_t> sizes) : dim_(dim), sizes_(std::move(sizes)) {}
  RUSH_ARG(int64_t, dim);
  RUSH_ARG(std::vector<int64_t>, sizes);
};

}  // namespace rush::nn
