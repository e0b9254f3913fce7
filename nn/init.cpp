#include "nn/init.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "core/error/warning.h"
#include "core/ops/basic.h"
#include "core/ops/linalg/linalg.h"
#include "core/ops/random/random_factories.h"

namespace rush::nn::init {

double calculate_gain(NonlinearityType nonlinearity, double param) {
  using enumtype::holds;
  if (holds<enumtype::kTanh>(nonlinearity)) return 5.0 / 3.0;
  if (holds<enumtype::kReLU>(nonlinearity)) return std::sqrt(2.0);
  if (holds<enumtype::kLeakyReLU>(nonlinearity)) return std::sqrt(2.0 / (1 + param * param));
  if (holds<enumtype::kSELU>(nonlinearity)) return 3.0 / 4.0;
  return 1.0;
}

std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  RUSH_CHECK_VALUE(tensor.dim() >= 2, "init: fan in and fan out need at least 2 dimensions, got shape ",
                   tensor.sizes());
  if (tensor.numel() == 0) {
    RUSH_WARN_ONCE_PER_CALLER("init: a tensor of shape ", tensor.sizes(), " has no elements to initialise");
  }
  int64_t receptive_field = 1;
  for (int64_t d = 2; d < tensor.dim(); ++d) receptive_field *= tensor.size(d);
  return {tensor.size(1) * receptive_field, tensor.size(0) * receptive_field};
}

Tensor uniform_(Tensor tensor, double low, double high) {
  const NoGradGuard no_grad;
  return tensor.uniform_(low, high);
}

Tensor normal_(Tensor tensor, double mean, double std) {
  const NoGradGuard no_grad;
  return tensor.normal_(mean, std);
}

// For what is computed in another dtype and copied.
static void check_real(const char* function, const Tensor& tensor) {
  RUSH_CHECK_TYPE(tensor.is_floating_point(), function, ": expected a floating point tensor, got ",
                  tensor.scalar_type());
}

Tensor trunc_normal_(Tensor tensor, double mean, double std, double a, double b) {
  check_real("trunc_normal_", tensor);
  RUSH_CHECK_VALUE(a <= b, "trunc_normal_: expected a <= b, got [", a, ", ", b, "]");
  if (mean < a - 2 * std || mean > b + 2 * std) {
    RUSH_WARN_ONCE_PER_CALLER("trunc_normal_: the mean is more than two deviations from [", a, ", ", b,
                              "], where the numbers may not be distributed as they should");
  }
  const NoGradGuard no_grad;
  const auto normal_cdf = [](double x) { return (1 + std::erf(x / std::sqrt(2.0))) / 2; };
  const double low = normal_cdf((a - mean) / std), high = normal_cdf((b - mean) / std);
  // Uniform in the cumulative distribution's range of [a, b], mapped back through its inverse: PyTorch's numbers. Those
  // of 16 bits are drawn in float32, since a uniform one of bfloat16 is the least of its range, which is mapped to `a`,
  // once in 250 times.
  Tensor drawn = tensor.element_size() == 2 ? tensor.to(kFloat32) : tensor;
  drawn.uniform_(2 * low - 1, 2 * high - 1);
  drawn.erfinv_().mul_(std * std::sqrt(2.0)).add_(mean).clamp_(a, b);
  return drawn.is_same(tensor) ? tensor : tensor.copy_(drawn);
}

Tensor constant_(Tensor tensor, const Scalar& value) {
  const NoGradGuard no_grad;
  return tensor.fill_(value);
}

Tensor ones_(Tensor tensor) { return constant_(std::move(tensor), 1); }
Tensor zeros_(Tensor tensor) { return constant_(std::move(tensor), 0); }

Tensor eye_(Tensor matrix) {
  RUSH_CHECK_VALUE(matrix.dim() == 2, "eye_: expected a matrix, got shape ", matrix.sizes());
  const NoGradGuard no_grad;
  matrix.zero_();
  matrix.diagonal().fill_(1);
  return matrix;
}

