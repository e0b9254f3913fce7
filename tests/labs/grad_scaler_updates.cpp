// Lab 14: the scale from iteration to iteration, and its state dict.
#include "tests/labs/scaled_model.h"

namespace rush::labs {
namespace {

// ---- update ----

struct Iteration {
  bool first_bad, second_bad;  // whether the gradients of each of the two optimisers are infinite
};

struct Run {
  double init_scale, growth, backoff;
  int interval;
  std::vector<Iteration> iterations;
};

struct Scales {
  Numbers after;  // each update()
  std::string threw;
};

GradScalerOptions options_of(const Run& run) {
  return GradScalerOptions()
      .init_scale(run.init_scale)
      .growth_factor(run.growth)
      .backoff_factor(run.backoff)
      .growth_interval(run.interval);
}

// One iteration of a training loop with two optimisers.
void iterate(GradScaler& scaler, Model& first, Model& second, const Iteration& iteration) {
  first.backward(scaler, {iteration.first_bad ? kInf : 0.0, 0, 0});
  second.backward(scaler, {0, 0, iteration.second_bad ? kInf : 0.0});
  scaler.step(first.optimizer);
  scaler.step(second.optimizer);
  scaler.update();
}

Scales learners_scales(const Run& run) {
  GradScaler scaler(options_of(run));
  Model first, second;
  Scales scales;
  scales.threw = thrown_by([&] {
    for (const Iteration& iteration : run.iterations) {
      iterate(scaler, first, second, iteration);
      scales.after.push_back(scaler.get_scale());
    }
  });
  return scales;
}

enum class UpdateMistake {
  None,
  GrowsAfterSkip,
  FactorsSwapped,
  NoBackoff,
  CountSurvivesSkip,
  CountSurvivesGrowth,
  FirstOnly,
  SecondOnly,
  OneLate,
  Overflows,
  StagesStay
};

// Whether update() learns that a gradient of this iteration was not finite.
bool noticed(const Iteration& iteration, UpdateMistake mistake) {
  if (mistake == UpdateMistake::FirstOnly) return iteration.first_bad;
  if (mistake == UpdateMistake::SecondOnly) return iteration.second_bad;
  return (iteration.first_bad || iteration.second_bad) && mistake != UpdateMistake::GrowsAfterSkip;
}

struct ScaleState {
  double scale;
  int clean = 0;

