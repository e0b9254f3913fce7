// Whether two runs of a function gave the same.
#pragma once
#include <doctest/doctest.h>

#include <vector>

#include "core/ops/pointwise/compare.h"
#include "core/tensor.h"

namespace rush::testing {

// As many tensors, each with the same bits.
inline void check_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(a[i].defined() == b[i].defined());
    if (a[i].defined()) CHECK(a[i].equal(b[i]));
  }
}

}  // namespace rush::testing
