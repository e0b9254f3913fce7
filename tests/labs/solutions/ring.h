// What lab 17 asks for: an all-reduce out of messages between neighbours in a ring, and data parallelism on top of it.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "core/tensor.h"
#include "tests/labs/wire/wire.h"

namespace rush::optim {
class Optimizer;
}

namespace rush::labs {

/// Elements begin to begin + count - 1 of an array.
struct Chunk {
  int64_t begin, count;
};

/// Chunk `index` of `size` that an array of `count` elements is divided into: one after another, the first
/// count % size of them an element longer than the others. Chunks may be empty.
Chunk chunk_of(int64_t count, int size, int index);

// Each rank of the wire calls the same function, with as many elements in `data`. Messages go to the next rank alone,
// and from the last to rank 0. On a wire of one rank nothing is sent.

/// Chunk r of the array becomes, on rank r, the sum of what it is on each. What the other chunks then hold is not said.
void ring_reduce_scatter(Wire& wire, float* data, int64_t count);

/// Every chunk r becomes, on each rank, what it is on rank r.
void ring_all_gather(Wire& wire, float* data, int64_t count);

/// Every element becomes, on each rank, the sum of what it is on each.
void ring_all_reduce(Wire& wire, float* data, int64_t count);

/// Every element becomes, on each rank, what it is on rank 0.
void ring_broadcast(Wire& wire, float* data, int64_t count);

// Parameters are float32 on the CPU, in the same order on each rank.

/// The parameters become those of rank 0. No history of it is recorded.
void broadcast_parameters(Wire& wire, const std::vector<Tensor>& parameters);

/// The gradients become the means over all ranks. They travel in buckets: gradients of successive parameters, as many
/// as have at most `bucket_size` elements together, and at least one. A gradient that is undefined counts as zeros.
void average_gradients(Wire& wire, const std::vector<Tensor>& parameters, int64_t bucket_size);

/// One step of a training in which each rank has rows of its own: `loss` computes the mean over them, and the
/// optimiser's parameters get the step that they would get on one rank with all rows. Returns the mean of the losses.
float train_step(Wire& wire, optim::Optimizer& optimizer, const std::function<Tensor()>& loss, int64_t bucket_size);

}  // namespace rush::labs