  void update(const Run& run, bool bad, UpdateMistake mistake) {
    const bool swapped = mistake == UpdateMistake::FactorsSwapped;
    if (bad) {
      if (mistake != UpdateMistake::NoBackoff) scale *= swapped ? run.growth : run.backoff;
      if (mistake != UpdateMistake::CountSurvivesSkip) clean = 0;
      return;
    }
    const int wanted = run.interval + (mistake == UpdateMistake::OneLate ? 1 : 0);
    if (++clean < wanted) return;
    const double grown = scale * (swapped ? run.backoff : run.growth);
    const bool fits = grown <= std::numeric_limits<float>::max();
    if (fits || mistake == UpdateMistake::Overflows) scale = fits ? grown : kInf;
    if (mistake != UpdateMistake::CountSurvivesGrowth) clean = 0;
  }
};

Scales right_scales(const Run& run, UpdateMistake mistake) {
  ScaleState state{run.init_scale};
  Scales scales;
  for (const Iteration& iteration : run.iterations) {
    if (mistake == UpdateMistake::StagesStay && !scales.after.empty()) break;
    state.update(run, noticed(iteration, mistake), mistake);
    scales.after.push_back(state.scale);
  }
  return scales;
}

std::string show_iteration(const Iteration& i) {
  if (!i.first_bad && !i.second_bad) return "finite";
  return i.first_bad && i.second_bad ? "inf in both" : i.first_bad ? "inf in the first" : "inf in the second";
}

std::string describe_run(const Run& run) {
  std::string gradients;
  for (const Iteration& iteration : run.iterations) {
    gradients += str(gradients.empty() ? "" : ", ", show_iteration(iteration));
  }
  return str("iterations with two optimisers, init_scale ", run.init_scale, ", growth_factor ", run.growth,
             ", backoff_factor ", run.backoff, ", growth_interval ", run.interval, "; gradients: ", gradients);
}

std::string fault_of_scales(const Run& run, const Scales& scales) {
  const Numbers right = right_scales(run, UpdateMistake::None).after;
  for (size_t i = 0; i < scales.after.size(); ++i) {
    if (same_number(scales.after[i], right[i])) continue;
    return str("first wrong element: after iteration ", i + 1, ", whose gradients were ",
               show_iteration(run.iterations[i]), ", the scale is ", scales.after[i], " and has to be ", right[i]);
  }
  if (scales.threw.empty()) return {};
  return str("in iteration ", scales.after.size() + 1, " it threw: ", scales.threw);
}

constexpr Iteration kClean{false, false}, kFirst{true, false}, kSecond{false, true}, kBoth{true, true};

// ---- state dicts ----

struct Saving {
  Run run;
  bool used = false;  // the scaler that loads it has a scale already
};

struct Saved {
  Numbers numbers;  // of the state dict
  Numbers after;    // the scales after each of four further iterations of a scaler that has loaded it
  std::string threw;
};
const char* const kSavedNames[] = {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"};

Saved learners_saved(const Saving& saving) {
  GradScaler scaler(options_of(saving.run));
  Model first, second;
  for (const Iteration& iteration : saving.run.iterations) iterate(scaler, first, second, iteration);
  Saved saved;
  saved.threw = thrown_by([&] {
    const optim::StateDict dict = scaler.state_dict();
    for (const char* name : kSavedNames) saved.numbers.push_back(dict[name].item<double>());
  });
  return saved;
}

// The state dict is this file's own: a learner's state_dict() may be wrong.
Saved learners_loaded(const Saving& saving) {
  Model first, second;
  GradScaler scaler;
  if (saving.used) iterate(scaler, first, second, kClean);
  Saved saved;
  saved.threw = thrown_by([&] {
    optim::StateDict dict = GradScaler(options_of(saving.run)).state_dict();
    ScaleState state{saving.run.init_scale};
    for (const Iteration& iteration : saving.run.iterations) {
      state.update(saving.run, noticed(iteration, UpdateMistake::None), UpdateMistake::None);
    }
    dict["scale"].fill_(state.scale);
    dict["_growth_tracker"].fill_(state.clean);
    scaler.load_state_dict(dict);
    for (int i = 0; i < 4; ++i) {
      iterate(scaler, first, second, i < 3 ? kClean : kBoth);
      saved.after.push_back(scaler.get_scale());
    }
  });
  return saved;
}

enum class StateMistake { None, InitialScale, NoTracker, KeepsOptions, UsedKeepsScale, UsedKeepsTracker };

Saved saved_result(const Saving& saving, StateMistake mistake) {
  const Run& run = saving.run;
  ScaleState state{run.init_scale};
  for (const Iteration& iteration : run.iterations) {
    state.update(run, noticed(iteration, UpdateMistake::None), UpdateMistake::None);
  }
  if (mistake == StateMistake::InitialScale) state.scale = run.init_scale;
  if (mistake == StateMistake::NoTracker) state.clean = 0;
  Saved saved;
  saved.numbers = {state.scale, run.growth, run.backoff, static_cast<double>(run.interval),
                   static_cast<double>(state.clean)};
  const GradScalerOptions defaults;
  if (mistake == StateMistake::UsedKeepsScale && saving.used) state.scale = defaults.init_scale();
  if (mistake == StateMistake::UsedKeepsTracker && saving.used) state.clean = 1;
  Run rest = run;
  if (mistake == StateMistake::KeepsOptions) {
    rest.growth = defaults.growth_factor();
    rest.backoff = defaults.backoff_factor();
    rest.interval = static_cast<int>(defaults.growth_interval());
  }
  for (int i = 0; i < 4; ++i) {
    state.update(rest, i == 3, UpdateMistake::None);
    saved.after.push_back(state.scale);
  }
  return saved;
}

const std::vector<Run> kSavedRuns = {{1024, 4, 0.125, 3, {kClean, kClean}},
                                     {1024, 4, 0.125, 2, {kClean, kClean}},
                                     {4096, 2, 0.5, 3, {kFirst, kClean, kClean}}};

}  // namespace

Exercise update_exercise() {
  Subject<Run, Scales> subject;
  subject.function = "rush::amp::GradScaler::update";
  subject.inputs = {{1024, 4, 0.25, 1, {kClean, kClean}},
                    {1024, 2, 0.5, 3, {kClean, kClean, kClean, kClean, kClean, kClean, kClean}},
                    {1024, 2, 0.25, 2, {kBoth, kClean, kClean, kBoth}},
                    {512, 4, 0.5, 2, {kFirst, kClean, kClean, kFirst}},
                    {512, 4, 0.5, 2, {kSecond, kClean, kClean, kSecond}},
                    {512, 4, 0.5, 3, {kClean, kClean, kFirst, kClean, kClean, kClean}},
                    {std::ldexp(1.0, 127), 2, 0.5, 1, {kClean, kSecond, kClean}}};
  subject.learners = learners_scales;
  subject.describe = describe_run;
  subject.same = [](const Scales& a, const Scales& b) { return same_numbers(a.after, b.after); };
  subject.fault = fault_of_scales;
  const std::pair<const char*, UpdateMistake> mistakes[] = {
      {"the scale grows after a skipped step: that has to make it smaller", UpdateMistake::GrowsAfterSkip},
      {"growth_factor and backoff_factor have each other's place", UpdateMistake::FactorsSwapped},
      {"the scale stays after a skipped step: it has to become smaller", UpdateMistake::NoBackoff},
      {"the count of good steps goes on after a skipped one: it has to begin again, they are counted in a row",
       UpdateMistake::CountSurvivesSkip},
      {"the count of good steps is not reset when the scale grows: it then grows in each step",
       UpdateMistake::CountSurvivesGrowth},
      {"only one optimiser counts: a gradient that is not finite in any of them makes the scale smaller",
       UpdateMistake::FirstOnly},
      {"only one optimiser counts: a gradient that is not finite in any of them makes the scale smaller",
       UpdateMistake::SecondOnly},
      {"the scale grows one step late: growth_interval good steps in a row are enough", UpdateMistake::OneLate},
      {"the scale grows beyond float32: it has to stay where it is", UpdateMistake::Overflows},
      {"the optimisers' stages stay: update() begins a new iteration for all of them", UpdateMistake::StagesStay},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, [mistake = mistake](const Run& run) { return right_scales(run, mistake); }});
  }
  return exercise(std::move(subject));
}

