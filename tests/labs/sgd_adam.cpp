// Lab 8: the rules of SGD and Adam, through the optimisers. What a parameter has to be after each step is computed here
// in double precision, as PyTorch's pages of the optimisers write it; a mistake is a change to that computation.
#include <array>
#include <cmath>

#include "core/ops/factory/factories.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/labs/exercise.h"

namespace rush::labs {
namespace {

constexpr int kSteps = 4;
constexpr size_t kElements = 2;
using Values = std::array<double, kElements>;
using Path = std::vector<Values>;  // the parameter after each step

constexpr Values kStart = {1.5, -2.0};

// Large ones and small ones, so that averages grow and fall.
constexpr Values kGradients[kSteps] = {{0.75, 0.25}, {1.0, -2.5}, {0.1, 0.3}, {-0.5, 0.2}};
double gradient_at(int step, size_t element) { return kGradients[step - 1][element]; }
// The last step has another rate, as schedules make it.
double rate_at(int step, double lr) { return step == kSteps ? lr / 2 : lr; }

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * (1 + std::abs(b)); }

bool same_path(const Path& a, const Path& b) {
  for (size_t step = 0; step < a.size(); ++step) {
    for (size_t i = 0; i < kElements; ++i) {
      if (!near(a[step][i], b[step][i])) return false;
    }
  }
  return true;
}

std::string fault_of_path(const Path& right, const Path& path) {
  for (size_t step = 0; step < right.size(); ++step) {
    for (size_t i = 0; i < kElements; ++i) {
      const double should = right[step][i], got = path[step][i];
      if (near(got, should)) continue;
      return str("first wrong element: after step ", step + 1, " element ", i, " of the parameter is ", got,
                 " and has to be ", should, "; its gradient was ", gradient_at(static_cast<int>(step) + 1, i));
    }
  }
  return {};
}

// Takes the steps with one of the library's optimisers.
template <class Optimizer, class Options>
Path steps_of(Options options) {
  const Tensor param = tensor(ArrayRef<double>(kStart), kFloat64).requires_grad_();
  Optimizer optimizer(std::vector<Tensor>{param}, options);
  Path path;
  for (int step = 1; step <= kSteps; ++step) {
    Values gradient;
    for (size_t i = 0; i < kElements; ++i) gradient[i] = gradient_at(step, i);
    param.mutable_grad() = tensor(ArrayRef<double>(gradient), kFloat64);
    static_cast<Options&>(optimizer.param_groups()[0].options()).lr(rate_at(step, options.lr()));
    optimizer.step();
    path.push_back({param.data_ptr<double>()[0], param.data_ptr<double>()[1]});
  }
  return path;
}

// ---- SGD ----

struct SgdCall {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
};

enum class SgdMistake {
  None,
  NoDecay,
  DecayApart,
  NoMaximize,
  NoDampening,
  FirstDampened,
  NoNesterov,
  RateInBuffer,
};

Path sgd_path(const SgdCall& call, SgdMistake mistake) {
  Path path;
  Values param = kStart, buffer = {};
  for (int step = 1; step <= kSteps; ++step) {
    const double lr = rate_at(step, call.lr);
    for (size_t i = 0; i < kElements; ++i) {
      double& p = param[i];
      const bool uphill = call.maximize && mistake != SgdMistake::NoMaximize;
      double g = uphill ? -gradient_at(step, i) : gradient_at(step, i);
      const double decay = mistake == SgdMistake::NoDecay ? 0 : call.weight_decay * p;
      if (mistake != SgdMistake::DecayApart) g += decay;
      double direction = g;
      if (call.momentum != 0) {
        const bool first = step == 1 && mistake != SgdMistake::FirstDampened;
        const double weight = mistake == SgdMistake::NoDampening || first ? 1 : 1 - call.dampening;
        const double rate = mistake == SgdMistake::RateInBuffer ? lr : 1;
        buffer[i] = call.momentum * buffer[i] + weight * g * rate;
        const bool nesterov = call.nesterov && mistake != SgdMistake::NoNesterov;
        direction = nesterov ? g * rate + call.momentum * buffer[i] : buffer[i];
        if (mistake == SgdMistake::RateInBuffer) direction /= lr;
      }
      p -= lr * direction + (mistake == SgdMistake::DecayApart ? lr * decay : 0);
    }
    path.push_back(param);
  }
  return path;
}

Exercise sgd_exercise() {
  Subject<SgdCall, Path> subject;
  subject.function = "rush::functors::Sgd<double>::operator()";
  subject.inputs = {{0.1, 0, 0, 0, false, false},   {0.1, 0, 0, 0.2, false, false}, {0.1, 0, 0, 0.2, false, true},
                    {0.1, 0.9, 0, 0, false, false}, {0.1, 0.9, 0, 0.2, true, true}, {0.1, 0.9, 0.5, 0.2, false, false}};
  subject.learners = [](const SgdCall& call) {
    return steps_of<optim::SGD>(optim::SGDOptions(call.lr)
                                    .momentum(call.momentum)
                                    .dampening(call.dampening)
                                    .weight_decay(call.weight_decay)
                                    .nesterov(call.nesterov)
                                    .maximize(call.maximize));
  };
  subject.describe = [](const SgdCall& call) {
    return str("SGD with lr ", call.lr, ", momentum ", call.momentum, ", dampening ", call.dampening, ", weight_decay ",
               call.weight_decay, call.nesterov ? ", nesterov" : "", call.maximize ? ", maximize" : "");
  };
  subject.same = same_path;
  subject.fault = [](const SgdCall& call, const Path& path) {
    return fault_of_path(sgd_path(call, SgdMistake::None), path);
  };
  const std::pair<const char*, SgdMistake> mistakes[] = {
      {"the weights do not decay: weight_decay times the parameter belongs to the gradient", SgdMistake::NoDecay},
      {"the weights decay apart from the momentum: the decay is a part of the gradient that the buffer averages",
       SgdMistake::DecayApart},
      {"maximize is ignored: the gradient's sign has to change", SgdMistake::NoMaximize},
      {"dampening is ignored", SgdMistake::NoDampening},
      {"the first gradient is dampened: the buffer has to begin with the gradient itself", SgdMistake::FirstDampened},
      {"Nesterov's momentum is ignored: it adds momentum times the new buffer to the gradient", SgdMistake::NoNesterov},
      {"the rate is in the buffer: a schedule that changes it then changes only what comes later",
       SgdMistake::RateInBuffer},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, [mistake = mistake](const SgdCall& call) { return sgd_path(call, mistake); }});
  }
  return exercise(std::move(subject));
}

