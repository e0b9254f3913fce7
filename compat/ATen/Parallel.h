// at::parallel_reduce. The loop, at::parallel_for, is the library's.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "torch/types.h"

namespace at {

/// What `combine` makes, from `identity` on, of part(from, to, identity) for the parts of [begin, end) in their order,
/// each of `grain` steps or a 256th of the range: the same parts for any number of threads.
template <class Scalar, class Part, class Combine>
Scalar parallel_reduce(int64_t begin, int64_t end, int64_t grain, Scalar identity, const Part& part,
                       const Combine& combine) {
  if (begin >= end) return identity;
  const int64_t step = std::max<int64_t>(grain, (end - begin + 255) / 256);
  const int64_t parts = (end - begin + step - 1) / step;
  std::vector<Scalar> results(static_cast<size_t>(parts), identity);
  parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      const int64_t from = begin + p * step;
      results[static_cast<size_t>(p)] = part(from, std::min(from + step, end), identity);
    }
  });
  Scalar result = identity;
  for (const Scalar& each : results) result = combine(result, each);
  return result;
}

}  // namespace at
