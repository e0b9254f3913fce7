// The rules of optimisers: one element's step. Math is the type that the computation is done in: float for the 16-bit
// ones. Those of SGD and Adam stand in sgd_adam.h, the options of all in steps.h.
#pragma once
#include <array>
#include <cmath>
#include <type_traits>

#include "backends/functors/sgd_adam.h"
#include "core/macros.h"
#include "core/ops/optim/optim.h"

namespace rush::functors {

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
  RUSH_HD void operator()(Math& p, Math g, Math& v, Math& buffer, Math& a) const {
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

// The momentum mu of step t: it grows from beta1 / 2 to beta1.
RUSH_HD inline double momentum_at(const NAdamStep& s, int64_t t) {
  return s.beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * s.momentum_decay));
}

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
        grad_step(static_cast<Math>(s.lr * (1 - momentum_at(s, step)) / (1 - mu_product))),
        mean_step(static_cast<Math>(s.lr * momentum_at(s, step + 1) / (1 - mu_product * momentum_at(s, step + 1)))),
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

// torch.optim.Adamax (Kingma and Ba, 2014, section 7.1), at step t; u is the infinity norm of the gradients:
//   m <- m + (1 - beta1) (g - m)
//   u <- max(beta2 u, |g| + eps)
//   p <- p - lr / (1 - beta1^t) m / u
template <class Math>
struct Adamax {
  Math step_size, mean_weight, keep, eps, weight_decay, sign;

  RUSH_HD Adamax(const AdamaxStep& s, int64_t step)
      : step_size(static_cast<Math>(s.lr / (1 - std::pow(s.beta1, static_cast<double>(step))))),
        mean_weight(static_cast<Math>(1 - s.beta1)),
        keep(static_cast<Math>(s.beta2)),
        eps(static_cast<Math>(s.eps)),
        weight_decay(static_cast<Math>(s.weight_decay)),
        sign(s.maximize ? Math(-1) : Math(1)) {}

  RUSH_HD void operator()(Math& p, Math g, Math& m, Math& u) const {
    g = sign * g + weight_decay * p;
    m += mean_weight * (g - m);
    const Math decayed = keep * u, size = std::abs(g) + eps;
    u = decayed > size ? decayed : size;
    p -= step_size * m / u;
  }
};

// torch.optim.ASGD (Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992), at step t,
// with eta = lr / (1 + lambd lr (t - 1))^alpha and mu = 1 / max(1, t - 1 - t0):
//   p <- p (1 - lambd eta) - eta (+-g + weight_decay p)
//   a <- a + mu (p - a)
template <class Math>
struct Asgd {
  Math eta, decay, mu, weight_decay, sign;

  RUSH_HD Asgd(const AsgdStep& s, int64_t step)
      : weight_decay(static_cast<Math>(s.weight_decay)), sign(s.maximize ? Math(-1) : Math(1)) {
    const auto earlier = static_cast<double>(step - 1);
    const double rate = s.lr / std::pow(1 + s.lambd * s.lr * earlier, s.alpha);
    eta = static_cast<Math>(rate);
    decay = static_cast<Math>(1 - s.lambd * rate);
    mu = static_cast<Math>(earlier - s.t0 > 1 ? 1 / (earlier - s.t0) : 1);
  }

  RUSH_HD void operator()(Math& p, Math g, Math& average) const {
    g = sign * g + weight_decay * p;
    p = p * decay - eta * g;
    average = mu == 1 ? p : average + mu * (p - average);
  }
};

// torch.optim.Rprop (Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning: the RPROP
// algorithm", 1993); each element has a step size, which grows while its gradient keeps its sign:
//   size <- size eta_plus or eta_minus, as g and the last g have one sign or two, within its bounds
//   g <- 0                            where they have two
//   p <- p - size sign(g)
template <class Math>
struct Rprop {
  Math eta_minus, eta_plus, smallest, largest, sign;

  RUSH_HD explicit Rprop(const RpropStep& s)
      : eta_minus(static_cast<Math>(s.eta_minus)),
        eta_plus(static_cast<Math>(s.eta_plus)),
        smallest(static_cast<Math>(s.step_size_min)),
        largest(static_cast<Math>(s.step_size_max)),
        sign(s.maximize ? Math(-1) : Math(1)) {}

