// Lab 2, broadcasting and the iterator: this file takes the place of core/iterator/loop.cpp. What the members mean
// stands in core/iterator/tensor_iterator.h, what each function has to do in docs/labs/loop.md. Write them in this
// order;
// `./rush lab 2` checks them in this order.
#include <algorithm>

#include "core/iterator/output_checks.h"
#include "core/iterator/tensor_iterator.h"

namespace rush {

// The shape that two shapes broadcast to. Where they do not, `throw_no_broadcast` (core/iterator/output_checks.h) makes
// the error.
DimVector broadcast_shapes(IntArrayRef a, IntArrayRef b, const char* op) {
  RUSH_THROW(NotImplementedError, "begin here: return the shape that ", a, " and ", b,
             " broadcast to, comparing from the last dimension on");
}

// Gives each operand that is defined its `data` and its `strides`, in bytes: one for each dimension of `shape_`.
void TensorIterator::set_strides() {
  RUSH_THROW(NotImplementedError,
             "next: set `data` and `strides` of the operands, from 0 if operand 0, the output, is defined, "
             "else from 1; the loop has the shape ",
             shape_);
}

// Makes one of neighbouring dimensions that are contiguous with each other in every operand. By now dimension 0 is the
// innermost, and all operands have strides. A loop whose dimensions stay apart is right, and slow: so it is here.
void TensorIterator::coalesce() {}

// Calls loop(context, data, strides, n) for the elements from `begin` to before `end`, counted with dimension 0
// innermost: each call gets n elements of one line of dimension 0. `data` points to the first of them in each operand,
// `strides` holds each operand's stride in dimension 0.
void TensorIterator::run_range(LoopFn loop, const void* context, int64_t begin, int64_t end) const {
  RUSH_THROW(NotImplementedError, "next: call `loop` for each line of a loop over ", shape_, ", from element ", begin,
             " to before ", end);
}

}  // namespace rush
