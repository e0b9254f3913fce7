// The learning rate of a run that trains a transformer.
#pragma once

#include <cstdint>

namespace examples {

/// A factor of the highest learning rate: a linear rise over `warmup_iters`, then half a cosine that ends at `lowest`
/// at iteration `decay_iters` and stays there. Loshchilov and Hutter, "SGDR" (2017), without restarts.
struct WarmupCosine {
  int64_t warmup_iters, decay_iters;
  double lowest;  // in [0, 1]

  double operator()(int64_t iteration) const;
};

}  // namespace examples
