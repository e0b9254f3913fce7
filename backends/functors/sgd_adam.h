// The rules of SGD and Adam: one element's step. Math is the type of the computation: float for the 16-bit ones.
#pragma once
#include <cmath>

#include "backends/functors/steps.h"

namespace rush::functors {

// torch.optim.SGD:
//   g <- +-g + weight_decay p
//   buffer <- momentum buffer + (1 - dampening) g   (g itself the first time)
//   p <- p - lr (g + momentum buffer)               with Nesterov's momentum
//   p <- p - lr buffer                              otherwise
template <class Math>
struct Sgd {
  Math lr, momentum, keep, weight_decay, sign;
  bool nesterov, first;

  RUSH_HD explicit Sgd(const SgdStep& s)
      : lr(static_cast<Math>(s.lr)),
        momentum(static_cast<Math>(s.momentum)),
        keep(static_cast<Math>(1 - s.dampening)),
        weight_decay(static_cast<Math>(s.weight_decay)),
        sign(s.maximize ? Math(-1) : Math(1)),
        nesterov(s.nesterov),
        first(s.first) {}

  // Without momentum.
  RUSH_HD void operator()(Math& p, Math g) const { p -= lr * (sign * g + weight_decay * p); }
  RUSH_HD void operator()(Math& p, Math g, Math& buffer) const {
    g = sign * g + weight_decay * p;
    buffer = first ? g : momentum * buffer + keep * g;
    p -= lr * (nesterov ? g + momentum * buffer : buffer);
  }
};

// What Adam and its kin share:
//   p <- p (1 - lr weight_decay)                  where the weights decay by themselves (decoupled)
//   g <- +-g + weight_decay p                     elsewhere
//   m <- m + (1 - beta1) (g - m)
//   v <- beta2 v + (1 - beta2) g^2
template <class Math>
struct AdamAverages {
  Math mean_weight, square_keep, square_weight, decay, l2, sign;

  template <class Step>
  RUSH_HD explicit AdamAverages(const Step& s)
      : mean_weight(static_cast<Math>(1 - s.beta1)),
        square_keep(static_cast<Math>(s.beta2)),
        square_weight(static_cast<Math>(1 - s.beta2)),
        decay(static_cast<Math>(s.decoupled ? 1 - s.lr * s.weight_decay : 1)),
        l2(static_cast<Math>(s.decoupled ? 0 : s.weight_decay)),
        sign(s.maximize ? Math(-1) : Math(1)) {}

  RUSH_HD void operator()(Math& p, Math& g, Math& m, Math& v) const {
    p *= decay;
    g = sign * g + l2 * p;
    m += mean_weight * (g - m);
    v = square_keep * v + square_weight * g * g;
  }
};

// torch.optim.Adam and AdamW (Kingma and Ba, "Adam: a method for stochastic optimization", 2014; Loshchilov and Hutter,
// "Decoupled weight decay regularization", 2017), with t steps taken:
//   p <- p - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps)
// AMSGrad (Reddi et al., "On the convergence of Adam and beyond", 2018) takes the largest v so far.
template <class Math>
struct Adam {
  AdamAverages<Math> update_averages;
  Math step_size, root_correction, eps;

  RUSH_HD Adam(const AdamStep& s, int64_t step)
      : update_averages(s),
        step_size(static_cast<Math>(s.lr / (1 - std::pow(s.beta1, static_cast<double>(step))))),
        root_correction(static_cast<Math>(std::sqrt(1 - std::pow(s.beta2, static_cast<double>(step))))),
        eps(static_cast<Math>(s.eps)) {}

  RUSH_HD void operator()(Math& p, Math g, Math& m, Math& v) const {
    update_averages(p, g, m, v);
    move(p, m, v);
  }
  // With AMSGrad.
  RUSH_HD void operator()(Math& p, Math g, Math& m, Math& v, Math& max_v) const {
    update_averages(p, g, m, v);
    max_v = v > max_v ? v : max_v;
    move(p, m, max_v);
  }

 private:
  RUSH_HD void move(Math& p, Math m, Math v) const { p -= step_size * m / (std::sqrt(v) / root_correction + eps); }
};

}  // namespace rush::functors
