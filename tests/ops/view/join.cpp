#include "core/ops/view/join.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

TEST_CASE("cat: values, promotion, what is left out, layouts") {
  const Tensor a = counting({2, 2}), b = counting({2, 1});
  CHECK(values(cat({a, b}, 1)) == Doubles{0, 1, 0, 2, 3, 1});
  CHECK(values(cat({a, a.t()}, -2)) == Doubles{0, 1, 2, 3, 0, 2, 1, 3});
  CHECK(values(cat({zeros({0}), a, zeros({0, 2}, kFloat64)})) == values(a));
  CHECK(cat({zeros({0}), zeros({0})}).sizes() == IntArrayRef({0}));
  CHECK(cat({tensor({1, 2}), tensor({0.5})}).scalar_type() == kFloat32);
  CHECK(values(cat({tensor({true}), tensor({3})})) == Doubles{1, 3});
  CHECK(values(concat({b, b})) == values(concatenate({b, b})));
  const Tensor images = counting({2, 3, 4, 5}).contiguous(MemoryFormat::ChannelsLast);
  CHECK(cat({images, images}, 1).is_contiguous(MemoryFormat::ChannelsLast));
  CHECK(cat({images, images.contiguous()}, 1).is_contiguous());
  CHECK(values(cat({images, images}, 1).narrow(1, 3, 3)) == values(images));
  CHECK(cat({empty({2, 3}, kMeta), empty({4, 3}, kMeta)}).sizes() == IntArrayRef({6, 3}));
}

TEST_CASE("cat of many tensors: more than a launch takes, of any widths, alignments and strides") {
  const auto check = [](const Tensors& tensors, int64_t dim) {
    const Tensor joined = cat(tensors, dim);
    int64_t start = 0;
    for (const Tensor& t : tensors) {
      CHECK(values(joined.narrow(dim, start, t.size(dim))) == values(t));
      start += t.size(dim);
    }
    CHECK(start == joined.size(dim));
  };
  for (const ScalarType dtype : {kFloat32, kBool, kInt16, kInt64}) {
    const Tensor base = counting({3, 700}, dtype);
    Tensors rows, columns, aligned, single;
    for (int64_t i = 0; i < 170; ++i) {
      columns.push_back(base.narrow(1, i, i % 5));
      aligned.push_back(base.narrow(1, 16 * (i % 40), 16));
      rows.push_back(i % 3 == 0 ? base.narrow(0, i % 3, 2) : base.narrow(0, i % 2, i % 2));
      single.push_back(base.select(0, 1).select(0, i).reshape({1}));
    }
    columns.push_back(counting({2, 3}, dtype).t());
    check(columns, 1);
    check(aligned, 1);
    check(rows, 0);
    check(single, 0);
    check({base, base.slice(1, 0, 700, 2), counting({3, 1}, dtype).expand({3, 2}),
           counting({1, 4}, dtype).expand({3, 4})},
          1);
    check({base.slice(1, 0, 700, 3), base.slice(1, 1, 700, 40), base}, 1);
    check({base.select(0, 1).slice(0, 1, 700, 2), base.select(1, 0)}, 0);
    const Tensor cube = counting({3, 5, 8}, dtype);
    check({cube.slice(2, 0, 8, 2), cube.slice(2, 0, 4), cube.slice(2, 1, 8, 2)}, 1);
  }
  const Tensor long_one = counting({5000});
  check({long_one, counting({3}), long_one.narrow(0, 1, 4001), counting({2}, kInt64)}, 0);
  const Tensor planes = counting({2, 3, 4});
  check({planes, planes.narrow(1, 1, 2), planes.transpose(0, 1).contiguous().transpose(0, 1)}, 1);
}

TEST_CASE("stack and NumPy's stacks") {
  const Tensor a = counting({2}), b = a + 2;
  CHECK(values(stack({a, b})) == Doubles{0, 1, 2, 3});
  CHECK(values(stack({a, b}, -1)) == Doubles{0, 2, 1, 3});
  CHECK(stack({counting({}), counting({})}).sizes() == IntArrayRef({2}));
  CHECK(hstack({a, b}).sizes() == IntArrayRef({4}));
  CHECK(hstack({counting({2, 1}), counting({2, 2})}).sizes() == IntArrayRef({2, 3}));
  CHECK(vstack({a, counting({3, 2})}).sizes() == IntArrayRef({4, 2}));
  CHECK(row_stack({a, b}).sizes() == IntArrayRef({2, 2}));
  CHECK(dstack({a, b}).sizes() == IntArrayRef({1, 2, 2}));
  CHECK(values(column_stack({a, b})) == Doubles{0, 2, 1, 3});
  CHECK(values(block_diag({tensor({{1, 2}, {3, 4}}), tensor({5}), tensor(6)})) ==
        Doubles{1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 5, 0, 0, 0, 0, 6});
}

