// Exercises of labs 7 and 16: what a function does is written down as lines, which have to be those that a model gives.
#pragma once
#include <algorithm>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/str.h"
#include "tests/labs/exercise.h"

namespace rush::labs {

using Lines = std::vector<std::string>;

inline constexpr const char* kThrew = "it threw";

// An exercise whose function is described by lines. `model` gives the lines of a mistake, of Mistake() the right ones.
template <class Input, class Mistake>
Exercise lines_exercise(const char* function, std::vector<Input> inputs,
                        std::function<std::string(const Input&)> describe, std::function<Lines(const Input&)> learners,
                        std::function<Lines(const Input&, Mistake)> model,
                        const std::vector<std::pair<const char*, Mistake>>& mistakes) {
  Subject<Input, Lines> subject;
  subject.function = function;
  subject.inputs = std::move(inputs);
  subject.describe = std::move(describe);
  subject.learners = [learners](const Input& input) -> Lines {
    try {
      return learners(input);
    } catch (const std::exception& error) {
      return {str(kThrew, ": ", error.what())};
    }
  };
  subject.same = [](const Lines& got, const Lines& lines) {
    const bool both_threw = !got.empty() && lines == Lines{kThrew} && got[0].starts_with(kThrew);
    return both_threw || got == lines;
  };
  subject.fault = [model](const Input& input, const Lines& got) -> std::string {
    const Lines right = model(input, Mistake());
    if (!got.empty() && got[0].starts_with(kThrew) && got != right) return got[0];
    for (size_t i = 0; i < std::max(got.size(), right.size()); ++i) {
      const auto at = [i](const Lines& lines) { return i < lines.size() ? lines[i] : "nothing"; };
      if (at(got) != at(right))
        return str("first wrong element: ", i, ", it is `", at(got), "` and has to be `", at(right), "`");
    }
    return {};
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back(
        {name, [model, mistake = mistake](const Input& input) { return model(input, mistake); }});
  }
  return exercise(std::move(subject));
}

// The part of lab 7 that is in module_state.cpp.
std::vector<Exercise> module_state_exercises();

}  // namespace rush::labs
