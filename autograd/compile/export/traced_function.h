// A function as a graph that can leave the program: traced without gradients, for all sizes that it is declared to
// take.
#pragma once
#include <string>
#include <vector>

#include "autograd/compile/compile.h"
#include "autograd/compile/pattern.h"
#include "autograd/compile/tracer.h"

namespace rush {

/// A dimension of an input whose size is not fixed by the example. Dimensions of the same name have the same size.
struct DynamicDim {
  size_t input = 0;
  int64_t dim = 0;
  std::string name = "batch";
};

namespace compiler {

// Note [Traces for export]
// A file is read on other devices and for other sizes than those of the trace, so the trace stops at operators that
// would choose by device or strides what they are made of (TakesWhole): attention, recurrent layers, reshape. They are
// seen since the key Autograd is excluded; otherwise its kernel for such an operator is the operator's parts.
//
// Where sizes may change the function is traced three times, with inputs that were cut or lengthened: two traces give
// the Pattern, and the third must be what it foretells.

// Calls the function once as it is and then traces it, without gradients. Throws ValueError when a dimension is not
// there, or the function does something else at other sizes, and NotImplementedError when it cannot be traced. `who` is
// what errors call the caller.
Pattern trace_function(const char* who, const Function& function, const std::vector<Tensor>& inputs,
                       const std::vector<DynamicDim>& dynamic, Tracer::TakesWhole takes_whole);

}  // namespace compiler
}  // namespace rush
