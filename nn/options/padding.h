#pragma once
#include "nn/arg.h"
#include "nn/expanding_array.h"

namespace rush::nn {

/// Before and after the last dimension, then before and after the one in front of it, and so on.
template <size_t D>
struct PaddingOptions {
  PaddingOptions(ExpandingArray<D * 2> padding) : padding_(padding) {}
  PaddingOptions(int64_t padding) : padding_(padding) {}
  RUSH_ARG(ExpandingArray<D * 2>, padding);
};

/// As PaddingOptions, and what the padding is filled with.
template <size_t D>
struct ConstantPadOptions {
  ConstantPadOptions(ExpandingArray<D * 2> padding, double value) : padding_(padding), value_(value) {}
  RUSH_ARG(ExpandingArray<D * 2>, padding);
  RUSH_ARG(double, value);
};

template <size_t D>
using ReflectionPadOptions = PaddingOptions<D>;
template <size_t D>
using ReplicationPadOptions = PaddingOptions<D>;
template <size_t D>
using ZeroPadOptions = PaddingOptions<D>;

#define RUSH_PADDING_OPTIONS(D)                          \
  using ReflectionPad##D##dOptions = PaddingOptions<D>;  \
  using ReplicationPad##D##dOptions = PaddingOptions<D>; \
  using CircularPad##D##dOptions = PaddingOptions<D>;    \
  using ZeroPad##D##dOptions = PaddingOptions<D>;        \
  using ConstantPad##D##dOptions = ConstantPadOptions<D>;
RUSH_PADDING_OPTIONS(1)
RUSH_PADDING_OPTIONS(2)
RUSH_PADDING_OPTIONS(3)
#undef RUSH_PADDING_OPTIONS

}  // namespace rush::nn
