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

#define RUSH_CONVOLUTION_OPS(dims, n, ones, zeros, overload)                                                         \
  inline constinit ConvOp conv##dims{"aten::conv" #dims "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" n \
                                     "] stride=" ones ", SymInt[" n "] padding=" zeros ", SymInt[" n                 \
                                     "] dilation=" ones ", SymInt groups=1) -> Tensor"};                             \
  inline constinit ConvPaddingOp conv##dims##_padding{                                                               \
      "aten::conv" #dims ".padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" n "] stride=" ones       \
      ", str padding=\"valid\", SymInt[" n "] dilation=" ones ", SymInt groups=1) -> Tensor"};                       \
  inline constinit ConvTransposeOp conv_transpose##dims{                                                             \
      "aten::conv_transpose" #dims overload "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" n             \
      "] stride=" ones ", SymInt[" n "] padding=" zeros ", SymInt[" n "] output_padding=" zeros                      \
      ", SymInt groups=1, SymInt[" n "] dilation=" ones ") -> Tensor"};
RUSH_CONVOLUTION_OPS(1d, "1", "[1]", "[0]", "")
RUSH_CONVOLUTION_OPS(2d, "2", "[1, 1]", "[0, 0]", ".input")
RUSH_CONVOLUTION_OPS(3d, "3", "[1, 1, 1]", "[0, 0, 0]", ".input")
#undef RUSH_CONVOLUTION_OPS
}  // namespace ops

// What all of the following share: input (N, C, spatial...) or, unbatched, (C, spatial...); each of the spatial
// arguments is one number per spatial dimension, or one for all. `groups` divides the channels into parts that do not
// meet. They throw ValueError on shapes that do not fit and TypeError when the dtypes differ.

/// conv1d, conv2d, conv3d:
/// out[n, o] = bias[o] + sum over channels c and offsets k of weight[o, c, k] input[n, c, stride * position + dilation
/// * k - padding], where the input is zero outside. weight (out, C / groups, kernel...), bias (out).
///
/// Padding by name: "valid" is none; "same" gives the output the input's size and needs stride 1. Its type is deduced,
/// so that a padding of 0 or in braces {0, 0} is not taken for one.
///
/// conv_transpose1d, conv_transpose2d, conv_transpose3d: the transpose of a convolution as a linear map, its gradient
/// by the input. weight (C, out / groups, kernel...). `output_padding` adds to one side of the output's size, which
/// stride leaves open.
#define RUSH_CONVOLUTIONS(dims)                                                                                       \
  inline Tensor conv##dims(const Tensor& input, const Tensor& weight,                                                 \
                           const std::optional<Tensor>& bias = std::nullopt, IntArrayRef stride = 1,                  \
                           IntArrayRef padding = 0, IntArrayRef dilation = 1, int64_t groups = 1) {                   \
    return ops::conv##dims(input, weight, bias, stride, padding, dilation, groups);                                   \
  }                                                                                                                   \
  template <Text Name>                                                                                                \
  Tensor conv##dims(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride, \
                    const Name& padding, IntArrayRef dilation = 1, int64_t groups = 1) {                              \
    return ops::conv##dims##_padding(input, weight, bias, stride, padding, dilation, groups);                         \
  }                                                                                                                   \
  inline Tensor conv_transpose##dims(const Tensor& input, const Tensor& weight,                                       \
                                     const std::optional<Tensor>& bias = std::nullopt, IntArrayRef stride = 1,        \
                                     IntArrayRef padding = 0, IntArrayRef output_padding = 0, int64_t groups = 1,     \
                                     IntArrayRef dilation = 1) {                                                      \
    return ops::conv_transpose##dims(input, weight, bias, stride, padding, output_padding, groups, dilation);         \
  }
RUSH_CONVOLUTIONS(1d)
RUSH_CONVOLUTIONS(2d)
RUSH_CONVOLUTIONS(3d)
#undef RUSH_CONVOLUTIONS
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
