// What the tests of CUDA graphs share.
#pragma once
#include <doctest/doctest.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "rushlight.h"
#include "tests/cuda/gpu.h"

namespace rush::testing {

// Calls `fn`, which must be refused with a message that has all `parts`.
inline void check_refused(const std::function<void()>& fn, std::initializer_list<const char*> parts) {
  try {
    fn();
    FAIL("expected a CudaError");
  } catch (const CudaError& error) {
    const std::string message = error.what();
    for (const char* part : parts) CHECK_MESSAGE(message.find(part) != message.npos, message);
  }
}

template <class List>
void check_equal_lists(const List& a, const List& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    INFO(i);
    if constexpr (std::is_same_v<typename List::value_type, Tensor>) {
      CHECK(equal(a[i], b[i]));
    } else {
      CHECK(a[i] == b[i]);
    }
  }
}

}  // namespace rush::testing
