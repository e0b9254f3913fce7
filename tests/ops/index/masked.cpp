#include "core/ops/index/masked.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

TEST_CASE("nonzero, and what a mask chooses, equal plain loops for any number of elements") {
  for (const int64_t n : {1, 15, 16, 17, 1000}) {
    const Tensor x = zeros({n, 3, 7});
    Doubles places, chosen;
    for (int64_t i = 0; i < x.numel(); ++i) {
      if (i * i % 11 > 3 && i % 64 > 20) continue;
      x.data_ptr<float>()[i] = static_cast<float>(i + 1);
      for (const int64_t at : {i / 21, i / 7 % 3, i % 7}) places.push_back(static_cast<double>(at));
      chosen.push_back(static_cast<double>(i + 1));
    }
    CHECK(values(nonzero(x)) == places);
    CHECK(values(nonzero(x != 0)) == places);
    CHECK(values(masked_select(x, x > 0)) == chosen);
    CHECK(values(zeros_like(x).masked_scatter(x > 0, tensor(chosen))) == values(x));
  }
}

TEST_CASE("nonzero: positions in row-major order") {
  const Tensor x = tensor({0.0, 3.0, 0.0, -1.0, 0.0, 2.0}).view({2, 3});
  CHECK(values(nonzero(x)) == Doubles{0, 1, 1, 0, 1, 2});
  CHECK(values(nonzero(x.t())) == Doubles{0, 1, 1, 0, 2, 1});
  CHECK(nonzero(x).scalar_type() == kInt64);
  CHECK(argwhere(x).sizes() == IntArrayRef({3, 2}));
  CHECK(nonzero(zeros({2, 3, 4})).sizes() == IntArrayRef({0, 3}));
  CHECK(nonzero(zeros({0, 3})).sizes() == IntArrayRef({0, 2}));
  CHECK(nonzero(scalar_tensor(2)).sizes() == IntArrayRef({1, 0}));
  CHECK(nonzero(scalar_tensor(0)).sizes() == IntArrayRef({0, 0}));
  const auto columns = nonzero_numpy(x);
  REQUIRE(columns.size() == 2);
  CHECK(values(columns[0]) == Doubles{0, 1, 1});
  CHECK(values(columns[1]) == Doubles{1, 0, 2});
  CHECK(where(scalar_tensor(2)).size() == 1);
  for (const ScalarType dtype : {kBool, kUInt8, kInt32, kFloat16, kBFloat16, kComplex64}) {
    CHECK(values(nonzero(x.to(dtype))) == values(nonzero(x)));
  }
  CHECK_THROWS_AS(nonzero(empty({2}, kMeta)), NotImplementedError);
}

TEST_CASE("nonzero and masked_select of many elements keep their order over threads") {
  const int64_t n = 300007;
  const Tensor x = counting({n}, kInt64), mask = zeros({n}, kBool);
  std::vector<double> expected;
  for (int64_t i = 0; i < n; ++i) {
    mask.data_ptr<bool>()[i] = i * i % 7 == 2;
    if (mask.data_ptr<bool>()[i]) expected.push_back(static_cast<double>(i));
  }
  CHECK(values(nonzero(mask)) == expected);
  CHECK(values(masked_select(x, mask)) == expected);
  const Tensor scattered = masked_scatter(zeros({n}, kInt64), mask, tensor(expected, kInt64));
  CHECK(values(masked_select(scattered, mask)) == expected);
  CHECK(values(scattered.sum()) == values(masked_select(x, mask).sum()));
}

