// Convolutions: depthwise ones of volumes by kernels of our own, others through cuDNN where it can, else as products of
// matrices.
#include "core/ops/nn/conv.h"

#include "backends/cuda/dnn/conv.h"
#include "backends/cuda/kernels/linalg/conv_gemm.h"
#include "backends/cuda/kernels/nn/conv_depthwise.h"
#include "backends/cuda/register.h"
#include "core/ops/nn/transposed_padding.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

void add_bias(const Tensor& output, const Tensor& bias) {
  if (!bias.defined()) return;
  const int64_t channels = bias.sizes()[0];
  output.add_(detail::make_view(bias, {1, channels, 1, 1, 1}, {0, bias.strides()[0], 0, 0, 0}, bias.storage_offset()));
}

// Note [Bias in the convolution's kernel]
// cuDNN compiles kernels that add the bias at run time. They round 16-bit results once, as the CPU does, and spare a
// pass over the output; but such a plan costs more to launch, so small float32 outputs have the bias added after.
// It has none for some transposed convolutions and groups. Those sum in float32, have the bias added there, and are
// rounded by the copy that follows: of 16-bit operands where cuDNN has such a plan, else of the same numbers in
// float32, whose products are exact even in TF32.
constexpr int64_t kWorthFusing = int64_t{1} << 22;

bool with_bias_by_dnn(ConvDirection direction, const Tensor& input, const Tensor& weight, const Tensor& output,
                      const Tensor& bias, const ConvGeometry& geometry) {
  const Tensor& result = direction == ConvDirection::Output ? output : input;
  if (!bias.defined() || (result.element_size() != 2 && result.numel() < kWorthFusing)) return false;
  return dnn_convolution(direction, input, weight, output, bias, geometry);
}

bool has_16_bits(const Tensor& t) { return t.scalar_type() == kFloat16 || t.scalar_type() == kBFloat16; }
bool is_rounded_before_bias(const Tensor& result, const Tensor& bias) { return bias.defined() && has_16_bits(result); }

// float32 sums in memory laid out as `result`, whose dtype has 16 bits, which they become with the bias added.
template <class Compute>
void add_bias_in_float32(const Tensor& result, const Tensor& bias, const Compute& compute) {
  const Tensor sums = detail::empty_strided(result.sizes(), result.strides(), kFloat32, result.device());
  compute(sums);
  add_bias(sums, bias);
  Tensor target = result;
  native::copy_(target, sums, false);
}

// Whether nothing is left to do. In an estimate of memory Rushlight's own kernels do nothing, and count nothing.
bool by_dnn(ConvDirection direction, const Tensor& input, const Tensor& weight, const Tensor& output,
            const ConvGeometry& geometry) {
  return dnn_convolution(direction, input, weight, output, {}, geometry) || output.device().is_meta();
}

void convolution(const Tensor& output, const Tensor& input, const Tensor& weight, const Tensor& bias,
                 const ConvGeometry& geometry) {
  if (depthwise_convolution(ConvDirection::Output, input, weight, output, bias, geometry)) return;
  if (with_bias_by_dnn(ConvDirection::Output, input, weight, output, bias, geometry)) return;
  if (is_rounded_before_bias(output, bias)) {
    return add_bias_in_float32(output, bias, [&](const Tensor& sums) {
      if (by_dnn(ConvDirection::Output, input, weight, sums, geometry)) return;
      convolution(sums, native::to_dtype(input, kFloat32), native::to_dtype(weight, kFloat32), {}, geometry);
    });
  }
  if (!by_dnn(ConvDirection::Output, input, weight, output, geometry)) {
    conv_by_gemm(output, input, weight, geometry);
  }
  add_bias(output, bias);
}

void convolution_transpose(const Tensor& input, const Tensor& output, const Tensor& weight, const Tensor& bias,
                           const ConvGeometry& geometry) {
  if (depthwise_convolution(ConvDirection::InputGradient, input, weight, output, bias, geometry)) return;
  const bool is_padded = native::output_padding_reaches_stride(input, output, weight, geometry);
  if (has_16_bits(input) && is_padded && !input.device().is_meta()) {
    conv_transpose_by_gemm(input, output, weight, geometry);
    return add_bias(input, bias);
  }
  if (with_bias_by_dnn(ConvDirection::InputGradient, input, weight, output, bias, geometry)) return;
  if (is_rounded_before_bias(input, bias)) {
    return add_bias_in_float32(input, bias, [&](const Tensor& sums) {
      if (by_dnn(ConvDirection::InputGradient, sums, weight, output, geometry)) return;
      convolution_transpose(sums, native::to_dtype(output, kFloat32), native::to_dtype(weight, kFloat32), {}, geometry);
    });
  }
  if (!by_dnn(ConvDirection::InputGradient, input, weight, output, geometry)) {
    conv_transpose_by_gemm(input, output, weight, geometry);
  }
  add_bias(input, bias);
}

void convolution_weight(const Tensor& weight, const Tensor& output, const Tensor& input, const ConvGeometry& geometry) {
  if (depthwise_convolution(ConvDirection::WeightGradient, input, weight, output, {}, geometry)) return;
  if (!by_dnn(ConvDirection::WeightGradient, input, weight, output, geometry)) {
    conv_weight_by_gemm(weight, output, input, geometry);
  }
}

}  // namespace

void register_conv() {
  kernels::convolution.set_by_parts(kCUDA, convolution);
  kernels::convolution_transpose.set_by_parts(kCUDA, convolution_transpose);
  kernels::convolution_weight.set_by_parts(kCUDA, convolution_weight);
}

}  // namespace rush::cuda
