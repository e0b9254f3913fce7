#include <doctest/doctest.h>

#include "rushlight.h"

using namespace rush;

TEST_CASE("Functional makes a module of a function and the arguments behind the first") {
  const Tensor x = tensor({-2.0, 0.5}, kDouble);
  CHECK(equal(nn::Functional(relu)(x), relu(x)));
  CHECK(equal(nn::Functional(elu, 2, 1, 0.5)(x), elu(x, 2, 1, 0.5)));
  nn::Sequential net(nn::Functional(rush::tanh), nn::Functional([](const Tensor& input) { return input * 2; }));
  CHECK(equal(net->forward(x), tanh(x) * 2));
  CHECK(net->parameters().empty());

  const auto copy = nn::Functional(relu)->clone();
  CHECK(equal(copy->as<nn::Functional>()->forward(x), relu(x)));
  CHECK_FALSE(copy->is_training());
}
