#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/scalar_type.h"
#include "nn/arg.h"

namespace rush::nn {

/// `inplace`, here and below: the result is written into the input.
struct ReLUOptions {
  ReLUOptions(bool inplace = false) : inplace_(inplace) {}
  RUSH_ARG(bool, inplace);
};
using ReLU6Options = ReLUOptions;
using SELUOptions = ReLUOptions;
/// As in Python; libtorch has no options here.
using SiLUOptions = ReLUOptions;
using MishOptions = ReLUOptions;
using HardswishOptions = ReLUOptions;
using HardsigmoidOptions = ReLUOptions;

/// Below 0: alpha (e^x - 1); of CELU alpha (e^(x / alpha) - 1).
struct ELUOptions {
  RUSH_ARG(double, alpha) = 1.0;
  RUSH_ARG(bool, inplace) = false;
};
using CELUOptions = ELUOptions;

/// Below 0: negative_slope x.
struct LeakyReLUOptions {
  RUSH_ARG(double, negative_slope) = 1e-2;
  RUSH_ARG(bool, inplace) = false;
};

/// The least and the largest value of the result.
struct HardtanhOptions {
  RUSH_ARG(double, min_val) = -1.0;
  RUSH_ARG(double, max_val) = 1.0;
  RUSH_ARG(bool, inplace) = false;
};

/// What is not above `threshold` becomes `value`.
struct ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  RUSH_ARG(double, threshold);
  RUSH_ARG(double, value);
  RUSH_ARG(bool, inplace) = false;
};

/// How the normal distribution function is computed.
struct GELUOptions {
  // "none": the error function; "tanh": its approximation.
  RUSH_ARG(std::string, approximate) = "none";
};

/// log(1 + e^(beta x)) / beta; x itself where beta x > threshold.
struct SoftplusOptions {
  RUSH_ARG(double, beta) = 1.0;
  RUSH_ARG(double, threshold) = 20.0;
};

/// 0 within [-lambda, lambda]; softshrink also moves the rest towards 0 by lambda.
struct HardshrinkOptions {
  HardshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}
  RUSH_ARG(double, lambda);
};
using SoftshrinkOptions = HardshrinkOptions;

/// The dimension that is halved.
struct GLUOptions {
  GLUOptions(int64_t dim = -1) : dim_(dim) {}
  RUSH_ARG(int64_t, dim);
};

/// The dimension of the classes, over which the probabilities add up to 1.
struct SoftmaxOptions {
  SoftmaxOptions(int64_t dim) : dim_(dim) {}
  RUSH_ARG(int64_t, dim);
};
using SoftminOptions = SoftmaxOptions;
using LogSoftmaxOptions = SoftmaxOptions;

/// Values below 0 are multiplied by a number drawn between the bounds while training, and otherwise by their mean.
struct RReLUOptions {
  RUSH_ARG(double, lower) = 1.0 / 8.0;
  RUSH_ARG(double, upper) = 1.0 / 3.0;
  RUSH_ARG(bool, inplace) = false;
};

/// One parameter, or one for each channel, and the value that it starts from.
struct PReLUOptions {
  PReLUOptions(int64_t num_parameters = 1) : num_parameters_(num_parameters) {}
  RUSH_ARG(int64_t, num_parameters);
  RUSH_ARG(double, init) = 0.25;
};

namespace functional {

using ReLUFuncOptions = ReLUOptions;
using ReLU6FuncOptions = ReLU6Options;
using SELUFuncOptions = SELUOptions;
using SiLUFuncOptions = SiLUOptions;
using MishFuncOptions = MishOptions;
using HardswishFuncOptions = HardswishOptions;
using HardsigmoidFuncOptions = HardsigmoidOptions;
using ELUFuncOptions = ELUOptions;
using CELUFuncOptions = CELUOptions;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using HardtanhFuncOptions = HardtanhOptions;
using ThresholdFuncOptions = ThresholdOptions;
using GELUFuncOptions = GELUOptions;
using SoftplusFuncOptions = SoftplusOptions;
using HardshrinkFuncOptions = HardshrinkOptions;
using SoftshrinkFuncOptions = SoftshrinkOptions;
using GLUFuncOptions = GLUOptions;

/// As RReLUOptions.
struct RReLUFuncOptions {
  RUSH_ARG(double, lower) = 1.0 / 8.0;
  RUSH_ARG(double, upper) = 1.0 / 3.0;
  RUSH_ARG(bool, training) = false;
  RUSH_ARG(bool, inplace) = false;
};

/// tau: the temperature. hard: a one-hot sample. dim: that of the classes.
struct GumbelSoftmaxFuncOptions {
  RUSH_ARG(double, tau) = 1.0;
  RUSH_ARG(bool, hard) = false;
  RUSH_ARG(int64_t, dim) = -1;
};

/// As SoftmaxOptions; with a dtype, the input is converted to it first.
struct SoftmaxFuncOptions {
  SoftmaxFuncOptions(int64_t dim) : dim_(dim) {}
  RUSH_ARG(int64_t, dim);
  RUSH_ARG(std::optional<ScalarType>, dtype) = std::nullopt;
};
using SoftminFuncOptions = SoftmaxFuncOptions;
using LogSoftmaxFuncOptions = SoftmaxFuncOptions;

}  // namespace functional
}  // namespace rush::nn
