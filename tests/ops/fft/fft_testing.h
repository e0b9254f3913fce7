// What the tests of Fourier transforms and signals share.
#pragma once
#include <cmath>

#include "tests/ops/index/index_testing.h"

namespace rush::testing {

// The tensor's elements are these numbers within an absolute tolerance.
inline void check_values(const Tensor& t, const Doubles& expected, double tolerance = 1e-12) {
  const Doubles got = values(t);
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - expected[i]) <= tolerance);
}

}  // namespace rush::testing