  RUSH_HD void operator()(Math& p, Math g, Math& last, Math& size) const {
    g = sign * g;
    const Math product = g * last;
    size *= product > 0 ? eta_plus : product < 0 ? eta_minus : Math(1);
    size = size < smallest ? smallest : size > largest ? largest : size;
    g = product < 0 ? Math(0) : g;
    p -= g > 0 ? size : g < 0 ? -size : Math(0);
    last = g;
  }
};

// ---- the table of rules

template <class StepStruct, template <class> class FunctorTemplate>
struct StepRule {
  using Step = StepStruct;
  template <class Math>
  using Functor = FunctorTemplate<Math>;
};

// Calls f(rule) for each row.
template <class F>
void for_each_step_rule(const F& f) {
  f(StepRule<SgdStep, Sgd>());
  f(StepRule<AdamStep, Adam>());
  f(StepRule<AdadeltaStep, Adadelta>());
  f(StepRule<RmsPropStep, RmsProp>());
  f(StepRule<AdagradStep, Adagrad>());
  f(StepRule<NAdamStep, NAdam>());
  f(StepRule<RAdamStep, RAdam>());
  f(StepRule<AdamaxStep, Adamax>());
  f(StepRule<AsgdStep, Asgd>());
  f(StepRule<RpropStep, Rprop>());
}

template <class Functor, class Step>
inline constexpr bool needs_product = std::is_constructible_v<Functor, const Step&, int64_t, double>;
template <class Functor, class Step>
inline constexpr bool needs_step =
    needs_product<Functor, Step> || std::is_constructible_v<Functor, const Step&, int64_t>;

// The functor of a parameter's step number t.
template <class Functor, class Step>
RUSH_HD Functor make_functor(const Step& step, int64_t t, double mu_product) {
  if constexpr (needs_product<Functor, Step>) {
    return Functor(step, t, mu_product);
  } else if constexpr (needs_step<Functor, Step>) {
    return Functor(step, t);
  } else {
    return Functor(step);
  }
}
// Throws ValueError unless there are as many numbers as the functors need.
template <class Functor, class Step>
void check_numbers(TensorList params, size_t steps, size_t mu_products) {
  if (needs_step<Functor, Step>) native::check_step_numbers(Step::kName, params, steps);
  if (needs_product<Functor, Step>) native::check_step_numbers(Step::kName, params, mu_products);
}

template <class Functor, class Math, class... States>
concept Takes = requires(const Functor& functor, Math& p, States&... states) {
  functor(p, p, states...);
};

// Calls run with the lists of those states that the step uses.
template <class Functor, class Math, class Step, class Run>
void with_states(const Step& step, const std::array<TensorList, 3>& states, const Run& run) {
  std::array<TensorList, 3> used;
  size_t count = 0;
  for (size_t i = 0; i < states.size(); ++i) {
    if (uses_state(step, i)) used[count++] = states[i];
  }
  if constexpr (Takes<Functor, Math>) {
    if (count == 0) return run();
  }
  if constexpr (Takes<Functor, Math, Math>) {
    if (count == 1) return run(used[0]);
  }
  if constexpr (Takes<Functor, Math, Math, Math>) {
    if (count == 2) return run(used[0], used[1]);
  }
  if constexpr (Takes<Functor, Math, Math, Math, Math>) {
    if (count == 3) return run(used[0], used[1], used[2]);
  }
}

// Calls run(step_of, states...) with the lists of those states that the step uses; step_of(i) makes the functor of
// parameter number i. Throws as `check_numbers` does.
template <class Rule, class Math, class Run>
void with_step_functors(const typename Rule::Step& step, TensorList params, const std::array<TensorList, 3>& states,
                        ArrayRef<int64_t> steps, ArrayRef<double> mu_products, const Run& run) {
  using Step = typename Rule::Step;
  using Functor = typename Rule::template Functor<Math>;
  check_numbers<Functor, Step>(params, steps.size(), mu_products.size());
  const auto step_of = [&](size_t i) {
    return make_functor<Functor>(step, needs_step<Functor, Step> ? steps[i] : 0,
                                 needs_product<Functor, Step> ? mu_products[i] : 0);
  };
  with_states<Functor, Math>(step, states, [&](const auto&... used) { run(step_of, used...); });
}

}  // namespace rush::functors
