// Lab 17, all-reduce in a ring: this file takes the place of tests/labs/solutions/ring.cpp. What each function has to
// do stands in tests/labs/solutions/ring.h and docs/labs/ring.md. Write them in this order; `./rush lab 17` checks them
// in this order.
#include "tests/labs/solutions/ring.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/join.h"
#include "core/ops/view/view.h"
#include "optim/optimizer.h"

namespace rush::labs {

// Where chunk `index` begins in an array of `count` elements, and how many it has.
Chunk chunk_of(int64_t count, int size, int index) {
  RUSH_THROW(NotImplementedError, "begin here: return where chunk ", index, " of ", size, " begins in ", count,
             " elements, and how many it has");
}

// Rank r ends with the sum of chunk r.
void ring_reduce_scatter(Wire& wire, float* data, int64_t count) {
  RUSH_THROW(NotImplementedError, "next: in ", wire.size() - 1, " steps, send a chunk of the ", count,
             " elements to the next rank, and add the one that comes from the rank before; the first element is ",
             count > 0 ? data[0] : 0);
}

// Rank r begins with chunk r, and ends with all.
void ring_all_gather(Wire& wire, float* data, int64_t count) {
  RUSH_THROW(NotImplementedError, "next: in ", wire.size() - 1, " steps, send a chunk of the ", count,
             " elements to the next rank, and keep the one that comes from the rank before; the first element is ",
             count > 0 ? data[0] : 0);
}

// Each rank ends with the sums of all elements.
void ring_all_reduce(Wire& wire, float* data, int64_t count) {
  RUSH_THROW(NotImplementedError, "next: call the two functions above on rank ", wire.rank(), " for ", count,
             " elements, of which the first is ", count > 0 ? data[0] : 0);
}

// Each rank ends with the elements of rank 0.
void ring_broadcast(Wire& wire, float* data, int64_t count) {
  RUSH_THROW(NotImplementedError, "next: rank ", wire.rank(), " receives ", count,
             " elements unless it is the first, and sends them on unless it is the last; the first element is ",
             count > 0 ? data[0] : 0);
}

// The parameters become those of rank 0.
void broadcast_parameters(Wire& wire, const std::vector<Tensor>& parameters) {
  RUSH_THROW(NotImplementedError, "next: call ring_broadcast for each of the ", parameters.size(),
             " parameters on rank ", wire.rank());
}

// The gradients become the means over all ranks; they travel in buckets.
void average_gradients(Wire& wire, const std::vector<Tensor>& parameters, int64_t bucket_size) {
  RUSH_THROW(NotImplementedError, "next: join the gradients of the ", parameters.size(),
             " parameters to arrays of at most ", bucket_size, " elements, and call ring_all_reduce on rank ",
             wire.rank());
}

// One step of the training of all ranks; returns the mean of their losses.
float train_step(Wire& wire, optim::Optimizer& optimizer, const std::function<Tensor()>& loss, int64_t bucket_size) {
  RUSH_THROW(NotImplementedError, "last: compute the gradients of loss() by ", optimizer.parameters().size(),
             " parameters, average them in buckets of ", bucket_size, ", and take the step on rank ", wire.rank(),
             loss ? "" : "; there is no loss");
}

}  // namespace rush::labs
