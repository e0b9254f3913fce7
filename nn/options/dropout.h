#pragma once
#include "nn/arg.h"

namespace rush::nn {

struct DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}
  RUSH_ARG(double, p) = 0.5;
  RUSH_ARG(bool, inplace) = false;
};
using Dropout1dOptions = DropoutOptions;
using Dropout2dOptions = DropoutOptions;
using Dropout3dOptions = DropoutOptions;

namespace functional {

struct DropoutFuncOptions {
  RUSH_ARG(double, p) = 0.5;
  RUSH_ARG(bool, training) = true;
  RUSH_ARG(bool, inplace) = false;
};
using Dropout1dFuncOptions = DropoutFuncOptions;
using Dropout2dFuncOptions = DropoutFuncOptions;
using Dropout3dFuncOptions = DropoutFuncOptions;

}  // namespace functional
}  // namespace rush::nn
