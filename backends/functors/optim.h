// One element's step of an optimiser. Math is the type that the computation is done in: float for the 16-bit ones.
#pragma once
#include <cmath>

#include "core/macros.h"
#include "core/ops/optim.h"

namespace rush::functors {

// torch.optim.SGD:
//   g <- +-g + weight_decay p
//   buffer <- momentum buffer + (1 - dampening) g   (g itself the first time)
//   p <- p - lr (g + momentum buffer)               with Nesterov's momentum
//   p <- p - lr buffer                              otherwise
template <class Math>
struct Sgd {
  Math lr, momentum, keep, weight_decay;
  bool nesterov, maximize, first, has_momentum;

  explicit Sgd(const SgdStep& s)
      : lr(static_cast<Math>(s.lr)),
        momentum(static_cast<Math>(s.momentum)),
        keep(static_cast<Math>(1 - s.dampening)),
        weight_decay(static_cast<Math>(s.weight_decay)),
        nesterov(s.nesterov),
        maximize(s.maximize),
        first(s.first),
        has_momentum(s.momentum != 0) {}

  RUSH_HD void operator()(Math& p, Math g, Math& buffer) const {
    if (maximize) g = -g;
    g += weight_decay * p;
    if (has_momentum) {
      buffer = first ? g : momentum * buffer + keep * g;
      g = nesterov ? g + momentum * buffer : buffer;
    }
    p -= lr * g;
  }
};

// torch.optim.Adam and AdamW (Kingma and Ba, "Adam: a method for stochastic optimization", 2014; Loshchilov and Hutter,
// "Decoupled weight decay regularization", 2017), with t steps taken:
//   p <- p (1 - lr weight_decay)                  AdamW
//   g <- +-g + weight_decay p                     Adam
//   m <- m + (1 - beta1) (g - m)
//   v <- beta2 v + (1 - beta2) g^2
//   p <- p - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps)
// AMSGrad (Reddi et al., "On the convergence of Adam and beyond", 2018) takes the largest v so far in the last line.
template <class Math>
struct Adam {
  Math mean_weight, square_keep, square_weight, step_size, root_correction, eps, decay, l2;
  bool amsgrad, maximize;

  Adam(const AdamStep& s, int64_t step)
      : mean_weight(static_cast<Math>(1 - s.beta1)),
        square_keep(static_cast<Math>(s.beta2)),
        square_weight(static_cast<Math>(1 - s.beta2)),
        step_size(static_cast<Math>(s.lr / (1 - std::pow(s.beta1, static_cast<double>(step))))),
        root_correction(static_cast<Math>(std::sqrt(1 - std::pow(s.beta2, static_cast<double>(step))))),
        eps(static_cast<Math>(s.eps)),
        decay(static_cast<Math>(s.decoupled ? 1 - s.lr * s.weight_decay : 1)),
        l2(static_cast<Math>(s.decoupled ? 0 : s.weight_decay)),
        amsgrad(s.amsgrad),
        maximize(s.maximize) {}

  RUSH_HD void operator()(Math& p, Math g, Math& m, Math& v, Math& max_v) const {
    if (maximize) g = -g;
    p *= decay;
    g += l2 * p;
    m += mean_weight * (g - m);
    v = square_keep * v + square_weight * g * g;
    Math largest = v;
    if (amsgrad) largest = max_v = v > max_v ? v : max_v;
    p -= step_size * m / (std::sqrt(largest) / root_correction + eps);
  }
};

}  // namespace rush::functors
