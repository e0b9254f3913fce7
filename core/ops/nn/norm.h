// Normalisation: layer, RMS, batch, group and instance norm, and measures of likeness that divide by norms.
#pragma once
#include <array>
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

using NormResult = std::tuple<Tensor, Tensor, Tensor>;
using OptionalTensor = std::optional<Tensor>;

namespace ops {
inline constinit Op<NormResult(const Tensor&, IntArrayRef, const OptionalTensor&, const OptionalTensor&, double)>
    native_layer_norm{
        "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
        "(Tensor, Tensor, Tensor)"};
inline constinit Op<NormResult(const Tensor&, const Tensor&, IntArrayRef, const Tensor&, const Tensor&,
                               const OptionalTensor&, const OptionalTensor&, std::array<bool, 3>)>
    native_layer_norm_backward{
        "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, "
        "Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, const OptionalTensor&, const OptionalTensor&, double, bool)>
    layer_norm{
        "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
        "eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor"};

inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, IntArrayRef, const OptionalTensor&,
                                               std::optional<double>)>
    _fused_rms_norm{
        "aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, IntArrayRef, const Tensor&,
                                               const OptionalTensor&, std::array<bool, 2>)>
    _fused_rms_norm_backward{
        "aten::_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? "
        "weight, bool[2] output_mask) -> (Tensor, Tensor)"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, const OptionalTensor&, std::optional<double>)> rms_norm{
    "aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor"};

inline constinit Op<NormResult(const Tensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                               const OptionalTensor&, bool, double, double)>
    native_batch_norm{
        "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)"};
inline constinit Op<NormResult(const Tensor&, const Tensor&, const OptionalTensor&, const OptionalTensor&,
                               const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, bool, double,
                               std::array<bool, 3>)>
    native_batch_norm_backward{
        "aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? "
        "running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, "
        "Tensor, Tensor)"};
inline constinit Op<Tensor(const Tensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                           const OptionalTensor&, bool, double, double, bool)>
    batch_norm{
        "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
        "training, float momentum, float eps, bool cudnn_enabled) -> Tensor"};
inline constinit Op<NormResult(const Tensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                               const OptionalTensor&, const OptionalTensor&, double, double)>
    native_batch_norm_relu{
        "rush::native_batch_norm_relu(Tensor input, Tensor? residual, Tensor? weight, Tensor? bias, Tensor? "
        "running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, Tensor>(
    const Tensor&, const Tensor&, const Tensor&, bool, const OptionalTensor&, const OptionalTensor&, const Tensor&,
    const Tensor&, std::array<bool, 4>, const OptionalTensor&)>
    native_batch_norm_relu_backward{
        "rush::native_batch_norm_relu_backward(Tensor grad_out, Tensor output, Tensor input, bool has_residual, "
        "Tensor? weight, Tensor? bias, Tensor save_mean, Tensor save_invstd, bool[4] output_mask, Tensor(a!)? "
        "grad_residual=None) -> (Tensor, Tensor, Tensor, Tensor)"};
inline constinit Op<Tensor(const Tensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                           const OptionalTensor&, const OptionalTensor&, bool, double, double)>
    batch_norm_relu{
        "rush::batch_norm_relu(Tensor input, Tensor? residual, Tensor? weight, Tensor? bias, Tensor? running_mean, "
        "Tensor? running_var, bool training, float momentum, float eps) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                           const OptionalTensor&, bool, double, double, bool)>
    instance_norm{
        "aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
        "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor"};

inline constinit Op<NormResult(const Tensor&, const OptionalTensor&, const OptionalTensor&, int64_t, int64_t, int64_t,
                               int64_t, double)>
    native_group_norm{
        "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int "
        "group, float eps) -> (Tensor, Tensor, Tensor)"};
inline constinit Op<NormResult(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&,
                               int64_t, int64_t, int64_t, int64_t, std::array<bool, 3>)>
    native_group_norm_backward{
        "aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, "
        "SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"};
inline constinit Op<Tensor(const Tensor&, int64_t, const OptionalTensor&, const OptionalTensor&, double, bool)>
    group_norm{
        "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
        "eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor"};

inline constinit Op<Tensor(const Tensor&, int64_t, int64_t)> norm_except_dim{
    "aten::norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, int64_t)> _weight_norm{
    "aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, int64_t, double)> cosine_similarity{
    "aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, double, double, bool)> pairwise_distance{
    "aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) "
    "-> Tensor"};
}  // namespace ops

/// (x - mean) / sqrt(var + eps) * weight + bias, with mean and biased variance over the last dimensions, which must be
/// `normalized_shape`; weight and bias have that shape. Throws ValueError on other shapes. Ba, Kiros and Hinton 2016,
/// https://arxiv.org/abs/1607.06450.
inline Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape, const OptionalTensor& weight = {},
                         const OptionalTensor& bias = {}, double eps = 1e-5, bool cudnn_enable = true) {
  return ops::layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable);
}
/// As above, with the mean and 1 / sqrt(var + eps) of each row: the leading dimensions of the input, then ones. They
/// are float32 for 16-bit inputs, and carry no gradient.
inline NormResult native_layer_norm(const Tensor& input, IntArrayRef normalized_shape, const OptionalTensor& weight,
                                    const OptionalTensor& bias, double eps) {
  return ops::native_layer_norm(input, normalized_shape, weight, bias, eps);
}
/// x / sqrt(mean(x^2) + eps) * weight over the last dimensions. `eps` defaults to the machine epsilon of the dtype that
/// is computed in. Zhang and Sennrich 2019, https://arxiv.org/abs/1910.07467.
inline Tensor rms_norm(const Tensor& input, IntArrayRef normalized_shape, const OptionalTensor& weight = {},
                       std::optional<double> eps = std::nullopt) {
  return ops::rms_norm(input, normalized_shape, weight, eps);
}

