#include "core/ops/linalg/distance.h"

#include <cmath>
#include <limits>

#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"
#include "core/ops/pointwise/power.h"

namespace rush {

namespace {

// d |a - b|_p by a = sign(a - b) (|a - b| / |a - b|_p)^(p - 1), and 0 where the distance is 0.
struct CdistBackward final : Node {
  Saved x1, x2, result;
  double p = 2;
  RUSH_SAVED(x1, x2, result)
  auto saved_arguments() { return std::tie(x1, x2, p, std::ignore); }
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
  Tensors apply(const Tensors& g) override {
    if (p == 2) return euclidean(g[0]);
    const Tensor difference = x1.get().unsqueeze(-2) - x2.get().unsqueeze(-3);  // (..., n, m, d)
    const Tensor term = slope(difference, result.get().unsqueeze(-1)) * g[0].unsqueeze(-1);
    return {term.sum(-2), -term.sum(-3)};
  }

 private:
  // Without a number for every pair and dimension: the sum over j of w_ij (a_i - b_j), w = g / distance.
  Tensors euclidean(const Tensor& g) const {
    const Tensor a = x1.get(), b = x2.get(), distance = result.get();
    const Tensor w = g / distance.masked_fill(distance.eq(0), std::numeric_limits<double>::infinity());
    return {a * w.sum(-1).unsqueeze(-1) - w.matmul(b), b * w.sum(-2).unsqueeze(-1) - w.transpose(-2, -1).matmul(a)};
  }
  Tensor slope(const Tensor& difference, const Tensor& distance) const {
    if (p == 0) return difference * 0;
    const Tensor sign = difference.sign(), size = difference.abs();
    if (p == 1) return sign;
    if (std::isinf(p)) return sign * size.eq(distance);
    // The subgradient at a difference of 0 is 0, even if the derivative is infinite there (p < 1).
    const double absent = p < 1 ? std::numeric_limits<double>::infinity() : 0;
    const Tensor ratio = size.masked_fill(size.eq(0), absent) / distance.masked_fill(distance.eq(0), 1);
    return sign * ratio.pow(p - 1);
  }
};

}  // namespace

void register_distance_derivatives(Registry& r) { derive<ops::cdist, CdistBackward>(r); }

}  // namespace rush
