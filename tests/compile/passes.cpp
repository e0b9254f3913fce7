// The passes that know nothing of the operators: autograd/compile/passes.cpp.
#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/compile/graph_calls.h"

using namespace rush;

TEST_CASE("calls with the same numbers are one, and 0 is not -0") {
  const NoGradGuard no_grad;
  const auto products = [](double a, double b) {
    auto f = compile([=](const Tensor& x) { return (x * a).exp() + (x * b).reciprocal(); }, {.fuse = false});
    const Tensor x = randn({5});
    CHECK(f(x).equal((x * a).exp() + (x * b).reciprocal()));
    return testing::calls_of(f.graph(), "aten::mul.Tensor");
  };
  CHECK(products(3.5, 3.5) == 1);
  CHECK(products(3.5, 2.5) == 2);
  CHECK(products(0., -0.) == 2);
}
