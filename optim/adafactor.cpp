#include "optim/adafactor.h"

#include <algorithm>
#include <cmath>

#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"

namespace rush::optim {

namespace {

// The distance from 1 to the dtype's next number.
double epsilon(ScalarType dtype) {
  const int bits = dtype == kFloat64 ? 52 : dtype == kFloat32 ? 23 : dtype == kFloat16 ? 10 : 7;
  return std::ldexp(1.0, -bits);
}
double root_mean_square(const Tensor& x) { return x.norm().item<double>() / std::sqrt(static_cast<double>(x.numel())); }
void update_mean_squares(const Tensor& mean, const Tensor& g, int64_t dim, double weight) {
  mean.lerp_(g.norm(2, {dim}, /*keepdim=*/true).square_().div_(g.size(dim)), weight);
}

}  // namespace

Tensor AdafactorStep::like(size_t state, const Tensor& param) {
  const bool factored = param.dim() > 1;
  if (factored == (state == 2)) return {};
  if (!factored) return param;
  std::vector<int64_t> sizes = param.sizes().vec();
  sizes[sizes.size() - (state == 0 ? 1 : 2)] = 1;
  return empty(sizes, param.options());
}

void AdafactorStep::compose(Tensor p, const Tensor& grad, const Tensor& row, const Tensor& column, const Tensor& square,
                            int64_t t) const {
  if (p.numel() == 0) return;
  const Tensor g = maximize ? -grad : grad;
  const double eps = std::isnan(eps1) ? epsilon(p.scalar_type()) : eps1;
  const double weight = std::pow(static_cast<double>(t), beta2_decay);
  const double rho = std::min(lr, 1 / std::sqrt(static_cast<double>(t)));
  const double alpha = std::max(eps2, root_mean_square(p)) * rho;
  if (weight_decay != 0) p.mul_(1 - lr * weight_decay);
  Tensor variance;
  if (g.dim() > 1) {
    update_mean_squares(row, g, -1, weight);
    update_mean_squares(column, g, -2, weight);
    variance = row.matmul(column).div_(row.mean({-2}, /*keepdim=*/true).clamp_min_(eps));
  } else {
    square.lerp_(g * g, weight);
    variance = square.clone();
  }
  const Tensor update = g / variance.clamp_min_(eps * eps).sqrt();
  p.add_(update, -alpha / std::max(1.0, root_mean_square(update) / d));
}

}  // namespace rush::optim
