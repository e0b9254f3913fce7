// An exercise of a lab: one function that the learner writes, calls of it whose answers are known, and the mistakes
// that the checker knows by name.
#pragma once
#include <algorithm>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/str.h"

namespace rush::labs {

// What a call threw; empty when it did not.
inline std::string thrown_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

struct Call {
  std::string text;
  // Makes the call: what is wrong with what came, and the first wrong element; empty when nothing is.
  std::function<std::string()> fault;
};

struct KnownMistake {
  std::string name;      // empty when none is known
  std::string function;  // where it is, if it is not in the exercise's own
};

struct Exercise {
  std::string function;  // as a debugger names it
  std::vector<Call> calls;
  // The mistake that explains all that the learner's function gives.
  std::function<KnownMistake()> mistake;
};

template <class Input, class Output>
struct Subject {
  struct Mistake {
    std::string name;
    std::function<Output(const Input&)> model;  // what a function with this mistake gives
    // Instead of a model, where what it gives depends on chance: whether an output shows the mistake.
    std::function<bool(const Input&, const Output&)> shows = nullptr;
    std::string function = {};  // where it is, if it is not in the subject's own
  };

  std::string function;
  std::vector<Input> inputs;
  std::function<Output(const Input&)> learners;
  std::function<std::string(const Input&)> describe;
  std::function<bool(const Output&, const Output&)> same;
  std::function<std::string(const Input&, const Output&)> fault;  // empty when the output is right
  std::vector<Mistake> mistakes;
};

template <class Input, class Output>
Exercise exercise(Subject<Input, Output> subject) {
  Exercise result{subject.function, {}, {}};
  for (const Input& input : subject.inputs) {
    result.calls.push_back({subject.describe(input), [=] { return subject.fault(input, subject.learners(input)); }});
  }
  result.mistake = [subject = std::move(subject)]() -> KnownMistake {
    for (const auto& mistake : subject.mistakes) {
      const auto explains = [&](const Input& input) {
        const Output output = subject.learners(input);
        return mistake.shows ? mistake.shows(input, output) : subject.same(output, mistake.model(input));
      };
      if (std::all_of(subject.inputs.begin(), subject.inputs.end(), explains)) {
        return {mistake.name, mistake.function};
      }
    }
    return {};
  };
  return result;
}

// Weak: a program has those of its own labs, and the others are null.
[[gnu::weak]] std::vector<Exercise> geometry_exercises();
[[gnu::weak]] std::vector<Exercise> loop_exercises();
[[gnu::weak]] std::vector<Exercise> operator_exercises();
[[gnu::weak]] std::vector<Exercise> call_exercises();
[[gnu::weak]] std::vector<Exercise> engine_exercises();
[[gnu::weak]] std::vector<Exercise> product_exercises();
[[gnu::weak]] std::vector<Exercise> module_exercises();
[[gnu::weak]] std::vector<Exercise> optimizer_exercises();
[[gnu::weak]] std::vector<Exercise> allocator_exercises();
[[gnu::weak]] std::vector<Exercise> kernel_exercises();
[[gnu::weak]] std::vector<Exercise> stream_exercises();
[[gnu::weak]] std::vector<Exercise> matmul_exercises();
[[gnu::weak]] std::vector<Exercise> attention_exercises();
[[gnu::weak]] std::vector<Exercise> scaler_exercises();
[[gnu::weak]] std::vector<Exercise> graphed_step_exercises();
[[gnu::weak]] std::vector<Exercise> fusion_exercises();
[[gnu::weak]] std::vector<Exercise> ring_exercises();

}  // namespace rush::labs
