// What a function does otherwise than in its last trace.
#pragma once
#include <string>

#include "autograd/compile/graph.h"

namespace rush::compiler {

// Note [What changes from call to call]
// A graph has the numbers that the program gave to operators when it was traced, such as a loss's weight that grows
// from step to step, and the tensors that the function took from elsewhere, such as a batch that it does not have as an
// input. A function that gives or takes others at each call does not do what its graph does. So a function is traced at
// its first two calls, and in the calls that both begin with these must be the same, else it runs as it stands. Tensors
// are the same, too, where others have the same elements, as those that the function makes of numbers of its own.
//
// What changes with each epoch is not seen then. So after Module::train or eval a graph that is there already is traced
// once more, and where the trace is another one, made again. What changes at another time is not seen.

/// Which number or tensor `now` has in the place of another one of `before`, for a warning: "it gives aten::mul.Tensor
/// another number at each call, 0.2 after 0.1: a tensor may change". Empty where there is none.
std::string change_between(const Graph& before, const Graph& now);

/// Whether two arguments are the same, apart from tensors and generators.
bool is_given_again(const Value& then, const Value& now);
/// Whether a tensor that stands for a number is given again: by another one of the same number.
bool is_given_again(const Tensor& then, const Tensor& now);
/// Whether a tensor from elsewhere is given again, or another with the same elements.
bool is_taken_again(const Tensor& then, const Tensor& now);

}  // namespace rush::compiler
