#include "core/ops/index/indexing.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::indexing;
using namespace rush::testing;

TEST_CASE("indexing: integers, slices, None and Ellipsis are views") {
  const Tensor x = counting({2, 3, 4});
  struct {
    Tensor got;
    DimVector sizes;
    double first, last;
  } const cases[] = {
      {x.index({1}), {3, 4}, 12, 23},
      {x.index({-1, 2, -1}), {}, 23, 23},
      {x.index({Slice(), 1}), {2, 4}, 4, 19},
      {x.index({0, Slice(1)}), {2, 4}, 4, 11},
      {x.index({0, Slice(None, -1), Slice(0, None, 3)}), {2, 2}, 0, 7},
      {x.index({Ellipsis, 1}), {2, 3}, 1, 21},
      {x.index({"...", None}), {2, 3, 4, 1}, 0, 23},
      {x.index({None, 1, Ellipsis, Slice(1, 2)}), {1, 3, 1}, 13, 21},
      {x.index({}), {2, 3, 4}, 0, 23},
      {x.index({Slice(5, 7)}), {0, 3, 4}, 0, 0},
      {x.index({Ellipsis}), {2, 3, 4}, 0, 23},
      {x[1][2], {4}, 20, 23},
      {x[scalar_tensor(1, kInt64)], {3, 4}, 12, 23},
  };
  for (const auto& c : cases) {
    CHECK(c.got.sizes() == IntArrayRef(c.sizes));
    CHECK(c.got.is_alias_of(x));
    CHECK_FALSE(c.got.is_same(x));
    if (c.got.numel() == 0) continue;
    CHECK(values(c.got).front() == c.first);
    CHECK(values(c.got).back() == c.last);
  }
}

TEST_CASE("indexing: tensors gather, wherever views come before and after") {
  const Tensor x = counting({2, 3, 4});
  const Tensor rows = tensor({0, 2}), mask = tensor({{true, false, true}, {false, true, false}});
  CHECK(values(x.index({mask, Slice(1, 3)})) == Doubles{1, 2, 9, 10, 17, 18});
  CHECK(values(x.index({1, rows, 3})) == Doubles{15, 23});
  CHECK(x.index({Ellipsis, rows}).sizes() == IntArrayRef({2, 3, 2}));
  CHECK(x.index({None, tensor({0, 1}), Slice(), rows}).sizes() == IntArrayRef({2, 1, 3}));
  CHECK(x.index({true}).sizes() == IntArrayRef({1, 2, 3, 4}));
  CHECK(x.index({false, 0}).sizes() == IntArrayRef({0, 3, 4}));
  CHECK(x.index({scalar_tensor(true, kBool), 1}).sizes() == IntArrayRef({1, 3, 4}));
  CHECK(values(x.index({Slice(None, None, 2), 0, mask.select(0, 0).new_ones({4})})) == Doubles{0, 1, 2, 3});
  CHECK(values(x.index({std::vector<TensorIndex>{1, 1, rows}})) == Doubles{16, 18});
}

TEST_CASE("indexing: index_put_ writes through views and gathers") {
  const Tensor x = zeros({2, 3}, kFloat64);
  x.index_put_({0, Slice(1)}, 5);
  CHECK(values(x) == Doubles{0, 5, 5, 0, 0, 0});
  x.index_put_({Slice(), 0}, tensor({1.0, 2.0}));  // another dtype is converted
  CHECK(values(x) == Doubles{1, 5, 5, 2, 0, 0});
  x.index_put_({1}, tensor({{{7.0, 8.0, 9.0}}}, kFloat64));  // leading ones do not count
  CHECK(values(x) == Doubles{1, 5, 5, 7, 8, 9});
  x.index_put_({tensor({1}), Slice(1)}, tensor({{{8.0, 9.0}}}, kFloat64));
  CHECK(values(x) == Doubles{1, 5, 5, 7, 8, 9});
  x.index_put_({Ellipsis, tensor({2, 0})}, tensor({{3.0, 4.0}}, kFloat64));
  CHECK(values(x) == Doubles{4, 5, 3, 4, 8, 3});
  x.index_put_({x > 4.5}, 0.5);
  CHECK(values(x) == Doubles{4, 0.5, 3, 4, 0.5, 3});
  CHECK_THROWS_AS(x.index_put_({0}, tensor({1.0, 2.0})), ValueError);
  CHECK(values(x) == Doubles{4, 0.5, 3, 4, 0.5, 3});
}

TEST_CASE("indexing: what cannot be indexed is a typed error") {
  const Tensor x = counting({2, 3});
  CHECK_THROWS_AS(x.index({0, 0, 0}), IndexError);
  CHECK_THROWS_AS(x.index({2}), IndexError);
  CHECK_THROWS_AS(x.index({Ellipsis, 0, Ellipsis}), IndexError);
  CHECK_THROWS_AS(x.index({"a"}), ValueError);
  CHECK_THROWS_AS(x.index({Slice(None, None, -1)}), ValueError);
  CHECK_THROWS_AS(x.index({tensor({0.5})}), TypeError);
  CHECK_THROWS_AS(x.index({Tensor()}), ValueError);
  CHECK_THROWS_AS(x.index({tensor({true, false, true})}), IndexError);
}

TEST_CASE("indexing: gradients flow through reads and writes") {
  const Tensor rows = tensor({2, 0, 2});
  check_gradients(
      [&](const Tensors& x) {
        return Tensors{x[0].index({Slice(None, None, 2), rows}), x[0].index({1, Slice(1)})};
      },
      {leaf({3, 4})});
  check_gradients(
      [&](const Tensors& x) {
        const Tensor y = x[0] * 1;
        y.index_put_({Slice(), 1}, x[1]);
        y.index_put_({0, tensor({0, 3})}, x[1].slice(0, 0, 2));
        return Tensors{y * y};
      },
      {leaf({3, 4}), leaf({3}, 1)});
}

}  // namespace