TEST_CASE("repeat, tile and meshgrid") {
  const Tensor x = counting({2, 2});
  CHECK(values(x.repeat({1, 2})) == Doubles{0, 1, 0, 1, 2, 3, 2, 3});
  CHECK(x.repeat({3, 1, 2}).sizes() == IntArrayRef({3, 2, 4}));
  CHECK(x.repeat({0, 2}).sizes() == IntArrayRef({0, 4}));
  CHECK_FALSE(x.repeat({1, 1}).is_alias_of(x));
  CHECK(values(tile(x, {2})) == values(x.repeat({1, 2})));
  CHECK(tile(counting({}), {2, 3}).sizes() == IntArrayRef({2, 3}));
  const Tensor a = counting({3}), b = counting({2});
  const Tensors grids = meshgrid({a, b}, "ij");
  CHECK(values(grids[0]) == Doubles{0, 0, 1, 1, 2, 2});
  CHECK(values(grids[1]) == Doubles{0, 1, 0, 1, 0, 1});
  const Tensors xy = meshgrid({a, b}, "xy");
  CHECK(xy[0].sizes() == IntArrayRef({2, 3}));
  CHECK(values(xy[0]) == Doubles{0, 1, 2, 0, 1, 2});
  CHECK(values(xy[1]) == Doubles{0, 0, 0, 1, 1, 1});
  CHECK(meshgrid({a, counting({})})[1].sizes() == IntArrayRef({3, 1}));
}

TEST_CASE("joins: what does not fit is a typed error") {
  const Tensor a = counting({2, 2});
  CHECK_THROWS_AS(cat(TensorList{}), ValueError);
  CHECK_THROWS_WITH_AS(
      cat({a, counting({3, 3})}),
      "cat: Sizes of tensors must match except in dimension 0, expected size 2 but got size 3 for tensor "
      "number 1 in the list, of shape (3, 3) where an earlier one has (2, 2)",
      ValueError);
  CHECK_THROWS_AS(cat({a, counting({2})}), ValueError);
  CHECK_THROWS_AS(cat({counting({}), counting({})}), ValueError);
  CHECK_THROWS_AS(cat({a, Tensor()}), ValueError);
  CHECK_THROWS_AS(cat({a, a}, 2), IndexError);
  CHECK_THROWS_AS(cat({a, empty({2, 2}, kMeta)}), ValueError);
  CHECK_THROWS_AS(stack({a, counting({2})}), ValueError);
  CHECK_THROWS_AS(stack(TensorList{}), ValueError);
  CHECK_THROWS_AS(a.repeat({2}), ValueError);
  CHECK_THROWS_AS(a.repeat({2, -1}), ValueError);
  CHECK_THROWS_AS(a.repeat({INT64_MAX, 2}), ValueError);
  CHECK_THROWS_AS(meshgrid({a}), ValueError);
  CHECK_THROWS_AS(meshgrid({counting({2}), counting({2}, kInt64)}), ValueError);
  CHECK_THROWS_AS(meshgrid({counting({2})}, "yx"), ValueError);
}

TEST_CASE("derivatives of joins") {
  const auto squared = [](const Tensor& y) { return Tensors{y * y}; };
  check_gradients(
      [&](const Tensors& x) {
        return squared(cat({x[0], x[1].t(), x[0]}, 1));
      },
      {leaf({2, 2}), leaf({3, 2})});
  check_gradients([&](const Tensors& x) { return squared(cat({x[0], x[1]})); }, {leaf({0}), leaf({2, 2})});
  check_gradients([&](const Tensors& x) { return squared(stack({x[0], x[1]}, 1)); }, {leaf({2, 2}), leaf({2, 2}, 1)});
  check_gradients([&](const Tensors& x) { return squared(hstack({x[0], x[1]})); }, {leaf({2}), leaf({3})});
  check_gradients([&](const Tensors& x) { return squared(x[0].repeat({2, 1, 2})); }, {leaf({3, 2})});
  check_gradients([&](const Tensors& x) { return squared(block_diag({x[0], x[1]})); }, {leaf({2, 1}), leaf({2})});
  check_gradients(
      [](const Tensors& x) {
        const Tensors grids = meshgrid({x[0], x[1]}, "xy");
        return Tensors{grids[0] * grids[1]};
      },
      {leaf({3}), leaf({2})});
  // A gradient comes back in its tensor's dtype.
  const Tensor narrow = ones({2}, kFloat32).requires_grad_(), wide = leaf({2});
  cat({narrow, wide}).sum().backward();
  CHECK(narrow.grad().scalar_type() == kFloat32);
  CHECK(wide.grad().scalar_type() == kFloat64);
}

}  // namespace
