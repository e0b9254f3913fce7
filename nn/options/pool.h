#pragma once
#include <optional>
#include <vector>

#include "core/tensor.h"
#include "nn/arg.h"
#include "nn/expanding_array.h"

namespace rush::nn {

/// Of D spatial dimensions. ceil_mode: the output's size is rounded up, so that the last window may reach over the end.
template <size_t D>
struct MaxPoolOptions {
  MaxPoolOptions(int64_t kernel_size) : MaxPoolOptions(ExpandingArray<D>(kernel_size)) {}
  MaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  RUSH_ARG(ExpandingArray<D>, kernel_size);
  // Default: the kernel's size.
  RUSH_ARG(ExpandingArray<D>, stride);
  RUSH_ARG(ExpandingArray<D>, padding) = 0;
  RUSH_ARG(ExpandingArray<D>, dilation) = 1;
  RUSH_ARG(bool, ceil_mode) = false;
};
using MaxPool1dOptions = MaxPoolOptions<1>;
using MaxPool2dOptions = MaxPoolOptions<2>;
using MaxPool3dOptions = MaxPoolOptions<3>;

/// As MaxPoolOptions. count_include_pad: padding counts in the mean. divisor_override: what sums are divided by
/// instead.
template <size_t D>
struct AvgPoolOptions {
  AvgPoolOptions(int64_t kernel_size) : AvgPoolOptions(ExpandingArray<D>(kernel_size)) {}
  AvgPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  RUSH_ARG(ExpandingArray<D>, kernel_size);
  RUSH_ARG(ExpandingArray<D>, stride);
  RUSH_ARG(ExpandingArray<D>, padding) = 0;
  RUSH_ARG(bool, ceil_mode) = false;
  RUSH_ARG(bool, count_include_pad) = true;
  RUSH_ARG(std::optional<int64_t>, divisor_override) = std::nullopt;
};
using AvgPool1dOptions = AvgPoolOptions<1>;
using AvgPool2dOptions = AvgPoolOptions<2>;
using AvgPool3dOptions = AvgPoolOptions<3>;

/// norm_type: the p of the norm. The rest as MaxPoolOptions.
template <size_t D>
struct LPPoolOptions {
  LPPoolOptions(double norm_type, ExpandingArray<D> kernel_size)
      : norm_type_(norm_type), kernel_size_(kernel_size), stride_(kernel_size) {}
  RUSH_ARG(double, norm_type);
  RUSH_ARG(ExpandingArray<D>, kernel_size);
  RUSH_ARG(ExpandingArray<D>, stride);
  RUSH_ARG(bool, ceil_mode) = false;
};
using LPPool1dOptions = LPPoolOptions<1>;
using LPPool2dOptions = LPPoolOptions<2>;
using LPPool3dOptions = LPPoolOptions<3>;

/// The output's spatial sizes; std::nullopt, where Size takes it, keeps the input's.
template <class Size>
struct AdaptiveAvgPoolOptions {
  AdaptiveAvgPoolOptions(int64_t output_size) : output_size_(output_size) {}
  AdaptiveAvgPoolOptions(Size output_size) : output_size_(output_size) {}
  RUSH_ARG(Size, output_size);
};
using AdaptiveAvgPool1dOptions = AdaptiveAvgPoolOptions<ExpandingArray<1>>;
using AdaptiveAvgPool2dOptions = AdaptiveAvgPoolOptions<ExpandingArrayWithOptionalElem<2>>;
using AdaptiveAvgPool3dOptions = AdaptiveAvgPoolOptions<ExpandingArrayWithOptionalElem<3>>;
template <class Size>
using AdaptiveMaxPoolOptions = AdaptiveAvgPoolOptions<Size>;
using AdaptiveMaxPool1dOptions = AdaptiveAvgPool1dOptions;
using AdaptiveMaxPool2dOptions = AdaptiveAvgPool2dOptions;
using AdaptiveMaxPool3dOptions = AdaptiveAvgPool3dOptions;

/// Those of the max pooling that is undone.
template <size_t D>
struct MaxUnpoolOptions {
  MaxUnpoolOptions(int64_t kernel_size) : MaxUnpoolOptions(ExpandingArray<D>(kernel_size)) {}
  MaxUnpoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  RUSH_ARG(ExpandingArray<D>, kernel_size);
  RUSH_ARG(ExpandingArray<D>, stride);
  RUSH_ARG(ExpandingArray<D>, padding) = 0;
};
using MaxUnpool1dOptions = MaxUnpoolOptions<1>;
using MaxUnpool2dOptions = MaxUnpoolOptions<2>;
using MaxUnpool3dOptions = MaxUnpoolOptions<3>;

/// Either the output's size is given, or its ratio to the input's, between 0 and 1.
template <size_t D>
struct FractionalMaxPoolOptions {
  FractionalMaxPoolOptions(int64_t kernel_size) : kernel_size_(kernel_size) {}
  FractionalMaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size) {}
  using ExpandingArrayDouble = ExpandingArray<D, double>;
  RUSH_ARG(ExpandingArray<D>, kernel_size);
  RUSH_ARG(std::optional<ExpandingArray<D>>, output_size) = std::nullopt;
  RUSH_ARG(std::optional<ExpandingArrayDouble>, output_ratio) = std::nullopt;
  // (N, C, D) of numbers in [0, 1) that place the windows. Default: drawn at each call.
  RUSH_ARG(Tensor, _random_samples);
};
using FractionalMaxPool2dOptions = FractionalMaxPoolOptions<2>;
using FractionalMaxPool3dOptions = FractionalMaxPoolOptions<3>;