/// Normalises each channel of a (N, C, ...) tensor, by the mean and biased variance of the batch when `training`, else
/// by the running ones; then scales by weight and adds bias, both (C). Training moves the running statistics, where
/// given, by `momentum` towards the batch's mean and unbiased variance. Throws ValueError on wrong shapes, or when
/// there are no running statistics outside training. Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167.
inline Tensor batch_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                         const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                         double momentum, double eps, bool cudnn_enabled = true) {
  return ops::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled);
}
/// As above, with the batch's mean and 1 / sqrt(var + eps) of each channel; these are empty outside training. They have
/// the parameters' dtype: float32 for a 16-bit input with float32 parameters, else the input's.
inline NormResult native_batch_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                    const OptionalTensor& running_mean, const OptionalTensor& running_var,
                                    bool training, double momentum, double eps) {
  return ops::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}
/// relu(batch_norm(input) + residual), without the sum where there is no residual, which has the input's shape and
/// dtype. In training on a GPU, channels-last tensors are passed over half as often as by the operators one by one, and
/// a 16-bit result is rounded once. PyTorch has it through torch.compile. Throws as batch_norm does, ValueError for a
/// residual of another shape or device, and TypeError for one of another dtype.
inline Tensor batch_norm_relu(const Tensor& input, const OptionalTensor& residual, const OptionalTensor& weight,
                              const OptionalTensor& bias, const OptionalTensor& running_mean,
                              const OptionalTensor& running_var, bool training, double momentum, double eps) {
  return ops::batch_norm_relu(input, residual, weight, bias, running_mean, running_var, training, momentum, eps);
}
/// Batch norm of every sample by itself. The running statistics move towards the mean of the samples'. Ulyanov, Vedaldi
/// and Lempitsky 2016, https://arxiv.org/abs/1607.08022.
inline Tensor instance_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                            const OptionalTensor& running_mean, const OptionalTensor& running_var, bool use_input_stats,
                            double momentum, double eps, bool cudnn_enabled = true) {
  return ops::instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps,
                            cudnn_enabled);
}
/// Normalises each of `num_groups` groups of neighbouring channels of each sample of a (N, C, ...) tensor; weight and
/// bias are (C). Throws ValueError when C is no multiple of num_groups. Wu and He 2018,
/// https://arxiv.org/abs/1803.08494.
inline Tensor group_norm(const Tensor& input, int64_t num_groups, const OptionalTensor& weight = {},
                         const OptionalTensor& bias = {}, double eps = 1e-5, bool cudnn_enabled = true) {
  return ops::group_norm(input, num_groups, weight, bias, eps, cudnn_enabled);
}
inline NormResult native_group_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                    int64_t N, int64_t C, int64_t HxW, int64_t group, double eps) {
  return ops::native_group_norm(input, weight, bias, N, C, HxW, group, eps);
}

/// The p-norm over all dimensions but `dim`, which keep size one; over all when `dim` is -1, without dimensions then.
inline Tensor norm_except_dim(const Tensor& v, int64_t pow = 2, int64_t dim = 0) {
  return ops::norm_except_dim(v, pow, dim);
}
/// v * g / norm_except_dim(v, 2, dim): a weight of direction v and length g. Salimans and Kingma 2016,
/// https://arxiv.org/abs/1602.07868.
inline Tensor _weight_norm(const Tensor& v, const Tensor& g, int64_t dim = 0) { return ops::_weight_norm(v, g, dim); }

