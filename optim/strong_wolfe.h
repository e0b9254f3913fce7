// The line search of LBFGS.
#pragma once
#include <functional>
#include <utility>

#include "core/tensor.h"

namespace rush::optim {

/// A point of the line x + step * direction: the loss there, its gradient, and the slope along the line.
struct LinePoint {
  double step = 0;
  double loss = 0;
  Tensor gradient;
  double slope = 0;
};

/// The loss and the gradient `step` along the line.
using LineFunction = std::function<std::pair<double, Tensor>(double step)>;

struct LineSearchResult {
  LinePoint point;
  int64_t evaluations;
};

/// Looks for a step that fulfils the strong Wolfe conditions, f(t) <= f(0) + 1e-4 t f'(0) and |f'(t)| <= 0.9 |f'(0)|:
/// first a bracket around such steps, then smaller ones by cubic interpolation. Nocedal and Wright, "Numerical
/// Optimization" (2006), algorithms 3.5 and 3.6, with the safeguards of minFunc that PyTorch took over.
/// `start` has step 0, `first_step` is the first guess, the bracket shrinks until its length times the largest entry
/// of `direction` is below `tolerance_change`. After `max_iterations` evaluations beyond the first one it returns
/// the best point so far.
LineSearchResult strong_wolfe(const LineFunction& evaluate, const LinePoint& start, double first_step,
                              const Tensor& direction, double tolerance_change, int64_t max_iterations);

}  // namespace rush::optim