// ---- Adam and AdamW ----

struct AdamCall {
  double weight_decay;
  bool decoupled, amsgrad, maximize;
};
constexpr double kRate = 0.1, kBeta1 = 0.8, kBeta2 = 0.6, kEps = 0.05;

enum class AdamMistake {
  None,
  NoCorrection,
  NoMeanCorrection,
  CorrectionOneAhead,
  EpsInRoot,
  EpsCorrected,
  BetasSwapped,
  NoSquare,
  NotDecoupled,
  NoDecay,
  NoAmsgrad,
  NoMaximize,
};

// v, with its correction and eps: what the step is divided by.
double denominator(double v, double correction, AdamMistake mistake) {
  if (mistake == AdamMistake::EpsInRoot) return std::sqrt(v / correction + kEps);
  if (mistake == AdamMistake::EpsCorrected) return (std::sqrt(v) + kEps) / std::sqrt(correction);
  return std::sqrt(v / correction) + kEps;
}

Path adam_path(const AdamCall& call, AdamMistake mistake) {
  Path path;
  Values param = kStart, mean = {}, square = {}, largest = {};
  const double mean_keep = mistake == AdamMistake::BetasSwapped ? 1 - kBeta1 : kBeta1;
  for (int step = 1; step <= kSteps; ++step) {
    const double lr = rate_at(step, kRate);
    const int t = mistake == AdamMistake::CorrectionOneAhead ? step + 1 : step;
    const bool corrects = mistake != AdamMistake::NoCorrection;
    const double correction1 = corrects && mistake != AdamMistake::NoMeanCorrection ? 1 - std::pow(kBeta1, t) : 1;
    const double correction2 = corrects ? 1 - std::pow(kBeta2, t) : 1;
    for (size_t i = 0; i < kElements; ++i) {
      double& p = param[i];
      const bool uphill = call.maximize && mistake != AdamMistake::NoMaximize;
      double g = uphill ? -gradient_at(step, i) : gradient_at(step, i);
      const double decay = mistake == AdamMistake::NoDecay ? 0 : call.weight_decay;
      if (call.decoupled && mistake != AdamMistake::NotDecoupled) {
        p -= lr * decay * p;
      } else {
        g += decay * p;
      }
      mean[i] = mean_keep * mean[i] + (1 - mean_keep) * g;
      square[i] = kBeta2 * square[i] + (1 - kBeta2) * (mistake == AdamMistake::NoSquare ? std::abs(g) : g * g);
      largest[i] = std::max(largest[i], square[i]);
      const double v = call.amsgrad && mistake != AdamMistake::NoAmsgrad ? largest[i] : square[i];
      p -= lr * (mean[i] / correction1) / denominator(v, correction2, mistake);
    }
    path.push_back(param);
  }
  return path;
}

