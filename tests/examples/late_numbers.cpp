#include "examples/late_numbers.h"

#include <doctest/doctest.h>

#include "rushlight.h"

TEST_CASE("on the CPU numbers are never late, and are copies") {
  examples::LateNumbers numbers;
  CHECK_FALSE(numbers.pop());
  CHECK_FALSE(numbers.pop(/*all=*/true));
  rush::Tensor loss = rush::tensor({0.5, 2.0}).to(rush::kFloat32);
  numbers.push(loss);
  loss.fill_(7);
  numbers.push(loss);
  const auto first = numbers.pop();
  REQUIRE(first);
  CHECK(rush::equal(*first, rush::tensor({0.5, 2.0}).to(rush::kFloat64)));
  CHECK((*numbers.pop())[0].item<double>() == 7);
  CHECK_FALSE(numbers.pop());
}
