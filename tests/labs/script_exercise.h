// Exercises of lab 9 on the scripts of block_scripts.h.
#pragma once
#include <utility>
#include <vector>

#include "tests/labs/block_scripts.h"
#include "tests/labs/exercise.h"

namespace rush::labs {

inline std::string name_of(const char* function) { return str("rush::cuda::DeviceAllocator::", function); }

inline Exercise script_exercise(const char* function, std::vector<Script> scripts,
                                const std::vector<std::pair<const char*, BlockMistake>>& mistakes) {
  Subject<Script, States> subject;
  subject.function = name_of(function);
  subject.inputs = std::move(scripts);
  subject.learners = learners_states;
  subject.describe = [](const Script& script) { return show(script); };
  subject.fault = fault_of_states;
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, nullptr, [mistake = mistake](const Script& script, const States& states) {
                                  return explains(mistake, script, states);
                                }});
  }
  return exercise(std::move(subject));
}

// The part of lab 9 that is in allocator_uses.cpp.
std::vector<Exercise> allocator_use_exercises();

}  // namespace rush::labs
