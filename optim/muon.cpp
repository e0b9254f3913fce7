#include "optim/muon.h"

#include <algorithm>
#include <cmath>

#include "core/ops/pointwise/binary.h"

namespace rush::optim {

Tensor MuonStep::orthogonal(const Tensor& g) const {
  const bool tall = g.size(0) > g.size(1);
  Tensor x = (tall ? g.t() : g).to(kBFloat16);
  x = x / x.norm().clamp_min(eps);
  for (int64_t k = 0; k < static_cast<int64_t>(ns_steps); ++k) {
    const Tensor gram = x.mm(x.t());
    x = x.addmm(gram.addmm(gram, gram, b, c), x, a);
  }
  return tall ? x.t() : x;
}

void MuonStep::compose(Tensor p, const Tensor& g, Tensor m, const Tensor&, const Tensor&, int64_t) const {
  RUSH_CHECK_VALUE(p.dim() == 2, "Muon: it optimises matrices, got a parameter of shape ", p.sizes(),
                   "; give the others to another optimiser");
  RUSH_CHECK_VALUE(ns_steps >= 0 && ns_steps < 100, "Muon: ns_steps must be in [0, 100), got ", ns_steps);
  m.lerp_(g, 1 - momentum);
  const Tensor update = orthogonal(nesterov ? g.lerp(m, momentum) : m);
  const auto rows = static_cast<double>(p.size(0)), columns = static_cast<double>(p.size(1));
  const double ratio =
      match_rms_adamw ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  p.mul_(1 - lr * weight_decay);
  p.add_(update, -lr * ratio);
}

}  // namespace rush::optim
