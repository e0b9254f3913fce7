// Convolutions of one, two and three dimensions, and their transposes.
// https://pytorch.org/docs/stable/nn.functional.html#convolution-functions
#pragma once
#include <array>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

using ConvOp = Op<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, IntArrayRef, IntArrayRef,
                         IntArrayRef, int64_t)>;
using ConvPaddingOp = Op<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, IntArrayRef,
                                std::string_view, IntArrayRef, int64_t)>;
using ConvTransposeOp = Op<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, IntArrayRef, IntArrayRef,
                                  IntArrayRef, int64_t, IntArrayRef)>;

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, IntArrayRef, IntArrayRef,
                           IntArrayRef, bool, IntArrayRef, int64_t)>
    convolution{
        "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] "
        "dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, OptionalIntArrayRef,
                                                       IntArrayRef, IntArrayRef, IntArrayRef, bool, IntArrayRef,
                                                       int64_t, std::array<bool, 3>)>
    convolution_backward{
        "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] "
        "stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] "
        "output_mask) -> (Tensor, Tensor, Tensor)"};

inline constinit ConvOp conv1d{
    "aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], "
    "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor"};
inline constinit ConvOp conv2d{
    "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
    "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor"};
inline constinit ConvOp conv3d{
    "aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, "
    "0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor"};
inline constinit ConvPaddingOp conv1d_padding{
    "aten::conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str padding=\"valid\", "
    "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor"};
inline constinit ConvPaddingOp conv2d_padding{
    "aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str "
    "padding=\"valid\", SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor"};
inline constinit ConvPaddingOp conv3d_padding{
    "aten::conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str "
    "padding=\"valid\", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor"};
inline constinit ConvTransposeOp conv_transpose1d{
    "aten::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] "
    "padding=[0], SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor"};
inline constinit ConvTransposeOp conv_transpose2d{
    "aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] "
    "padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> Tensor"};
inline constinit ConvTransposeOp conv_transpose3d{
    "aten::conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], "
    "SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] dilation=[1, 1, 1]) "
    "-> Tensor"};
}  // namespace ops

// What all of the following share: input (N, C, spatial...) or, unbatched, (C, spatial...); each of the spatial
// arguments is one number per spatial dimension, or one for all. `groups` divides the channels into parts that do not
// meet. They throw ValueError on shapes that do not fit and TypeError when the dtypes differ.

/// out[n, o] = bias[o] + sum over channels c and offsets k of weight[o, c, k] input[n, c, stride * position + dilation
/// * k - padding], where the input is zero outside. weight (out, C / groups, kernel...), bias (out).
inline Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt,
                     IntArrayRef stride = 1, IntArrayRef padding = 0, IntArrayRef dilation = 1, int64_t groups = 1) {
  return ops::conv1d(input, weight, bias, stride, padding, dilation, groups);
}
inline Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt,
                     IntArrayRef stride = 1, IntArrayRef padding = 0, IntArrayRef dilation = 1, int64_t groups = 1) {
  return ops::conv2d(input, weight, bias, stride, padding, dilation, groups);
}
inline Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt,
                     IntArrayRef stride = 1, IntArrayRef padding = 0, IntArrayRef dilation = 1, int64_t groups = 1) {
  return ops::conv3d(input, weight, bias, stride, padding, dilation, groups);
}
/// Padding by name: "valid" is none; "same" gives the output the input's size and needs stride 1. Its type is deduced,
/// so that a padding of 0 or in braces {0, 0} is not taken for one.
template <Text Name>
Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
              const Name& padding, IntArrayRef dilation = 1, int64_t groups = 1) {
  return ops::conv1d_padding(input, weight, bias, stride, padding, dilation, groups);
}
template <Text Name>
Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
              const Name& padding, IntArrayRef dilation = 1, int64_t groups = 1) {
  return ops::conv2d_padding(input, weight, bias, stride, padding, dilation, groups);
}
template <Text Name>
Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
              const Name& padding, IntArrayRef dilation = 1, int64_t groups = 1) {
  return ops::conv3d_padding(input, weight, bias, stride, padding, dilation, groups);
}
/// The transpose of a convolution as a linear map: its gradient by the input. weight (C, out / groups, kernel...).
/// `output_padding` adds to one side of the output's size, which stride leaves open.
inline Tensor conv_transpose1d(const Tensor& input, const Tensor& weight,
                               const std::optional<Tensor>& bias = std::nullopt, IntArrayRef stride = 1,
                               IntArrayRef padding = 0, IntArrayRef output_padding = 0, int64_t groups = 1,
                               IntArrayRef dilation = 1) {
  return ops::conv_transpose1d(input, weight, bias, stride, padding, output_padding, groups, dilation);
}
inline Tensor conv_transpose2d(const Tensor& input, const Tensor& weight,
                               const std::optional<Tensor>& bias = std::nullopt, IntArrayRef stride = 1,
                               IntArrayRef padding = 0, IntArrayRef output_padding = 0, int64_t groups = 1,
                               IntArrayRef dilation = 1) {
  return ops::conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation);
}
inline Tensor conv_transpose3d(const Tensor& input, const Tensor& weight,
                               const std::optional<Tensor>& bias = std::nullopt, IntArrayRef stride = 1,
                               IntArrayRef padding = 0, IntArrayRef output_padding = 0, int64_t groups = 1,
                               IntArrayRef dilation = 1) {
  return ops::conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups, dilation);
}
/// All of them: batched, any number of spatial dimensions up to three, transposed or not.
inline Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                          IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                          IntArrayRef output_padding, int64_t groups) {
  return ops::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}

/// Where a kernel's taps fall, in (depth, height, width): those of a convolution of fewer dimensions are 1, 0, 1 first.
struct ConvGeometry {
  std::array<int64_t, 3> stride, padding, dilation;
  int64_t groups;
};

namespace kernels {
// Tensors of five dimensions: input (N, C, D, H, W), weight (O, C / groups, KD, KH, KW), output (N, O, OD, OH, OW), of
// one dtype and any strides. Nothing is empty.

// output = conv(input, weight) + bias (undefined: 0).
inline constinit Kernel<void(const Tensor& output, const Tensor& input, const Tensor& weight, const Tensor& bias,
                             const ConvGeometry& geometry)>
    convolution{"convolution"};
// input = the gradient of conv(input, weight) by the input: the transposed convolution of `output`, + bias.
inline constinit Kernel<void(const Tensor& input, const Tensor& output, const Tensor& weight, const Tensor& bias,
                             const ConvGeometry& geometry)>
    convolution_transpose{"convolution_transpose"};
// weight = the gradient of conv(input, weight) by the weight, for the gradient `output` of its result.
inline constinit Kernel<void(const Tensor& weight, const Tensor& output, const Tensor& input,
                             const ConvGeometry& geometry)>
    convolution_weight{"convolution_weight"};
}  // namespace kernels

}  // namespace rush
