// Lab 8, SGD and Adam: this file takes the place of backends/functors/sgd_adam.h. The formulas stand in
// docs/labs/sgd_adam.md. Write SGD first; `./rush lab 8` checks it first. Math is the type that the computation is done
// in: float for the 16-bit ones.
#pragma once
#include <cmath>

#include "backends/functors/steps.h"
#include "core/error/error.h"

namespace rush {

namespace functors {

// torch.optim.SGD. The constructor is called once for a parameter's step, operator() for each of its elements: it
// changes the parameter p and its state by the gradient g.
template <class Math>
struct Sgd {
  SgdStep options;

  RUSH_HD explicit Sgd(const SgdStep& s) : options(s) {}

  // Without momentum.
  RUSH_HD void operator()(Math& p, Math g) const {
    RUSH_THROW(NotImplementedError, "begin here: change p, which is ", p, " and has gradient ", g, ", by lr, which is ",
               options.lr, "; then look at weight_decay and maximize");
  }
  // With momentum. In the first step, which options.first tells, the buffer has no value yet.
  RUSH_HD void operator()(Math& p, Math g, Math& buffer) const {
    RUSH_THROW(NotImplementedError, "next: bring the momentum buffer up to date, then change p, which is ", p,
               " and has gradient ", g, ", by it");
  }
};

// What Adam and its kin, NAdam and RAdam, share: the averages of the gradient and of its square, and the decay of
// weights. Step is AdamStep or one of theirs; all have lr, beta1, beta2, weight_decay, decoupled and maximize.
template <class Math>
struct AdamAverages {
  Math mean_weight;

  template <class Step>
  RUSH_HD explicit AdamAverages(const Step& s) : mean_weight(static_cast<Math>(1 - s.beta1)) {}

  // Changes p where it decays by itself, g to the gradient that is averaged, and the averages m and v.
  RUSH_HD void operator()(Math& p, Math& g, Math& m, Math& v) const {
    RUSH_THROW(NotImplementedError, "next: bring m and v, the averages of the gradient ", g,
               " and of its square, up to date for the parameter ", p);
  }
};

// torch.optim.Adam and AdamW, in step number `step`, which is 1 in the first.
template <class Math>
struct Adam {
  AdamAverages<Math> update_averages;

  RUSH_HD Adam(const AdamStep& s, int64_t step) : update_averages(s) {}

  RUSH_HD void operator()(Math& p, Math g, Math& m, Math& v) const {
    update_averages(p, g, m, v);
    RUSH_THROW(NotImplementedError, "next: change p, which is ", p, ", by the corrected averages");
  }
  // With AMSGrad: max_v is the largest v so far.
  RUSH_HD void operator()(Math& p, Math g, Math& m, Math& v, Math& max_v) const {
    update_averages(p, g, m, v);
    RUSH_THROW(NotImplementedError, "last: keep the largest v in max_v, and divide by that");
  }
};

}  // namespace functors
}  // namespace rush
