#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/scalar_type.h"
#include "nn/arg.h"

namespace rush::nn {

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

struct ELUOptions {
  RUSH_ARG(double, alpha) = 1.0;
  RUSH_ARG(bool, inplace) = false;
};
using CELUOptions = ELUOptions;

struct LeakyReLUOptions {
  RUSH_ARG(double, negative_slope) = 1e-2;
  RUSH_ARG(bool, inplace) = false;
};

struct HardtanhOptions {
  RUSH_ARG(double, min_val) = -1.0;
  RUSH_ARG(double, max_val) = 1.0;
  RUSH_ARG(bool, inplace) = false;
};

struct ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  RUSH_ARG(double, threshold);
  RUSH_ARG(double, value);
  RUSH_ARG(bool, inplace) = false;
};

struct GELUOptions {
  // "none": the error function; "tanh": its approximation.
  RUSH_ARG(std::string, approximate) = "none";
};

struct SoftplusOptions {
  RUSH_ARG(double, beta) = 1.0;
  RUSH_ARG(double, threshold) = 20.0;
};

struct HardshrinkOptions {
  HardshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}
  RUSH_ARG(double, lambda);
};
using SoftshrinkOptions = HardshrinkOptions;

struct GLUOptions {
  GLUOptions(int64_t dim = -1) : dim_(dim) {}
  RUSH_ARG(int64_t, dim);
};

struct SoftmaxOptions {
  SoftmaxOptions(int64_t dim) : dim_(dim) {}
  RUSH_ARG(int64_t, dim);
};
using SoftminOptions = SoftmaxOptions;
using LogSoftmaxOptions = SoftmaxOptions;

struct RReLUOptions {
  RUSH_ARG(double, lower) = 1.0 / 8.0;
  RUSH_ARG(double, upper) = 1.0 / 3.0;
  RUSH_ARG(bool, inplace) = false;
};

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

struct RReLUFuncOptions {
  RUSH_ARG(double, lower) = 1.0 / 8.0;
  RUSH_ARG(double, upper) = 1.0 / 3.0;
  RUSH_ARG(bool, training) = false;
  RUSH_ARG(bool, inplace) = false;
};

struct GumbelSoftmaxFuncOptions {
  RUSH_ARG(double, tau) = 1.0;
  RUSH_ARG(bool, hard) = false;
  RUSH_ARG(int64_t, dim) = -1;
};

struct SoftmaxFuncOptions {
  SoftmaxFuncOptions(int64_t dim) : dim_(dim) {}
  RUSH_ARG(int64_t, dim);
  RUSH_ARG(std::optional<ScalarType>, dtype) = std::nullopt;
};
using SoftminFuncOptions = SoftmaxFuncOptions;
using LogSoftmaxFuncOptions = SoftmaxFuncOptions;

}  // namespace functional
}  // namespace rush::nn
