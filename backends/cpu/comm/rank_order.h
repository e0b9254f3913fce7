// The reductions of MPI's collectives: elements of several processes, in the order of their ranks.
#pragma once
#include "core/distributed/reduce_op.h"

namespace rush::cpu {

// Note [Sums in the order of ranks]
// MPI_Allreduce chooses its algorithm by the size of a message, and with it the order in which it adds, so a number
// would depend on the bucket that it lies in. Here a reduction is an MPI_Alltoall, by which each process gets a block
// of the elements of all; then this function, which begins with the element of rank 0 and goes on with those of ranks
// 1, 2, ...; then an MPI_Allgather of the blocks. As many bytes travel as in a ring. So results are the same in every
// run, in buckets of any size, and as one process computes them that adds up the same parts in this order. All dtypes
// are reduced alike: those of 16 and 8 bits in float32, rounded once at the end.

/// out[i] = blocks[0][i] op blocks[1][i] op ..., for `count` blocks of `numel` elements, one behind the other.
void reduce_in_rank_order(void* out, const void* blocks, int64_t numel, int64_t count, ScalarType dtype,
                          distributed::ReduceOp op);

}  // namespace rush::cpu
