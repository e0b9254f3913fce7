#pragma once
#include "nn/arg.h"

namespace rush::nn {

/// p: the probability that an element, or a channel, becomes 0.
struct DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}
  RUSH_ARG(double, p) = 0.5;
  RUSH_ARG(bool, inplace) = false;
};
using Dropout1dOptions = DropoutOptions;
using Dropout2dOptions = DropoutOptions;
using Dropout3dOptions = DropoutOptions;
using AlphaDropoutOptions = DropoutOptions;
using FeatureAlphaDropoutOptions = DropoutOptions;

namespace functional {

/// Training by default, as in PyTorch.
struct DropoutFuncOptions {
  RUSH_ARG(double, p) = 0.5;
  RUSH_ARG(bool, training) = true;
  RUSH_ARG(bool, inplace) = false;
};
using Dropout1dFuncOptions = DropoutFuncOptions;
using Dropout2dFuncOptions = DropoutFuncOptions;
using Dropout3dFuncOptions = DropoutFuncOptions;

/// Not training by default, as in PyTorch.
struct AlphaDropoutFuncOptions {
  RUSH_ARG(double, p) = 0.5;
  RUSH_ARG(bool, training) = false;
  RUSH_ARG(bool, inplace) = false;
};
using FeatureAlphaDropoutFuncOptions = AlphaDropoutFuncOptions;

}  // namespace functional
}  // namespace rush::nn