Tensor dirac_(Tensor tensor, int64_t groups) {
  RUSH_CHECK_VALUE(tensor.dim() >= 3 && tensor.dim() <= 5, "dirac_: expected 3, 4 or 5 dimensions, got shape ",
                   tensor.sizes());
  RUSH_CHECK_VALUE(groups >= 1 && tensor.size(0) % groups == 0, "dirac_: ", tensor.size(0),
                   " output channels cannot be divided into ", groups, " groups");
  const NoGradGuard no_grad;
  tensor.zero_();
  const int64_t outputs_per_group = tensor.size(0) / groups;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t channel = 0; channel < std::min(outputs_per_group, tensor.size(1)); ++channel) {
      Tensor kernel = tensor[group * outputs_per_group + channel][channel];
      while (kernel.dim() > 0) kernel = kernel.select(0, kernel.size(0) / 2);
      kernel.fill_(1);
    }
  }
  return tensor;
}

Tensor xavier_uniform_(Tensor tensor, double gain) {
  const auto [fan_in, fan_out] = _calculate_fan_in_and_fan_out(tensor);
  const double std = gain * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out));
  const double bound = std::sqrt(3.0) * std;
  return uniform_(std::move(tensor), -bound, bound);
}

Tensor xavier_normal_(Tensor tensor, double gain) {
  const auto [fan_in, fan_out] = _calculate_fan_in_and_fan_out(tensor);
  return normal_(std::move(tensor), 0, gain * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out)));
}

static double kaiming_deviation(const Tensor& tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  const auto [fan_in, fan_out] = _calculate_fan_in_and_fan_out(tensor);
  const int64_t fan = enumtype::holds<enumtype::kFanIn>(mode) ? fan_in : fan_out;
  return calculate_gain(nonlinearity, a) / std::sqrt(static_cast<double>(fan));
}

Tensor kaiming_uniform_(Tensor tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  if (tensor.numel() == 0) return tensor;
  const double bound = std::sqrt(3.0) * kaiming_deviation(tensor, a, mode, nonlinearity);
  return uniform_(std::move(tensor), -bound, bound);
}

Tensor kaiming_normal_(Tensor tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  if (tensor.numel() == 0) return tensor;
  const double std = kaiming_deviation(tensor, a, mode, nonlinearity);
  return normal_(std::move(tensor), 0, std);
}

Tensor orthogonal_(Tensor tensor, double gain) {
  check_real("orthogonal_", tensor);
  RUSH_CHECK_VALUE(tensor.dim() >= 2, "orthogonal_: expected at least 2 dimensions, got shape ", tensor.sizes());
  if (tensor.numel() == 0) return tensor;
  const NoGradGuard no_grad;
  const int64_t rows = tensor.size(0), columns = tensor.numel() / rows;
  // The orthonormal factor of a matrix of normal numbers whose triangular factor has a positive diagonal, which is
  // uniformly distributed (Mezzadri, "How to generate random matrices from the classical compact groups", 2007).
  const Tensor drawn = randn({rows, columns}, tensor.options().requires_grad(false)).to(kFloat64);
  const bool wide = rows < columns;
  const auto [q, r] = linalg_qr(wide ? drawn.t() : drawn);  // (many, few), (few, few)
  q.mul_(r.diagonal().sign());
  tensor.copy_((wide ? q.t() : q).reshape(tensor.sizes()).mul(gain));
  return tensor;
}

Tensor sparse_(Tensor matrix, double sparsity, double std) {
  RUSH_CHECK_VALUE(matrix.dim() == 2, "sparse_: expected a matrix, got shape ", matrix.sizes());
  RUSH_CHECK_VALUE(sparsity >= 0 && sparsity <= 1, "sparse_: expected a sparsity from 0 to 1, got ", sparsity);
  const NoGradGuard no_grad;
  const auto zeros_each = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(matrix.size(0))));
  matrix.normal_(0, std);
  for (int64_t column = 0; column < matrix.size(1); ++column) {
    const Tensor rows = randperm(matrix.size(0), matrix.options().dtype(kInt64).requires_grad(false));
    matrix.select(1, column).index_fill_(0, rows.narrow(0, 0, zeros_each), 0);
  }
  return matrix;
}

}  // namespace rush::nn::init
