#include "backends/cuda/dnn/batch_norm.h"

#include <limits>

#include "backends/cuda/dnn/handle.h"
#include "backends/cuda/dnn/tensor_descriptor.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"

namespace rush::cuda {

namespace {

using kernels::ChannelLayout;

constexpr cudnnBatchNormMode_t kMode = CUDNN_BATCHNORM_SPATIAL;  // statistics for each channel

// The blend factors alpha = 1 and beta = 0 are float, or double for double tensors.
struct BlendFactors {
  double real64[2] = {1, 0};
  float real[2] = {1, 0};
  bool is_double;

  explicit BlendFactors(ScalarType dtype) : is_double(dtype == kFloat64) {}
  const void* one() const { return is_double ? static_cast<const void*>(&real64[0]) : &real[0]; }
  const void* zero() const { return is_double ? static_cast<const void*>(&real64[1]) : &real[1]; }
};

bool fits(const Tensor& input, const ChannelLayout& layout) {
  return dnn_enabled_for(input.scalar_type()) && input.numel() > 0 && layout.count() > 1 &&
         input.numel() <= std::numeric_limits<int>::max();
}

// Channels-last positions are the height of one image; row-major ones that of each image.
TensorDescriptor describe_input(const Tensor& input, const ChannelLayout& layout) {
  const int outer = static_cast<int>(layout.outer), channels = static_cast<int>(layout.channels);
  const int inner = static_cast<int>(layout.inner);
  const cudnnDataType_t type = dnn_type(input.scalar_type());
  if (inner == 1) return {type, {1, channels, outer, 1}, {outer * channels, 1, channels, channels}};
  return {type, {outer, channels, inner, 1}, {channels * inner, inner, 1, 1}};
}

TensorDescriptor describe_statistics(const Tensor& statistics) {
  const int channels = static_cast<int>(statistics.numel());
  return {dnn_type(statistics.scalar_type()), {1, channels, 1, 1}, {channels, 1, 1, 1}};
}

// A tensor of one number for each channel, where the caller has none.
Tensor given_or_full(const Tensor& t, const Tensor& like, double value) {
  if (t.defined()) return t;
  const Tensor all = detail::empty_contiguous(like.sizes(), like.scalar_type(), like.device());
  return all.fill_(value);
}

Tensor given_or_empty(const Tensor& t, const Tensor& like) {
  return t.defined() ? t : detail::empty_contiguous(like.sizes(), like.scalar_type(), like.device());
}

}  // namespace

bool dnn_batch_norm(const Tensor& output, const Tensor& mean, const Tensor& var, const Tensor& invstd,
                    const Tensor& input, const Tensor& weight, const Tensor& bias, double eps, bool rounded,
                    const ChannelLayout& layout) {
  if (rounded || eps < CUDNN_BN_MIN_EPSILON || !fits(input, layout)) return false;
  const Tensor scale = given_or_full(weight, mean, 1), shift = given_or_full(bias, mean, 0);
  // The running statistics, moved all the way, are the batch's mean and unbiased variance.
  const Tensor moved_mean = detail::empty_contiguous(mean.sizes(), mean.scalar_type(), mean.device());
  moved_mean.zero_();
  var.zero_();
  {
    const Dnn dnn;
    const BlendFactors factors(input.scalar_type());
    const TensorDescriptor x = describe_input(input, layout), statistics = describe_statistics(mean);
    RUSH_CUDA_CHECK(cudnnBatchNormalizationForwardTraining(
        dnn.handle(), kMode, factors.one(), factors.zero(), x, input.data_ptr(), x, output.data_ptr(), statistics,
        scale.data_ptr(), shift.data_ptr(), 1.0, moved_mean.data_ptr(), var.data_ptr(), eps, mean.data_ptr(),
        invstd.data_ptr()));
  }
  const auto n = static_cast<double>(layout.count());
  var.mul_(Scalar((n - 1) / n));
  return true;
}

bool dnn_batch_norm_backward(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                             const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                             const Tensor& weight, bool training, const ChannelLayout& layout) {
  if (!training || !fits(input, layout)) return false;
  const Tensor dx = given_or_empty(grad_input, input), dw = given_or_empty(grad_weight, mean);
  const Tensor db = given_or_empty(grad_bias, mean), scale = given_or_full(weight, mean, 1);
  const Dnn dnn;
  const BlendFactors factors(input.scalar_type());
  const TensorDescriptor x = describe_input(input, layout), statistics = describe_statistics(mean);
  // Epsilon is only read where the saved statistics are missing.
  constexpr double kEpsilon = 1e-5;
  RUSH_CUDA_CHECK(cudnnBatchNormalizationBackward(dnn.handle(), kMode, factors.one(), factors.zero(), factors.one(),
                                                  factors.zero(), x, input.data_ptr(), x, grad_output.data_ptr(), x,
                                                  dx.data_ptr(), statistics, scale.data_ptr(), dw.data_ptr(),
                                                  db.data_ptr(), kEpsilon, mean.data_ptr(), invstd.data_ptr()));
  return true;
}

}  // namespace rush::cuda
