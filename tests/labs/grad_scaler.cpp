// Lab 14: a gradient scaler. What gradients, parameters and the scale have to be is computed here from Note [Gradient
// scaling], number by number; a mistake is a change to that computation.
#include "tests/labs/scaled_model.h"

namespace rush::labs {
namespace {

std::string fault_of_numbers(const char* what, const Numbers& got, const Numbers& right) {
  for (size_t i = 0; i < right.size(); ++i) {
    if (same_number(got[i], right[i])) continue;
    return str("first wrong element: ", what, " of the ", kNames[i], " parameter is ", got[i], " and has to be ",
               right[i]);
  }
  return {};
}

// ---- scale ----

struct ScaleCall {
  double init_scale, loss;
  bool enabled = true;
};

struct ScaleResult {
  double scaled = 0, gradient = 0;  // of the second call, and what it sends back to the loss
};

ScaleResult learners_scale(const ScaleCall& call) {
  GradScaler scaler(GradScalerOptions().init_scale(call.init_scale).enabled(call.enabled));
  const Tensor loss = full({}, call.loss, TensorOptions(kFloat32)).requires_grad_();
  scaler.scale(loss);
  const Tensor scaled = scaler.scale(loss);
  if (scaled.requires_grad()) scaled.backward();
  return {scaled.item<double>(), loss.grad().defined() ? loss.grad().item<double>() : 0};
}

enum class ScaleMistake { None, Unscaled, Divided, Detached, Compounds, Disabled };

ScaleResult scale_result(const ScaleCall& call, ScaleMistake mistake) {
  double factor = call.enabled || mistake == ScaleMistake::Disabled ? call.init_scale : 1;
  if (mistake == ScaleMistake::Unscaled) factor = 1;
  if (mistake == ScaleMistake::Divided) factor = 1 / factor;
  if (mistake == ScaleMistake::Compounds) factor *= factor;
  return {call.loss * factor, mistake == ScaleMistake::Detached && call.enabled ? 0 : factor};
}

Exercise scale_exercise() {
  Subject<ScaleCall, ScaleResult> subject;
  subject.function = "rush::amp::GradScaler::scale";
  subject.inputs = {{8, 0.75}, {1024, -3}, {4, 2, /*enabled=*/false}};
  subject.learners = learners_scale;
  subject.describe = [](const ScaleCall& call) {
    return str("a second scale(loss) with init_scale ", call.init_scale, " and a loss of ", call.loss,
               call.enabled ? "" : ", of a scaler that is off");
  };
  subject.same = [](const ScaleResult& a, const ScaleResult& b) {
    return same_number(a.scaled, b.scaled) && same_number(a.gradient, b.gradient);
  };
  subject.fault = [](const ScaleCall& call, const ScaleResult& got) -> std::string {
    const ScaleResult right = scale_result(call, ScaleMistake::None);
    if (!same_number(got.scaled, right.scaled)) {
      return str("first wrong element: the scaled loss is ", got.scaled, " and has to be ", right.scaled);
    }
    if (same_number(got.gradient, right.gradient)) return {};
    return str("first wrong element: the loss gets the gradient ", got.gradient, " and has to get ", right.gradient);
  };
  const std::pair<const char*, ScaleMistake> mistakes[] = {
      {"the loss is not scaled", ScaleMistake::Unscaled},
      {"the loss is divided by the scale: gradients would get still smaller", ScaleMistake::Divided},
      {"the product is not recorded: the gradients have to get the scale through the backward pass",
       ScaleMistake::Detached},
      {"each call multiplies the scale itself: only update() changes it", ScaleMistake::Compounds},
      {"a scaler that is off scales: it has to give back what it is given", ScaleMistake::Disabled},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back(
        {name, [mistake = mistake](const ScaleCall& call) { return scale_result(call, mistake); }});
  }
  return exercise(std::move(subject));
}

// ---- unscale_ ----

struct UnscaleCall {
  double scale;
  Gradients gradients;
  bool twice = false;
};

struct UnscaleResult {
  Numbers grads;
  std::string threw, again_threw;
};

UnscaleResult learners_unscaled(const UnscaleCall& call) {
  Model model;
  GradScaler scaler(GradScalerOptions().init_scale(call.scale));
  model.backward(scaler, call.gradients);
  UnscaleResult result;
  result.threw = thrown_by([&] { scaler.unscale_(model.optimizer); });
  if (call.twice) result.again_threw = thrown_by([&] { scaler.unscale_(model.optimizer); });
  result.grads = model.grads();
  return result;
}

enum class UnscaleMistake { None, WrongDirection, NotAtAll, FirstOnly, FirstListOnly, ZeroesBad, TwiceAllowed };

Numbers unscaled(const UnscaleCall& call, UnscaleMistake mistake) {
  Numbers grads = call.gradients.all();
  for (size_t i = 0; i < grads.size(); ++i) {
    const bool left_out = (mistake == UnscaleMistake::FirstOnly && i > 0) ||
                          (mistake == UnscaleMistake::FirstListOnly && i == 2) || mistake == UnscaleMistake::NotAtAll;
    if (left_out) grads[i] *= call.scale;
    if (mistake == UnscaleMistake::WrongDirection) grads[i] *= call.scale * call.scale;
    if (mistake == UnscaleMistake::TwiceAllowed && call.twice) grads[i] /= call.scale;
    if (mistake == UnscaleMistake::ZeroesBad && !std::isfinite(grads[i])) grads[i] = 0;
  }
  return grads;
}

std::string fault_of_unscaled(const UnscaleCall& call, const UnscaleResult& result) {
  if (!result.threw.empty()) return str("it threw: ", result.threw);
  if (call.twice && result.again_threw.empty()) return "the second call has to throw Error, and does not";
  return fault_of_numbers("the gradient", result.grads, unscaled(call, UnscaleMistake::None));
}

Exercise unscale_exercise() {
  Subject<UnscaleCall, UnscaleResult> subject;
  subject.function = "rush::amp::GradScaler::unscale_";
  subject.inputs = {{8, {1, -2, 0.5}}, {1024, {3e-5, 7, -1}}, {4, {kInf, 1, kNaN}}, {16, {1, 2, 3}, /*twice=*/true}};
  subject.learners = learners_unscaled;
  subject.describe = [](const UnscaleCall& call) {
    return str("unscale_(optimizer)", call.twice ? " twice" : "", " with scale ", call.scale,
               ", after a backward pass whose gradients without a scale are ", show_gradients(call.gradients));
  };
  subject.same = [](const UnscaleResult& a, const UnscaleResult& b) {
    return a.threw.empty() && same_numbers(a.grads, b.grads);
  };
  subject.fault = fault_of_unscaled;
  const std::pair<const char*, UnscaleMistake> mistakes[] = {
      {"the gradients are multiplied by the scale: they have to be divided by it", UnscaleMistake::WrongDirection},
      {"the gradients stay scaled", UnscaleMistake::NotAtAll},
      {"only the first gradient is unscaled", UnscaleMistake::FirstOnly},
      {"only the first list of gradients is unscaled: each dtype has a list of its own", UnscaleMistake::FirstListOnly},
      {"gradients that are not finite are set to zero: the step has to be skipped instead", UnscaleMistake::ZeroesBad},
      {"a second call unscales again: it has to be refused until update()", UnscaleMistake::TwiceAllowed},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, [mistake = mistake](const UnscaleCall& call) {
                                  return UnscaleResult{unscaled(call, mistake), {}, {}};
                                }});
  }
  return exercise(std::move(subject));
}