namespace functional {
/// As MaxUnpoolOptions.
template <size_t D>
struct MaxUnpoolFuncOptions {
  MaxUnpoolFuncOptions(int64_t kernel_size) : MaxUnpoolFuncOptions(ExpandingArray<D>(kernel_size)) {}
  MaxUnpoolFuncOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  RUSH_ARG(ExpandingArray<D>, kernel_size);
  RUSH_ARG(ExpandingArray<D>, stride);
  RUSH_ARG(ExpandingArray<D>, padding) = 0;
  // The spatial dimensions' sizes, or all. Default: the smallest that the pooled input can have had.
  RUSH_ARG(std::optional<std::vector<int64_t>>, output_size) = std::nullopt;
};
using MaxUnpool1dFuncOptions = MaxUnpoolFuncOptions<1>;
using MaxUnpool2dFuncOptions = MaxUnpoolFuncOptions<2>;
using MaxUnpool3dFuncOptions = MaxUnpoolFuncOptions<3>;
using FractionalMaxPool2dFuncOptions = FractionalMaxPool2dOptions;
using FractionalMaxPool3dFuncOptions = FractionalMaxPool3dOptions;
using MaxPool1dFuncOptions = MaxPool1dOptions;
using MaxPool2dFuncOptions = MaxPool2dOptions;
using MaxPool3dFuncOptions = MaxPool3dOptions;
using AvgPool1dFuncOptions = AvgPool1dOptions;
using AvgPool2dFuncOptions = AvgPool2dOptions;
using AvgPool3dFuncOptions = AvgPool3dOptions;
using LPPool1dFuncOptions = LPPool1dOptions;
using LPPool2dFuncOptions = LPPool2dOptions;
using LPPool3dFuncOptions = LPPool3dOptions;
using AdaptiveAvgPool1dFuncOptions = AdaptiveAvgPool1dOptions;
using AdaptiveAvgPool2dFuncOptions = AdaptiveAvgPool2dOptions;
using AdaptiveAvgPool3dFuncOptions = AdaptiveAvgPool3dOptions;
using AdaptiveMaxPool1dFuncOptions = AdaptiveMaxPool1dOptions;
using AdaptiveMaxPool2dFuncOptions = AdaptiveMaxPool2dOptions;
using AdaptiveMaxPool3dFuncOptions = AdaptiveMaxPool3dOptions;
}  // namespace functional

}  // namespace rush::nn
