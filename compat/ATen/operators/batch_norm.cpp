#include "ATen/operators/batch_norm.h"

namespace rush {
inline namespace aten {

namespace {
// (mean, biased variance) of each channel.
std::tuple<Tensor, Tensor> channel_statistics(const Tensor& input) {
  RUSH_CHECK_VALUE(input.dim() >= 2, "batch_norm: needs an input (N, C, ...), got ", input.dim(), " dimensions");
  DimVector others;
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d != 1) others.push_back(d);
  }
  return {input.mean(IntArrayRef(others)), input.var(IntArrayRef(others), 0)};
}
void update_running(const std::optional<Tensor>& running, const Tensor& now, double momentum) {
  if (given(running)) running->mul_(1 - momentum).add_(now.to(running->scalar_type()), momentum);
}
}  // namespace

std::tuple<Tensor, Tensor> batch_norm_stats(const Tensor& input, double eps) {
  const auto [mean, variance] = channel_statistics(input);
  return {mean, variance.add(eps).rsqrt()};
}
Tensor batch_norm_elemt(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                        const Tensor& mean, const Tensor& invstd, double /*eps*/) {
  RUSH_CHECK_VALUE(input.dim() >= 2, "batch_norm_elemt: needs an input (N, C, ...), got ", input.dim(), " dimensions");
  std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = input.size(1);
  Tensor out = input.sub(mean.view(shape)).mul(invstd.view(shape));
  if (given(weight)) out = out.mul(weight->view(shape));
  return given(bias) ? out.add(bias->view(shape)) : out;
}
std::tuple<Tensor, Tensor> batch_norm_gather_stats_with_counts(const Tensor& /*input*/, const Tensor& mean,
                                                               const Tensor& invstd,
                                                               const std::optional<Tensor>& running_mean,
                                                               const std::optional<Tensor>& running_var,
                                                               double momentum, double eps, const Tensor& counts) {
  const Tensor weights = counts.to(mean.scalar_type()).view({-1, 1});  // (devices, 1)
  const Tensor total = weights.sum();
  const Tensor together = mean.mul(weights).sum(0).div(total);
  const Tensor variances = invstd.square().reciprocal().sub(eps).add(mean.sub(together).square());
  const Tensor squares = variances.mul(weights).sum(0);
  update_running(running_mean, together, momentum);
  update_running(running_var, squares.div(total.sub(1)), momentum);
  return {together, squares.div(total).add(eps).rsqrt()};
}
std::tuple<Tensor, Tensor> batch_norm_gather_stats(const Tensor& input, const Tensor& mean, const Tensor& invstd,
                                                   const std::optional<Tensor>& running_mean,
                                                   const std::optional<Tensor>& running_var, double momentum,
                                                   double eps, int64_t count) {
  const Tensor counts = full({mean.size(0)}, count, mean.options());
  return batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts);
}
std::tuple<Tensor, Tensor> batch_norm_update_stats(const Tensor& input, const std::optional<Tensor>& running_mean,
                                                   const std::optional<Tensor>& running_var, double momentum) {
  const auto [mean, variance] = channel_statistics(input);
  const auto count = static_cast<double>(input.numel() / input.size(1));
  update_running(running_mean, mean, momentum);
  update_running(running_var, variance.mul(count / (count - 1)), momentum);
  return {mean, variance};
}
std::tuple<Tensor, Tensor, Tensor, Tensor> cudnn_batch_norm(const Tensor& input, const Tensor& weight,
                                                            const std::optional<Tensor>& bias,
                                                            const std::optional<Tensor>& running_mean,
                                                            const std::optional<Tensor>& running_var, bool training,
                                                            double exponential_average_factor, double epsilon) {
  const auto [out, mean, invstd] =
      native_batch_norm(input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon);
  return {out, mean, invstd, empty({0}, input.options().dtype(kUInt8))};  // the last is cuDNN's workspace
}
Tensor cudnn_convolution(const Tensor& self, const Tensor& weight, IntArrayRef padding, IntArrayRef stride,
                         IntArrayRef dilation, int64_t groups, bool /*benchmark*/, bool /*deterministic*/,
                         bool /*allow_tf32*/) {
  return convolution(self, weight, {}, stride, padding, dilation, false, 0, groups);
}
Tensor cudnn_convolution_transpose(const Tensor& self, const Tensor& weight, IntArrayRef padding,
                                   IntArrayRef output_padding, IntArrayRef stride, IntArrayRef dilation, int64_t groups,
                                   bool /*benchmark*/, bool /*deterministic*/, bool /*allow_tf32*/) {
  return convolution(self, weight, {}, stride, padding, dilation, true, output_padding, groups);
}
Tensor mkldnn_convolution(const Tensor& self, const Tensor& weight, const std::optional<Tensor>& bias,
                          IntArrayRef padding, IntArrayRef stride, IntArrayRef dilation, int64_t groups) {
  return convolution(self, weight, bias, stride, padding, dilation, false, 0, groups);
}
Tensor cudnn_convolution_relu(const Tensor& self, const Tensor& weight, const std::optional<Tensor>& bias,
                              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return convolution(self, weight, bias, stride, padding, dilation, false, 0, groups).relu();
}
Tensor cudnn_convolution_add_relu(const Tensor& self, const Tensor& weight, const Tensor& z,
                                  const std::optional<Scalar>& alpha, const std::optional<Tensor>& bias,
                                  IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return convolution(self, weight, bias, stride, padding, dilation, false, 0, groups).add(z, alpha.value_or(1)).relu();
}
Tensor cudnn_affine_grid_generator(const Tensor& theta, int64_t N, int64_t C, int64_t H, int64_t W) {
  return affine_grid_generator(theta, {N, C, H, W}, true);
}
Tensor cudnn_grid_sampler(const Tensor& self, const Tensor& grid) { return grid_sampler(self, grid, 0, 0, true); }
}  // namespace aten
}  // namespace rush