/// sum(x1 x2) / (max(|x1|, eps) max(|x2|, eps)) over `dim`, after broadcasting. Throws TypeError on integers.
inline Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim = 1, double eps = 1e-8) {
  return ops::cosine_similarity(x1, x2, dim, eps);
}
/// The p-norm of x1 - x2 + eps over the last dimension.
inline Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6,
                                bool keepdim = false) {
  return ops::pairwise_distance(x1, x2, p, eps, keepdim);
}

namespace detail {
// What rms_norm adds to the mean square when no eps is given: the epsilon of the dtype that it computes in.
double rms_norm_eps(ScalarType input, std::optional<double> given);
}  // namespace detail

namespace kernels {
// Tensors are dense. Statistics, weights and their gradients are in the dtype that is computed in (float32 for 16-bit
// inputs). An undefined weight is 1, an undefined bias 0; an undefined output is not wanted.

// Rows of `columns` elements. An undefined `mean` means that none is subtracted: RMS norm.
inline constinit Kernel<void(const Tensor& output, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                             const Tensor& weight, const Tensor& bias, int64_t columns, double eps)>
    layer_norm{"layer_norm"};
inline constinit Kernel<void(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                             const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                             const Tensor& weight, int64_t columns)>
    layer_norm_backward{"layer_norm_backward"};

// How a tensor's channels lie: outer x channels x inner. Row-major (N, C, ...) tensors have the positions in `inner`,
// channels-last ones, and those of two dimensions, have them in `outer`.
struct ChannelLayout {
  int64_t outer = 1, channels = 1, inner = 1;
  int64_t count() const { return outer * inner; }
};
// (input - mean) * invstd * weight + bias for each channel.
inline constinit Kernel<void(const Tensor& output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                             const Tensor& weight, const Tensor& bias, const ChannelLayout&)>
    channel_affine{"batch_norm"};
// Computes the mean, biased variance and 1 / sqrt(var + eps) of each channel first. With `rounded`, mean and invstd are
// rounded to the input's dtype before they are used.
inline constinit Kernel<void(const Tensor& output, const Tensor& mean, const Tensor& var, const Tensor& invstd,
                             const Tensor& input, const Tensor& weight, const Tensor& bias, double eps, bool rounded,
                             const ChannelLayout&)>
    batch_norm{"batch_norm"};
// With `training`, mean and invstd depend on the input.
inline constinit Kernel<void(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                             const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                             const Tensor& weight, bool training, const ChannelLayout&)>
    batch_norm_backward{"batch_norm_backward"};
// batch_norm, then + residual where it is defined, and relu.
using BatchNormRelu = void(const Tensor& output, const Tensor& mean, const Tensor& var, const Tensor& invstd,
                           const Tensor& input, const Tensor& residual, const Tensor& weight, const Tensor& bias,
                           double eps, bool rounded, const ChannelLayout&);
inline constinit Kernel<BatchNormRelu> batch_norm_relu{"batch_norm_relu"};
// `gated` is undefined, or receives what relu lets through of grad_output: the residual's gradient. It is there
// wherever `output` is no longer what batch norm alone gave, and may be `output` itself.
using BatchNormReluBackward = void(const Tensor& grad_input, const Tensor& gated, const Tensor& grad_weight,
                                   const Tensor& grad_bias, const Tensor& grad_output, const Tensor& output,
                                   const Tensor& input, const Tensor& mean, const Tensor& invstd, const Tensor& weight,
                                   const Tensor& bias, const ChannelLayout&);
inline constinit Kernel<BatchNormReluBackward> batch_norm_relu_backward{"batch_norm_relu_backward"};
// The two by the kernels above and element-wise operators, for backends and layouts without a kernel for all at once.
BatchNormRelu batch_norm_relu_in_parts;
BatchNormReluBackward batch_norm_relu_backward_in_parts;

// Input (N, groups, channels in a group, positions); mean and rstd (N, groups), weight and bias (groups * channels).
struct GroupLayout {
  int64_t batch = 1, groups = 1, channels = 1, positions = 1;
};
inline constinit Kernel<void(const Tensor& output, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                             const Tensor& weight, const Tensor& bias, double eps, const GroupLayout&)>
    group_norm{"group_norm"};
inline constinit Kernel<void(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                             const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                             const Tensor& weight, const GroupLayout&)>
    group_norm_backward{"group_norm_backward"};
}  // namespace kernels

}  // namespace rush