// ---- step ----

struct StepCall {
  Gradients gradients;
  bool unscaled_before = false;  // by a call of unscale_, as for clipping
  bool twice = false;
};
constexpr double kScale = 16;

struct StepResult {
  Numbers values;
  bool skipped = false;  // as step_was_skipped says
  std::string threw, again_threw;
};

StepResult learners_step(const StepCall& call) {
  Model model;
  GradScaler scaler(GradScalerOptions().init_scale(kScale));
  model.backward(scaler, call.gradients);
  if (call.unscaled_before) scaler.unscale_(model.optimizer);
  StepResult result;
  result.threw = thrown_by([&] { scaler.step(model.optimizer); });
  if (call.twice) result.again_threw = thrown_by([&] { scaler.step(model.optimizer); });
  result.values = model.values();
  result.skipped = scaler.step_was_skipped(model.optimizer);
  return result;
}

enum class StepMistake {
  None,
  Scaled,
  UnscaledTwice,
  NeverSkipped,
  TakenAndSaidSkipped,
  AlwaysSkipped,
  FirstOnly,
  FirstListOnly,
  LastListOnly,
  NaNsPass,
  InfinitiesPass,
  NotRemembered,
  Twice
};

bool is_bad(double gradient, StepMistake mistake) {
  if (mistake == StepMistake::NaNsPass) return std::isinf(gradient);
  if (mistake == StepMistake::InfinitiesPass) return std::isnan(gradient);
  return !std::isfinite(gradient);
}

bool finds_bad(const Gradients& g, StepMistake mistake) {
  const bool first = is_bad(g.first, mistake), second = is_bad(g.second, mistake), third = is_bad(g.third, mistake);
  switch (mistake) {
    case StepMistake::NeverSkipped: return false;
    case StepMistake::AlwaysSkipped: return true;
    case StepMistake::FirstOnly: return first;
    case StepMistake::FirstListOnly: return first || second;
    case StepMistake::LastListOnly: return third;
    default: return first || second || third;
  }
}

