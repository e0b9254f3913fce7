// ResultCheck: compares what a fused graph computes with what its calls do one by one.
#pragma once
#include <memory>
#include <vector>

#include "autograd/compile/program.h"

namespace rush::compiler {

// Note [Checked programs]
// With CompileOptions::check, or RUSH_COMPILE_CHECK=1, a program keeps the graph from before its calls were fused, and
// each run does both: first the calls one by one, then, after what they wrote to inputs, constants and generators was
// put back, those of the program. What a call of the program made, or was the last to write, must be what the other
// graph has under the same number, up to the rounding of a few sums; the first call of which that is not so is
// named. What the program does on the host, such as an optimiser's step, is done once: the graphs are compared up to
// it, and go on from what the fused one left.
class ResultCheck {
 public:
  explicit ResultCheck(Graph unfused);

  // Runs the calls of `program`, which is in a scope of its own. Throws DifferenceError.
  void run_calls(Program& program, const std::vector<Tensor>& inputs);

 private:
  Program unfused_;
};

}  // namespace rush::compiler
