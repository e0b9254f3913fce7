// What the exercises of lab 17 share: inputs of ranks, what came of a run, and names of its faults.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "tests/labs/exercise.h"
#include "tests/labs/wire/emulated_wire.h"

namespace rush::labs {

using Arrays = std::vector<std::vector<float>>;  // by rank

struct RingOutput {
  Arrays data;
  WireRun run;
};

inline bool all_stuck_in(const WireRun& run, RankState::Kind kind) {
  const auto is_kind = [&](const RankState& rank) { return rank.kind == kind; };
  return !run.stuck.empty() && std::all_of(run.stuck.begin(), run.stuck.end(), is_kind);
}

// The part of lab 17 that is in data_parallel.cpp.
std::vector<Exercise> data_parallel_exercises();

}  // namespace rush::labs
