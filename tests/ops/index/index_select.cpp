#include "core/ops/index/index_select.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

// The element at `position`, whatever the strides.
double at(const Tensor& t, const Longs& position) {
  int64_t offset = 0;
  for (size_t d = 0; d < position.size(); ++d) offset += position[d] * t.strides()[d];
  return t.data_ptr<double>()[offset];
}

TEST_CASE("index_select equals a plain loop along every dimension, strided or not") {
  const Tensor base = counting({3, 4, 2});
  const Tensor index = tensor({2, 0, 2, 1});
  for (const Tensor& x : {base, base.transpose(0, 2), base.transpose(1, 2)}) {
    for (int64_t dim = 0; dim < 3; ++dim) {
      const Tensor picked = index_select(x, dim, index.masked_fill(index.to(kFloat64).to(kBool), x.size(dim) - 1));
      DimVector sizes(x.sizes());
      sizes[static_cast<size_t>(dim)] = 4;
      REQUIRE(picked.sizes() == IntArrayRef(sizes));
      for (int64_t i = 0; i < picked.numel(); ++i) {
        const int64_t b = i / (sizes[1] * sizes[2]), c = i / sizes[2] % sizes[1], d = i % sizes[2];
        Longs from = {b, c, d};
        int64_t& along = from[static_cast<size_t>(dim)];
        along = along == 1 ? 0 : x.size(dim) - 1;
        CHECK(at(picked, {b, c, d}) == at(x, from));
      }
    }
  }
  CHECK(values(index_select(base, -3, tensor({1}).to(kInt32))) == values(base.select(0, 1)));
  CHECK(index_select(base, 1, zeros({0}, kInt64)).sizes() == IntArrayRef({3, 0, 2}));
  const Tensor line = counting({40}).slice(0, 1, 40, 3), places = (arange(500, kInt64) * 7 % 13).slice(0, 0, 500, 2);
  CHECK(values(index_select(line, 0, places)) == values(places * 3 + 1));
  CHECK(index_select(line, 0, scalar_tensor(2, kInt64)).sizes() == IntArrayRef({1}));
  CHECK_THROWS_AS(index_select(line, 0, tensor({13})), IndexError);
  CHECK_THROWS_AS(index_select(line, 0, tensor({-1})), IndexError);
  CHECK(index_select(base, 1, scalar_tensor(1, kInt64)).sizes() == IntArrayRef({3, 1, 2}));
  CHECK(index_select(scalar_tensor(5), 0, tensor({0})).sizes().empty());
  CHECK(index_select(empty({3, 4}, kMeta), 1, empty({5}, TensorOptions(kInt64).device(kMeta))).sizes() ==
        IntArrayRef({3, 5}));
  CHECK_THROWS_WITH_AS(index_select(base, 1, tensor({0, 4})),
                       doctest::Contains("index_select: index out of range in self: index 4 is out of bounds for"),
                       IndexError);
  CHECK_THROWS_AS(index_select(base, 1, tensor({-1})), IndexError);
  CHECK_THROWS_AS(index_select(base, 3, tensor({0})), IndexError);
  CHECK_THROWS_AS(index_select(base, 0, zeros({1, 1}, kInt64)), ValueError);
  CHECK_THROWS_AS(index_select(base, 0, tensor({0.0})), TypeError);
}

TEST_CASE("the order of an index, and a sum that is given it") {
  const Tensor index = tensor({3, 0, 3, 1, 0}), source = arange(10., kFloat64).view({5, 2});
  const Tensor order = ops::index_order(index, 4);
  CHECK(values(order) == Doubles{1, 4, 3, 0, 2});
  const Tensor zero = zeros({4, 2}, kFloat64);
  CHECK(ops::index_add_in_order(zero, 0, index, source, order).equal(index_add(zero, 0, index, source)));
  CHECK(ops::index_order(tensor({}, kInt64), 4).numel() == 0);
  CHECK_THROWS_AS(ops::index_add_in_order(zero, 0, index, source, order.narrow(0, 0, 4)), ValueError);
  CHECK_THROWS_AS(ops::index_add_in_order(zero, 0, index, source, order.to(kInt32)), TypeError);
  CHECK_THROWS_AS(ops::index_order(tensor({4}), 4).cpu(), IndexError);
}