Exercise save_exercise() {
  Subject<Saving, Saved> subject;
  subject.function = "rush::amp::GradScaler::state_dict";
  for (const Run& run : kSavedRuns) subject.inputs.push_back({run});
  subject.learners = learners_saved;
  subject.describe = [](const Saving& saving) { return str("state_dict() after ", describe_run(saving.run)); };
  subject.same = [](const Saved& a, const Saved& b) { return same_numbers(a.numbers, b.numbers); };
  subject.fault = [](const Saving& saving, const Saved& saved) -> std::string {
    if (!saved.threw.empty()) return str("it threw: ", saved.threw);
    const Saved right = saved_result(saving, StateMistake::None);
    for (size_t i = 0; i < right.numbers.size(); ++i) {
      if (same_number(saved.numbers[i], right.numbers[i])) continue;
      return str("first wrong element: ", kSavedNames[i], " is ", saved.numbers[i], " and has to be ",
                 right.numbers[i]);
    }
    return {};
  };
  subject.mistakes = {{"the scale that it began with is saved: it has to be the present one",
                       [](const Saving& saving) { return saved_result(saving, StateMistake::InitialScale); }},
                      {"the count of good steps is not saved: the scale would then grow late",
                       [](const Saving& saving) { return saved_result(saving, StateMistake::NoTracker); }}};
  return exercise(std::move(subject));
}

Exercise load_exercise() {
  Subject<Saving, Saved> subject;
  subject.function = "rush::amp::GradScaler::load_state_dict";
  for (const bool used : {false, true}) {
    for (const Run& run : kSavedRuns) subject.inputs.push_back({run, used});
  }
  subject.learners = learners_loaded;
  subject.describe = [](const Saving& saving) {
    return str("load_state_dict(), by a scaler ", saving.used ? "in its second iteration" : "before its first scale()",
               ", of the state after ", describe_run(saving.run), "; then three iterations with finite gradients, and ",
               "one with infinities");
  };
  subject.same = [](const Saved& a, const Saved& b) { return same_numbers(a.after, b.after); };
  subject.fault = [](const Saving& saving, const Saved& saved) -> std::string {
    const Saved right = saved_result(saving, StateMistake::None);
    for (size_t i = 0; i < saved.after.size(); ++i) {
      if (same_number(saved.after[i], right.after[i])) continue;
      return str("first wrong element: after iteration ", i + 1, " the scale is ", saved.after[i], " and has to be ",
                 right.after[i]);
    }
    return saved.threw.empty() ? "" : str("it threw: ", saved.threw);
  };
  const std::pair<const char*, StateMistake> mistakes[] = {
      {"the options are not loaded: the factors and the interval are part of the state", StateMistake::KeepsOptions},
      {"a scaler in use keeps its scale: the tensor that scale() made has to be filled", StateMistake::UsedKeepsScale},
      {"a scaler in use keeps its count of good steps: that tensor has to be filled as well",
       StateMistake::UsedKeepsTracker},
      {"the count of good steps is not loaded: the scale then grows late", StateMistake::NoTracker},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back(
        {name, [mistake = mistake](const Saving& saving) { return saved_result(saving, mistake); }});
  }
  return exercise(std::move(subject));
}

}  // namespace rush::labs
