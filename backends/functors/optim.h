// One element's step of an optimiser. Math is the type that the computation is done in: float for the 16-bit ones.
#pragma once
#include <cmath>

#include "core/macros.h"
#include "core/ops/optim/optim.h"

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

// torch.optim.Adadelta (Zeiler, "ADADELTA: an adaptive learning rate method", 2012):
//   g <- +-g + weight_decay p
//   v <- rho v + (1 - rho) g^2
//   d = sqrt(u + eps) / sqrt(v + eps) g
//   u <- rho u + (1 - rho) d^2
//   p <- p - lr d
template <class Math>
struct Adadelta {
  Math lr, keep, weight, eps, weight_decay, sign;

  RUSH_HD explicit Adadelta(const AdadeltaStep& s)
      : lr(static_cast<Math>(s.lr)),
        keep(static_cast<Math>(s.rho)),
        weight(static_cast<Math>(1 - s.rho)),
        eps(static_cast<Math>(s.eps)),
        weight_decay(static_cast<Math>(s.weight_decay)),
        sign(s.maximize ? Math(-1) : Math(1)) {}

  RUSH_HD void operator()(Math& p, Math g, Math& v, Math& u) const {
    g = sign * g + weight_decay * p;
    v = keep * v + weight * g * g;
    const Math delta = std::sqrt(u + eps) / std::sqrt(v + eps) * g;
    u = keep * u + weight * delta * delta;
    p -= lr * delta;
  }
};

// torch.optim.RMSprop (Hinton, "Neural networks for machine learning", lecture 6, 2012):
//   g <- +-g + weight_decay p
//   v <- alpha v + (1 - alpha) g^2
//   a <- a + (1 - alpha) (g - a), w = v - a^2       if centered (Graves, "Generating sequences with recurrent neural
//                                                   networks", 2013); w = v otherwise
//   buffer <- momentum buffer + g / (sqrt(w) + eps), p <- p - lr buffer      with momentum
//   p <- p - lr g / (sqrt(w) + eps)                                          otherwise
template <class Math>
struct RmsProp {
  Math lr, keep, weight, eps, weight_decay, momentum, sign;
  bool centered;

  RUSH_HD explicit RmsProp(const RmsPropStep& s)
      : lr(static_cast<Math>(s.lr)),
        keep(static_cast<Math>(s.alpha)),
        weight(static_cast<Math>(1 - s.alpha)),
        eps(static_cast<Math>(s.eps)),
        weight_decay(static_cast<Math>(s.weight_decay)),
        momentum(static_cast<Math>(s.momentum)),
        sign(s.maximize ? Math(-1) : Math(1)),
        centered(s.centered) {}

  RUSH_HD void operator()(Math& p, Math g, Math& v) const {
    update_square(p, g, v);
    p -= lr * (g / (std::sqrt(v) + eps));
  }
  // Centered, or with momentum.
  RUSH_HD void operator()(Math& p, Math g, Math& v, Math& other) const {
    update_square(p, g, v);
    if (centered) {
      p -= lr * (g / (deviation(g, v, other) + eps));
    } else {
      other = momentum * other + g / (std::sqrt(v) + eps);
      p -= lr * other;
    }
  }
  // Both.
  RUSH_HD void operator()(Math& p, Math g, Math& v, Math& a, Math& buffer) const {
    update_square(p, g, v);
    buffer = momentum * buffer + g / (deviation(g, v, a) + eps);
    p -= lr * buffer;
  }

 private:
  RUSH_HD void update_square(Math p, Math& g, Math& v) const {
    g = sign * g + weight_decay * p;
    v = keep * v + weight * g * g;
  }
  RUSH_HD Math deviation(Math g, Math v, Math& a) const {
    a += weight * (g - a);
    return std::sqrt(v - a * a);
  }
};

