#pragma once
#include "nn/arg.h"
#include "nn/expanding_array.h"

namespace rush::nn {

/// output_size: H and W of the result. The rest tells where the windows lie in it.
struct FoldOptions {
  FoldOptions(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : output_size_(output_size), kernel_size_(kernel_size) {}
  RUSH_ARG(ExpandingArray<2>, output_size);
  RUSH_ARG(ExpandingArray<2>, kernel_size);
  RUSH_ARG(ExpandingArray<2>, dilation) = 1;
  RUSH_ARG(ExpandingArray<2>, padding) = 0;
  RUSH_ARG(ExpandingArray<2>, stride) = 1;
};

/// Where the windows lie in the input.
struct UnfoldOptions {
  UnfoldOptions(int64_t kernel_size) : kernel_size_(kernel_size) {}
  UnfoldOptions(ExpandingArray<2> kernel_size) : kernel_size_(kernel_size) {}
  RUSH_ARG(ExpandingArray<2>, kernel_size);
  RUSH_ARG(ExpandingArray<2>, dilation) = 1;
  RUSH_ARG(ExpandingArray<2>, padding) = 0;
  RUSH_ARG(ExpandingArray<2>, stride) = 1;
};

namespace functional {
using FoldFuncOptions = FoldOptions;
using UnfoldFuncOptions = UnfoldOptions;
}  // namespace functional

}  // namespace rush::nn