StepResult step_result(const StepCall& call, StepMistake mistake) {
  const bool skipped = finds_bad(call.gradients, mistake);
  double factor = skipped && mistake != StepMistake::TakenAndSaidSkipped ? 0 : 1;
  if (mistake == StepMistake::Scaled && !call.unscaled_before) factor *= kScale;
  if (mistake == StepMistake::UnscaledTwice && call.unscaled_before) factor /= kScale;
  if (mistake == StepMistake::Twice && call.twice) factor *= 2;
  StepResult result{{1, 2, 3}, skipped && mistake != StepMistake::NotRemembered, {}, {}};
  const Numbers gradients = call.gradients.all();
  for (size_t i = 0; i < gradients.size() && factor != 0; ++i) result.values[i] -= kRate * factor * gradients[i];
  return result;
}

std::string fault_of_step(const StepCall& call, const StepResult& result) {
  if (!result.threw.empty()) return str("it threw: ", result.threw);
  const StepResult right = step_result(call, StepMistake::None);
  const std::string fault = fault_of_numbers("the value", result.values, right.values);
  if (!fault.empty()) return fault;
  if (call.twice && result.again_threw.empty()) return "the second call has to throw Error, and does not";
  if (result.skipped == right.skipped) return {};
  return str("step_was_skipped says ", result.skipped ? "true" : "false", " and has to say ",
             right.skipped ? "true" : "false");
}

Exercise step_exercise() {
  Subject<StepCall, StepResult> subject;
  subject.function = "rush::amp::GradScaler::step";
  subject.inputs = {{{1, -2, 0.5}},
                    {{1, -2, 0.5}, /*unscaled_before=*/true},
                    {{kInf, 1, 1}},
                    {{1, -kInf, 1}},
                    {{1, 1, kInf}},
                    {{kNaN, 1, 1}},
                    {{1, 1, kNaN}, /*unscaled_before=*/true},
                    {{2, 3, 4}, false, /*twice=*/true}};
  subject.learners = learners_step;
  subject.describe = [](const StepCall& call) {
    return str("step(optimizer)", call.twice ? " twice" : "", call.unscaled_before ? " after unscale_(optimizer)" : "",
               " with scale ", kScale, " and a rate of ", kRate, ", where the gradients without a scale are ",
               show_gradients(call.gradients));
  };
  subject.same = [](const StepResult& a, const StepResult& b) {
    return a.threw.empty() && same_numbers(a.values, b.values) && a.skipped == b.skipped;
  };
  subject.fault = fault_of_step;
  const char* const in_unscale = "rush::amp::GradScaler::unscale_";
  struct Named {
    const char* name;
    StepMistake mistake;
    const char* function = "";
  };
  const Named mistakes[] = {
      {"the gradients are not unscaled before the step: step() calls unscale_() unless that was done",
       StepMistake::Scaled},
      {"the gradients are unscaled twice: step() has to leave alone what unscale_() was called for",
       StepMistake::UnscaledTwice},
      {"the step is taken though a gradient is not finite: it has to be skipped", StepMistake::NeverSkipped},
      {"the step is taken though a gradient is not finite: it has to be skipped", StepMistake::TakenAndSaidSkipped},
      {"every step is skipped", StepMistake::AlwaysSkipped},
      {"only the first parameter's gradient is looked at: one that is not finite anywhere skips the step",
       StepMistake::FirstOnly, in_unscale},
      {"only the first list of gradients is looked at: each dtype has a list of its own", StepMistake::FirstListOnly,
       in_unscale},
      {"only the last list of gradients is looked at: what was found before has to stay", StepMistake::LastListOnly,
       in_unscale},
      {"NaNs pass: a gradient that is NaN is not finite either", StepMistake::NaNsPass, in_unscale},
      {"infinities pass: a gradient that is infinite is not finite either", StepMistake::InfinitiesPass, in_unscale},
      {"the step's outcome is not kept: step_was_skipped() reads it from last_steps_", StepMistake::NotRemembered},
      {"a second step is taken with the same gradients: it has to be refused until update()", StepMistake::Twice},
  };
  for (const Named& named : mistakes) {
    subject.mistakes.push_back({named.name,
                                [mistake = named.mistake](const StepCall& call) { return step_result(call, mistake); },
                                nullptr, named.function});
  }
  return exercise(std::move(subject));
}

}  // namespace

std::vector<Exercise> scaler_exercises() {
  return {scale_exercise(), unscale_exercise(), step_exercise(), update_exercise(), save_exercise(), load_exercise()};
}

}  // namespace rush::labs
