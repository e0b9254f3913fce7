// CUDA's loops of several element-wise kernels and reductions: one kernel, compiled at run time.
#pragma once
#include <memory>
#include <string>

#include "core/compile/element_wise_loop.h"

namespace rush::cuda::jit {

// Note [Fused kernels]
// The kernels of a loop become one kernel's source: loads, then a call of each kernel's functor, then stores. The
// functors are the library's own (Note [Functors compiled at run time]), and what one leaves for the next is rounded to
// its dtype, as it is on its way through memory; nor may a product of one be contracted with a sum of the next, or be
// shared with another functor's, which then contracts it no more. So the results are those of the kernels one after
// another, bit for bit. A thread takes as many neighbours along the innermost dimension as 16 bytes of its narrowest
// operand hold, where all operands lie on such boundaries, and one otherwise; and of the next dimension several, see
// Note [Positions of a channel]. Profilers show a kernel by what it consists of, such as "fused_mul_add_relu". Sizes
// and strides are parameters: one compilation serves all batches, and the cache of cubins later runs.

// Its source, for threads that take `lanes` neighbours.
std::string source_text(const LoopDescription& loop, int lanes);

std::unique_ptr<ElementWiseLoop> fuse(LoopDescription description);

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

// Of a loop that has rows: row_loop.cpp.
std::unique_ptr<ElementWiseLoop> fuse_rows(LoopDescription description);

}  // namespace rush::cuda::jit