TEST_CASE("index_add, index_copy and index_fill") {
  const Tensor x = counting({2, 3}), index = tensor({2, 0, 2});
  const Tensor source = tensor({10.0, 20.0, 30.0, 40.0, 50.0, 60.0}, kFloat64).view({2, 3});
  CHECK(values(index_add(x, 1, index, source)) == Doubles{20, 1, 42, 53, 4, 105});
  CHECK(values(index_add(x, 1, index, source, 0.5)) == Doubles{10, 1, 22, 28, 4, 55});
  CHECK(values(index_add(x.t(), 0, index, source.t())) == Doubles{20, 53, 1, 4, 42, 105});
  CHECK(values(index_copy(x, 1, tensor({2, 0, 1}), source)) == Doubles{20, 30, 10, 50, 60, 40});
  CHECK(values(index_fill(x, 1, tensor({-1}), 7)) == Doubles{0, 1, 7, 3, 4, 7});
  CHECK(values(index_fill(x, 0, tensor({1}), scalar_tensor(7))) == Doubles{0, 1, 2, 7, 7, 7});
  CHECK(values(index_add(zeros({2}, kBool), 0, tensor({1, 1}), tensor({true, true}))) == Doubles{0, 1});
  CHECK(values(index_add(zeros({}, kFloat64), 0, tensor({0}), scalar_tensor(3, kFloat64))) == Doubles{3});
  const Tensor y = x.clone();
  y.t().index_add_(0, index, source.t()).index_copy_(1, tensor({0}), zeros({3, 1}, kFloat64));
  CHECK(values(y) == Doubles{0, 0, 0, 53, 4, 105});
  y.index_fill_(1, tensor({0, 1}), 1).index_fill_(0, tensor({0}), scalar_tensor(2));
  CHECK(values(y) == Doubles{2, 2, 2, 1, 1, 105});
  y.index_copy_(0, tensor({1, 0}), y);
  CHECK(values(y) == Doubles{1, 1, 105, 2, 2, 2});

  const Doubles before = values(y);
  CHECK_THROWS_AS(y.index_add_(1, tensor({0, 1, 3}), source), IndexError);
  CHECK_THROWS_AS(y.index_add_(1, tensor({0, 1}), source), ValueError);
  CHECK_THROWS_AS(y.index_add_(0, tensor({0, 1}), source.t()), ValueError);
  CHECK_THROWS_AS(y.index_add_(1, index, source.to(kFloat32)), TypeError);
  CHECK_THROWS_AS(index_add(zeros({2}, kInt64), 0, tensor({0}), tensor({1}), 0.5), TypeError);
  CHECK_THROWS_AS(y.index_copy_(1, tensor({0, 3, 1}), source), IndexError);
  CHECK_THROWS_AS(y.index_fill_(1, tensor({0, 3}), 1), IndexError);
  CHECK_THROWS_AS(index_fill(y, 1, tensor({0}), tensor({1.0, 2.0})), ValueError);
  CHECK_THROWS_AS(index_fill(y, 1, tensor({0}), Scalar(complex<double>(0, 1))), TypeError);
  CHECK_THROWS_AS(scalar_tensor(1).expand({3}).index_fill_(0, tensor({0}), 1), ValueError);
  if (y.device().is_cpu()) CHECK(values(y) == before);  // a kernel on the GPU finds out while it writes
}

