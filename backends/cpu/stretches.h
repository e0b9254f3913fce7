// Loops over the elements of many tensors.
#pragma once
#include <algorithm>
#include <vector>

#include "backends/cpu/loops.h"

namespace rush::cpu {

// Calls body(i, begin, n) for stretches of n elements of tensor number i, so that threads share the elements of all
// tensors evenly.
template <class Body>
void for_each_stretch(TensorList tensors, const Body& body) {
  std::vector<int64_t> starts = {0};
  for (const Tensor& tensor : tensors) starts.push_back(starts.back() + tensor.numel());
  parallel_for(0, starts.back(), kGrain, [&](int64_t begin, int64_t end) {
    auto next = static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), begin) - starts.begin());
    for (size_t i = next - 1; i < tensors.size() && starts[i] < end; ++i) {
      const int64_t from = std::max(begin, starts[i]);
      body(i, from - starts[i], std::min(end, starts[i + 1]) - from);
    }
  });
}

}  // namespace rush::cpu
