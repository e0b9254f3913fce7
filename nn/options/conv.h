#pragma once
#include "core/tensor.h"
#include "nn/arg.h"
#include "nn/enum.h"
#include "nn/expanding_array.h"

namespace rush::nn {

namespace detail {
using conv_padding_mode_t =
    std::variant<enumtype::kZeros, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;
// Numbers; or kValid: none; or kSame: as much as keeps the sizes at stride 1.
template <size_t D>
using conv_padding_t = std::variant<ExpandingArray<D>, enumtype::kValid, enumtype::kSame>;
}  // namespace detail

/// Of D spatial dimensions. An output channel sees the in_channels / groups channels of its group.
template <size_t D>
struct ConvOptions {
  using padding_mode_t = detail::conv_padding_mode_t;
  using padding_t = detail::conv_padding_t<D>;
  ConvOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  RUSH_ARG(int64_t, in_channels);
  RUSH_ARG(int64_t, out_channels);
  RUSH_ARG(ExpandingArray<D>, kernel_size);
  RUSH_ARG(ExpandingArray<D>, stride) = 1;
  RUSH_ARG(padding_t, padding) = ExpandingArray<D>(0);

 public:
  /// One number for all dimensions, or one for each.
  auto& padding(int64_t value) { return padding(padding_t(ExpandingArray<D>(value))); }
  auto& padding(std::initializer_list<int64_t> values) { return padding(padding_t(ExpandingArray<D>(values))); }
  RUSH_ARG(ExpandingArray<D>, dilation) = 1;
  RUSH_ARG(int64_t, groups) = 1;
  RUSH_ARG(bool, bias) = true;
  RUSH_ARG(padding_mode_t, padding_mode) = kZeros;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

/// Of D spatial dimensions. output_padding adds to one side of the output, whose size the stride leaves open.
template <size_t D>
struct ConvTransposeOptions {
  using padding_mode_t = detail::conv_padding_mode_t;
  ConvTransposeOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  RUSH_ARG(int64_t, in_channels);
  RUSH_ARG(int64_t, out_channels);
  RUSH_ARG(ExpandingArray<D>, kernel_size);
  RUSH_ARG(ExpandingArray<D>, stride) = 1;
  RUSH_ARG(ExpandingArray<D>, padding) = 0;
  RUSH_ARG(ExpandingArray<D>, output_padding) = 0;
  RUSH_ARG(int64_t, groups) = 1;
  RUSH_ARG(bool, bias) = true;
  RUSH_ARG(ExpandingArray<D>, dilation) = 1;
  RUSH_ARG(padding_mode_t, padding_mode) = kZeros;
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

namespace functional {

/// As ConvOptions; channels and the kernel's size are those of the weight. bias (O), or undefined.
template <size_t D>
struct ConvFuncOptions {
  using padding_t = nn::detail::conv_padding_t<D>;
  RUSH_ARG(Tensor, bias);
  RUSH_ARG(ExpandingArray<D>, stride) = 1;
  RUSH_ARG(padding_t, padding) = ExpandingArray<D>(0);

 public:
  /// One number for all dimensions, or one for each.
  auto& padding(int64_t value) { return padding(padding_t(ExpandingArray<D>(value))); }
  auto& padding(std::initializer_list<int64_t> values) { return padding(padding_t(ExpandingArray<D>(values))); }
  RUSH_ARG(ExpandingArray<D>, dilation) = 1;
  RUSH_ARG(int64_t, groups) = 1;
};
using Conv1dFuncOptions = ConvFuncOptions<1>;
using Conv2dFuncOptions = ConvFuncOptions<2>;
using Conv3dFuncOptions = ConvFuncOptions<3>;

/// As ConvTransposeOptions; channels and the kernel's size are those of the weight. bias (O), or undefined.
template <size_t D>
struct ConvTransposeFuncOptions {
  RUSH_ARG(Tensor, bias);
  RUSH_ARG(ExpandingArray<D>, stride) = 1;
  RUSH_ARG(ExpandingArray<D>, padding) = 0;
  RUSH_ARG(ExpandingArray<D>, output_padding) = 0;
  RUSH_ARG(int64_t, groups) = 1;
  RUSH_ARG(ExpandingArray<D>, dilation) = 1;
};
using ConvTranspose1dFuncOptions = ConvTransposeFuncOptions<1>;
using ConvTranspose2dFuncOptions = ConvTransposeFuncOptions<2>;
using ConvTranspose3dFuncOptions = ConvTransposeFuncOptions<3>;

}  // namespace functional
}  // namespace rush::nn