TEST_CASE("repeat_interleave") {
  const Tensor x = counting({2, 3});
  CHECK(values(repeat_interleave(tensor({1, 0, 3}))) == Doubles{0, 2, 2, 2});
  CHECK(repeat_interleave(tensor({1, 0, 3}).to(kInt32)).scalar_type() == kInt32);
  CHECK(values(repeat_interleave(x, tensor({2, 0, 1}), 1)) == Doubles{0, 0, 2, 3, 3, 5});
  CHECK(values(repeat_interleave(x, tensor({2}), 0)) == Doubles{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(values(repeat_interleave(x, 2, -1)) == Doubles{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  CHECK(values(repeat_interleave(x.t(), 2)) == Doubles{0, 0, 3, 3, 1, 1, 4, 4, 2, 2, 5, 5});
  CHECK(repeat_interleave(x, 0, 0).sizes() == IntArrayRef({0, 3}));
  CHECK(values(repeat_interleave(scalar_tensor(4), 3, 0)) == Doubles{4, 4, 4});
  for (const Tensor& y : {repeat_interleave(x, 1, 0), repeat_interleave(scalar_tensor(4), 3)}) {
    CHECK(!y.is_alias_of(x));
    CHECK(y.is_contiguous());  // not one element with a stride of 0
  }
  CHECK(repeat_interleave(empty({2, 3}, kMeta), 2, 1).sizes() == IntArrayRef({2, 6}));
  CHECK_THROWS_AS(repeat_interleave(tensor({1, -1})), ValueError);
  CHECK_THROWS_AS(repeat_interleave(tensor({1, 1}), std::optional<int64_t>(3)), ValueError);
  CHECK_THROWS_AS(repeat_interleave(tensor({1.0})), TypeError);
  CHECK_THROWS_AS(repeat_interleave(x, tensor({1, 2}), 1), ValueError);
  CHECK_THROWS_AS(repeat_interleave(x, -1), ValueError);
  CHECK_THROWS_AS(repeat_interleave(x, 2, 0, 5), ValueError);
  CHECK_THROWS_AS(repeat_interleave(empty({2}, TensorOptions(kInt64).device(kMeta))), NotImplementedError);
}

TEST_CASE("derivatives of the index_select family") {
  const Tensor index = tensor({2, 0, 2}), distinct = tensor({2, 0});
  check_gradients([&](const Tensors& x) { return Tensors{index_select(x[0], 1, index)}; }, {leaf({2, 3})});
  check_gradients([&](const Tensors& x) { return Tensors{index_select(x[0].t(), 0, index)}; }, {leaf({2, 3})});
  check_gradients([&](const Tensors& x) { return Tensors{index_select(x[0], 0, tensor({0}))}; }, {leaf({})});
  check_gradients([&](const Tensors& x) { return Tensors{index_add(x[0], 1, index, x[1], 0.5)}; },
                  {leaf({2, 3}), leaf({2, 3}, 1)});
  check_gradients([&](const Tensors& x) { return Tensors{index_add(x[0], 0, tensor({1}), x[1])}; },
                  {leaf({2}), leaf({}, 1)});
  check_gradients([&](const Tensors& x) { return Tensors{index_copy(x[0], 1, distinct, x[1])}; },
                  {leaf({2, 3}), leaf({2, 2}, 1)});
  check_gradients([&](const Tensors& x) { return Tensors{index_fill(x[0], 1, index, x[1])}; },
                  {leaf({2, 3}), leaf({}, 1)});
  check_gradients([&](const Tensors& x) { return Tensors{index_fill(x[0], 1, index, 2)}; }, {leaf({2, 3})});
  check_gradients(
      [&](const Tensors& x) {
        return Tensors{repeat_interleave(x[0], tensor({2, 0, 1}), 1)};
      },
      {leaf({2, 3})});
  check_gradients([&](const Tensors& x) { return Tensors{repeat_interleave(x[0], 2, 0)}; }, {leaf({2, 3})});
  const auto in_place = [&](const Tensors& x) {
    const Tensor y = x[0] * 2;
    y.index_add_(1, index, x[1]).index_copy_(1, distinct, x[1].narrow(1, 0, 2));
    y.index_fill_(0, tensor({0}), x[2]);
    y.select(0, 1).index_fill_(0, tensor({1}), 3);
    return Tensors{y * y};
  };
  check_gradients(in_place, {leaf({2, 3}), leaf({2, 3}, 1), leaf({}, 2)});
}

}  // namespace
