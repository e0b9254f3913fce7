// Scripts of lab 16: small functions of two square tensors, whose graphs its exercises look at.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/compile/graph_module.h"
#include "autograd/grad_mode.h"
#include "core/ops/factory/range.h"
#include "tests/labs/lines_exercise.h"

namespace rush::labs {

struct GraphScript {
  std::string text;
  std::function<std::vector<Tensor>(Tensor x, Tensor y)> function;
};

// x and y, with the same numbers each time.
inline std::vector<Tensor> script_inputs() {
  const Tensor x = linspace(-1, 1, 256).view({16, 16});
  return {x, linspace(2, -1, 256).view({16, 16})};
}

inline Graph graph_of(const GraphScript& script) {
  const NoGradGuard no_grad;
  return make_fx([&](const std::vector<Tensor>& in) { return script.function(in[0], in[1]); }, script_inputs());
}

// The part of lab 16 that is in fusion_walk.cpp: the walk over a graph's calls, and the speed of what comes out.
std::vector<Exercise> fusion_walk_exercises();

}  // namespace rush::labs