template <class Optimizer, class Options>
Path steps_of_adam(const AdamCall& call) {
  return steps_of<Optimizer>(Options(kRate)
                                 .betas({kBeta1, kBeta2})
                                 .eps(kEps)
                                 .weight_decay(call.weight_decay)
                                 .amsgrad(call.amsgrad)
                                 .maximize(call.maximize));
}

Exercise adam_exercise() {
  Subject<AdamCall, Path> subject;
  subject.function = "rush::functors::Adam<double>::operator()";
  subject.inputs = {{0, false, false, false}, {0.3, false, false, false}, {0.3, true, false, false},
                    {0, false, true, false},  {0.3, true, true, true},    {0.3, false, false, true}};
  subject.learners = [](const AdamCall& call) {
    return call.decoupled ? steps_of_adam<optim::AdamW, optim::AdamWOptions>(call)
                          : steps_of_adam<optim::Adam, optim::AdamOptions>(call);
  };
  subject.describe = [](const AdamCall& call) {
    return str(call.decoupled ? "AdamW" : "Adam", " with lr ", kRate, ", betas (", kBeta1, ", ", kBeta2, "), eps ",
               kEps, ", weight_decay ", call.weight_decay, call.amsgrad ? ", amsgrad" : "",
               call.maximize ? ", maximize" : "");
  };
  subject.same = same_path;
  subject.fault = [](const AdamCall& call, const Path& path) {
    return fault_of_path(adam_path(call, AdamMistake::None), path);
  };
  const std::pair<const char*, AdamMistake> mistakes[] = {
      {"the averages are not corrected: they begin at 0, and are too small in the first steps",
       AdamMistake::NoCorrection},
      {"only v is corrected: m begins at 0 as well", AdamMistake::NoMeanCorrection},
      {"the correction is one step ahead: `step` counts this one already", AdamMistake::CorrectionOneAhead},
      {"eps is under the root: it has to be added to the root of v", AdamMistake::EpsInRoot},
      {"eps is corrected along with the root of v: it has to be added after the correction", AdamMistake::EpsCorrected},
      {"m keeps 1 - beta1 of itself: it has to keep beta1", AdamMistake::BetasSwapped},
      {"v averages the gradient's size and not its square", AdamMistake::NoSquare},
      {"AdamW's weights decay through the gradient: they have to decay by themselves, by lr weight_decay",
       AdamMistake::NotDecoupled},
      {"the weights do not decay", AdamMistake::NoDecay},
      {"AMSGrad divides by the present v: it has to be the largest so far", AdamMistake::NoAmsgrad},
      {"maximize is ignored: the gradient's sign has to change", AdamMistake::NoMaximize},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, [mistake = mistake](const AdamCall& call) { return adam_path(call, mistake); }});
  }
  return exercise(std::move(subject));
}

}  // namespace

std::vector<Exercise> optimizer_exercises() { return {sgd_exercise(), adam_exercise()}; }

}  // namespace rush::labs
