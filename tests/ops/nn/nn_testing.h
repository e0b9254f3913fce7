// What the tests of operators of neural networks share: comparisons of results.
#pragma once
#include <cmath>

#include "tests/ops/index/index_testing.h"

namespace rush::testing {

// The tensor's elements are these numbers within a tolerance, relative to those above one.
inline void check_close(const Tensor& got, const Doubles& expected, double tolerance = 1e-9) {
  const Doubles numbers = values(got);
  REQUIRE(numbers.size() == expected.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    CHECK(std::abs(numbers[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])));
  }
}

// The largest difference between elements of two tensors of the same shape.
inline double distance_between(const Tensor& a, const Tensor& b) {
  CHECK(a.sizes() == b.sizes());
  return largest(a - b);
}

}  // namespace rush::testing