// Calls run with the lists of states that such a step keeps beside the squares.
template <class Run>
void with_states(const RmsPropStep& step, TensorList means, TensorList buffers, const Run& run) {
  const bool momentum = step.momentum > 0;
  if (step.centered && momentum) {
    run(means, buffers);
  } else if (step.centered || momentum) {
    run(momentum ? buffers : means);
  } else {
    run();
  }
}

// torch.optim.Adagrad (Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic
// optimization", 2011), at step t:
//   g <- +-g + weight_decay p
//   s <- s + g^2
//   p <- p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)
template <class Math>
struct Adagrad {
  Math lr, eps, weight_decay, sign;

  RUSH_HD Adagrad(const AdagradStep& s, int64_t step)
      : lr(static_cast<Math>(s.lr / (1 + static_cast<double>(step - 1) * s.lr_decay))),
        eps(static_cast<Math>(s.eps)),
        weight_decay(static_cast<Math>(s.weight_decay)),
        sign(s.maximize ? Math(-1) : Math(1)) {}

  RUSH_HD void operator()(Math& p, Math g, Math& sum) const {
    g = sign * g + weight_decay * p;
    sum += g * g;
    p -= lr * (g / (std::sqrt(sum) + eps));
  }
};

// torch.optim.NAdam (Dozat, "Incorporating Nesterov momentum into Adam", 2016, algorithm 2), at step t, with the
// momenta mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2) and the product P of mu_1 to mu_t:
//   p <- p - lr ((1 - mu_t) / (1 - P) g + mu_t+1 / (1 - P mu_t+1) m) / (sqrt(v / (1 - beta2^t)) + eps)
template <class Math>
struct NAdam {
  AdamAverages<Math> update_averages;
  Math square_correction, grad_step, mean_step, eps;

  RUSH_HD NAdam(const NAdamStep& s, int64_t step, double mu_product)
      : update_averages(s),
        square_correction(static_cast<Math>(1 - std::pow(s.beta2, static_cast<double>(step)))),
        grad_step(static_cast<Math>(s.lr * (1 - s.momentum_at(step)) / (1 - mu_product))),
        mean_step(static_cast<Math>(s.lr * s.momentum_at(step + 1) / (1 - mu_product * s.momentum_at(step + 1)))),
        eps(static_cast<Math>(s.eps)) {}

  RUSH_HD void operator()(Math& p, Math g, Math& m, Math& v) const {
    update_averages(p, g, m, v);
    const Math scale = std::sqrt(v / square_correction) + eps;
    p -= grad_step * g / scale;
    p -= mean_step * m / scale;
  }
};

// torch.optim.RAdam (Liu et al., "On the variance of the adaptive learning rate and beyond", 2019, algorithm 2), at
// step t; the length is that of the simple moving average that has the variance of this exponential one, and r
// rectifies it:
//   p <- p - lr r sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + eps)     where the length is above 5
//   p <- p - lr / (1 - beta1^t) m                                           before
template <class Math>
struct RAdam {
  AdamAverages<Math> update_averages;
  Math step_size, eps;
  bool rectified;

  RUSH_HD RAdam(const RAdamStep& s, int64_t step) : update_averages(s), eps(static_cast<Math>(s.eps)) {
    const auto t = static_cast<double>(step);
    const double keep = std::pow(s.beta2, t), correction1 = 1 - std::pow(s.beta1, t), correction2 = 1 - keep;
    const double last = 2 / (1 - s.beta2) - 1;  // the length in the end
    const double length = last - 2 * t * keep / correction2;
    rectified = length > 5;
    const double rectification =
        rectified ? std::sqrt((length - 4) * (length - 2) * last / ((last - 4) * (last - 2) * length) * correction2)
                  : 1;
    step_size = static_cast<Math>(s.lr * rectification / correction1);
  }

  RUSH_HD void operator()(Math& p, Math g, Math& m, Math& v) const {
    update_averages(p, g, m, v);
    p -= rectified ? step_size * m / (std::sqrt(v) + eps) : step_size * m;
  }
};

}  // namespace rush::functors
