// Loops over the elements of many tensors.
#pragma once
#include <algorithm>

#include "backends/cpu/loops.h"

namespace rush::cpu {

// Calls body(i, begin, n) for chunks of n elements of tensor number i, so that threads share the elements of all
// tensors evenly. Allocates nothing: an optimiser's step must not fail half-way, Note [All of a step or nothing of it].
template <class Body>
void for_each_chunk(TensorList tensors, const Body& body) {
  int64_t total = 0;
  for (const Tensor& tensor : tensors) total += tensor.numel();
  parallel_for(0, total, kGrain, [&](int64_t begin, int64_t end) {
    int64_t start = 0;  // of tensor i among the elements of all
    for (size_t i = 0; i < tensors.size() && start < end; ++i) {
      const int64_t next = start + tensors[i].numel();
      const int64_t from = std::max(begin, start), to = std::min(end, next);
      if (from < to) body(i, from - start, to - from);
      start = next;
    }
  });
}

}  // namespace rush::cpu
