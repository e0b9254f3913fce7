// CUDA's loops that reduce rows: one kernel, compiled at run time.
#pragma once
#include <memory>

#include "core/compile/element_wise_loop.h"

namespace rush::cuda::jit {

// Note [Phases of a row]
// A row of threads takes a row of the loop, Note [Row loops], in phases. In each it walks the columns, computes what is
// needed and reduces it; then all threads have the rows' numbers, and the next phase may read them. An element-wise
// step runs in the first phase that needs its output. What a later phase reads again stays in registers where a thread
// has few elements; where it has many, or rows do not begin at multiples of 16 bytes, operands are read and steps
// computed once more: a row is in a cache then.
//
// Threads take the elements, and their accumulators are combined, in the order of Note [How a reduction runs on the
// GPU]: how many threads a row has, how many neighbours each takes, where the first vector begins. Sums have the bits
// of the library's own, where tensors begin at multiples of 16 bytes.

std::unique_ptr<ElementWiseLoop> fuse_rows(LoopDescription description);

}  // namespace rush::cuda::jit