TEST_CASE("masked_fill broadcasts self and mask") {
  const Tensor x = counting({2, 3}), mask = tensor({true, false, true});
  CHECK(values(masked_fill(x, mask, 9)) == Doubles{9, 1, 9, 9, 4, 9});
  CHECK(values(masked_fill(x.t(), mask.view({3, 1}), scalar_tensor(9))) == Doubles{9, 9, 1, 4, 9, 9});
  CHECK(masked_fill(counting({3}), zeros({2, 3}, kBool), 1).sizes() == IntArrayRef({2, 3}));
  CHECK(masked_fill(counting({3}, kInt64), mask, 1.5).scalar_type() == kInt64);
  CHECK(values(masked_fill(counting({3}, kInt64), mask, 1.5)) == Doubles{1, 1, 1});
  CHECK(std::isinf(values(masked_fill(counting({3}, kFloat16), mask, -INFINITY))[0]));
  CHECK(masked_fill(empty({2, 3}, kMeta), empty({3}, TensorOptions(kBool).device(kMeta)), 1).sizes() ==
        IntArrayRef({2, 3}));
  const Tensor y = x.clone();
  y.masked_fill_(mask, 7).masked_fill_(tensor({true, false}).view({2, 1}), scalar_tensor(0));
  CHECK(values(y) == Doubles{0, 0, 0, 7, 4, 7});
  CHECK_THROWS_AS(masked_fill(counting({3}, kInt64), mask, -INFINITY), ValueError);
  CHECK_THROWS_AS(masked_fill(x, tensor({1, 0, 1}), 9), TypeError);
  CHECK_THROWS_AS(masked_fill(x, mask, tensor({1.0, 2.0})), ValueError);
  CHECK_THROWS_AS(masked_fill(x, mask, Scalar(complex<double>(0, 1))), TypeError);
  CHECK_THROWS_AS(masked_fill(x, tensor({true, false}), 9), ValueError);
  CHECK_THROWS_AS(counting({3}).masked_fill_(zeros({2, 3}, kBool), 1), ValueError);
}

TEST_CASE("masked_select and masked_scatter") {
  const Tensor x = counting({2, 3}), mask = tensor({true, false, true});
  CHECK(values(masked_select(x, mask)) == Doubles{0, 2, 3, 5});
  CHECK(values(masked_select(x.t(), tensor({true, false}))) == Doubles{0, 1, 2});
  CHECK(masked_select(x, scalar_tensor(false, kBool)).sizes() == IntArrayRef({0}));
  const Tensor source = tensor({10.0, 20.0, 30.0, 40.0, 50.0}, kFloat64);
  CHECK(values(masked_scatter(x, mask, source)) == Doubles{10, 1, 20, 30, 4, 40});
  const Tensor y = x.clone();
  y.t().masked_scatter_(tensor({true, false}), source);
  CHECK(values(y) == Doubles{10, 20, 30, 3, 4, 5});
  y.masked_scatter_(tensor({false, true, true}), y);
  CHECK(values(y) == Doubles{10, 10, 20, 3, 30, 3});
  CHECK_THROWS_AS(masked_scatter(x, mask, tensor({1.0, 2.0}, kFloat64)), ValueError);
  Tensor untouched = zeros({1000}, kFloat32);
  CHECK_THROWS_AS(untouched.masked_scatter_(ones({1000}, kBool), ones({999})), ValueError);
  CHECK(untouched.count_nonzero().item<int64_t>() == 0);
  CHECK_THROWS_AS(masked_scatter(x, mask, tensor({1.0f})), TypeError);
  CHECK_THROWS_AS(masked_select(x, x), TypeError);
  CHECK_THROWS_AS(masked_select(empty({2}, kMeta), empty({2}, TensorOptions(kBool).device(kMeta))),
                  NotImplementedError);
}

TEST_CASE("derivatives of the masked operators") {
  const Tensor mask = tensor({true, false, true});
  check_gradients([&](const Tensors& x) { return Tensors{masked_fill(x[0], mask, 2)}; }, {leaf({2, 3})});
  check_gradients([&](const Tensors& x) { return Tensors{masked_fill(x[0], mask, x[1])}; }, {leaf({2, 1}), leaf({})});
  check_gradients([&](const Tensors& x) { return Tensors{masked_select(x[0], mask)}; }, {leaf({2, 3})});
  check_gradients(
      [&](const Tensors& x) {
        return Tensors{masked_select(x[0].t(), mask.view({3, 1}))};
      },
      {leaf({2, 3})});
  check_gradients([&](const Tensors& x) { return Tensors{masked_select(x[0], mask)}; }, {leaf({2, 1})});
  check_gradients([&](const Tensors& x) { return Tensors{masked_scatter(x[0], mask, x[1])}; },
                  {leaf({2, 3}), leaf({5}, 1)});
  const auto in_place = [&](const Tensors& x) {
    const Tensor y = x[0] * 2;
    y.masked_fill_(mask, x[1]).masked_scatter_(tensor({true, false}).view({2, 1}), x[0] * x[0]);
    y.select(0, 1).masked_fill_(mask, 3);
    return Tensors{y * y};
  };
  check_gradients(in_place, {leaf({2, 3}), leaf({}, 1)});
}

}  // namespace
