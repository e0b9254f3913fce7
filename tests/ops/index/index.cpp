#include "core/ops/index/index.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

using Indices = std::vector<std::optional<Tensor>>;

TEST_CASE("index: the indexed dimensions stand where the first one was, or at the front") {
  const Tensor x = counting({2, 3, 4});
  const Tensor rows = tensor({1, 0, 1}), columns = tensor({3, 0, -1});
  const Tensor one = index(x, Indices{std::nullopt, rows});
  CHECK(one.sizes() == IntArrayRef({2, 3, 4}));
  CHECK(values(one.select(0, 0).select(0, 0)) == Doubles{4, 5, 6, 7});
  const Tensor neighbours = index(x, Indices{std::nullopt, rows, columns});
  CHECK(neighbours.sizes() == IntArrayRef({2, 3}));
  CHECK(values(neighbours) == Doubles{7, 0, 7, 19, 12, 19});
  const Tensor apart = index(x, Indices{rows, std::nullopt, columns});
  CHECK(apart.sizes() == IntArrayRef({3, 3}));
  CHECK(values(apart) == Doubles{15, 19, 23, 0, 4, 8, 15, 19, 23});
  const Tensor grid = index(x, Indices{tensor({0, 1}).view({2, 1}), tensor({2, 1})});
  CHECK(grid.sizes() == IntArrayRef({2, 2, 4}));
  CHECK(values(grid.select(2, 0)) == Doubles{8, 4, 20, 16});
  CHECK(values(index(x, Indices{scalar_tensor(1, kInt64)})) == values(x.select(0, 1)));
}

TEST_CASE("index_put_: a number under a mask equals a plain loop, for masks of the first dimensions, of any layout") {
  for (const ScalarType dtype : {kFloat32, kBFloat16, kInt64, kBool, kComplex128}) {
    for (const int64_t height : {1, 5, 37}) {
      const Tensor x = counting({height, 7, 3}).remainder(9).to(dtype);
      const Tensor wide = (counting({height, 14}).remainder(3) == 0).slice(1, 0, 14, 2), row = wide.select(1, 0);
      for (const Tensor& mask : {wide, row, row.logical_not().unsqueeze(1).expand({height, 7})}) {
        for (const Tensor& y : {x.clone(), x.transpose(1, 2).contiguous().transpose(1, 2)}) {
          Tensor target = y.clone();
          index_put_(target, {mask}, ones({}, dtype));
          const Tensor all = mask.reshape({height, -1, 1}).expand({height, 7, 3});
          CHECK(equal(target, where(all, ones({}, dtype), y)));
          CHECK(equal(index_put(y, {mask}, ones({}, dtype), true),
                      where(all, dtype == kBool ? ones({}, dtype) : y + 1, y)));
        }
      }
    }
  }
  Tensor flags = tensor({true, false, true});
  CHECK(values(index_put_(flags, {flags}, zeros({}, kBool))) == Doubles{0, 0, 0});
  Tensor numbers = tensor({1.0, 2.0, 3.0});
  CHECK(values(index_put_(numbers, {numbers > 1.5}, numbers[2])) == Doubles{1, 3, 3});
  CHECK(values(index_put_(numbers, {zeros({3}, kBool)}, numbers[0])) == Doubles{1, 3, 3});
  CHECK_THROWS_AS(index_put_(numbers, {zeros({2}, kBool)}, numbers[0]), IndexError);
}

TEST_CASE("index: masks, index dtypes, strided, empty and 0-dimensional tensors") {
  const Tensor x = counting({2, 3});
  const Tensor mask = tensor({true, false, true, false, false, true}).view({2, 3});
  CHECK(values(index(x, Indices{mask})) == Doubles{0, 2, 5});
  CHECK(values(index(x, Indices{std::nullopt, tensor({false, true, true})})) == Doubles{1, 2, 4, 5});
  CHECK(values(index(x, Indices{mask.to(kUInt8)})) == Doubles{0, 2, 5});
  for (const ScalarType dtype : {kInt8, kInt16, kInt32, kInt64}) {
    CHECK(values(index(x, Indices{tensor({-1, 0}).to(dtype)})) == Doubles{3, 4, 5, 0, 1, 2});
  }
  const Tensor columns = x.t();
  CHECK_FALSE(columns.is_contiguous());
  CHECK(values(index(columns, Indices{tensor({2, 0})})) == Doubles{2, 5, 0, 3});
  CHECK(index(x, Indices{zeros({0}, kInt64)}).sizes() == IntArrayRef({0, 3}));
  CHECK(index(x, Indices{zeros({4, 0}, kInt64)}).sizes() == IntArrayRef({4, 0, 3}));
  CHECK(index(zeros({0, 3}), Indices{zeros({0}, kInt64)}).sizes() == IntArrayRef({0, 3}));
  const Tensor number = counting({});
  CHECK(index(number, Indices{scalar_tensor(true, kBool)}).sizes() == IntArrayRef({1}));
  CHECK(index(number, Indices{scalar_tensor(false, kBool)}).sizes() == IntArrayRef({0}));
  CHECK(values(index(x, Indices{})) == values(x));
  for (const ScalarType dtype : {kBool, kUInt8, kFloat16, kBFloat16, kFloat32, kComplex64, kComplex128}) {
    const Tensor picked = index(x.to(dtype), Indices{tensor({1})});
    CHECK(picked.scalar_type() == dtype);
    CHECK(values(real(picked)) == (dtype == kBool ? Doubles{1, 1, 1} : Doubles{3, 4, 5}));
  }
  const Tensor meta = empty({2, 3, 4}, kMeta);
  CHECK(index(meta, Indices{std::nullopt, zeros({5, 6}, kInt64)}).sizes() == IntArrayRef({2, 5, 6, 4}));
  const Tensor meta_mask = empty({2, 3}, TensorOptions(kBool).device(kMeta)), rows = empty({4, 4}, kMeta);
  CHECK(index_put(meta, Indices{meta_mask}, rows).sizes() == meta.sizes());
}

TEST_CASE("index: what does not fit is named and nothing is written") {
  const Tensor x = counting({2, 3});
  CHECK_THROWS_WITH_AS(index(x, Indices{std::nullopt, tensor({0, 3})}),
                       doctest::Contains("index: index out of range in self: index 3 is out of bounds for"),
                       IndexError);
  CHECK_THROWS_AS(index(x, Indices{tensor({-3})}), IndexError);
  CHECK_THROWS_AS(index(x, Indices{tensor({0}), tensor({0}), tensor({0})}), IndexError);
  CHECK_THROWS_AS(index(x, Indices{tensor({true, false, true})}), IndexError);
  CHECK_THROWS_AS(index(x, Indices{tensor({0.5})}), TypeError);
  CHECK_THROWS_AS(index(x, Indices{tensor({0, 1}), tensor({0, 1, 2})}), ValueError);
  CHECK_THROWS_AS(index(empty({2}, kMeta), Indices{empty({2}, TensorOptions(kBool).device(kMeta))}),
                  NotImplementedError);
  Tensor y = x.clone();
  CHECK_THROWS_AS(index_put_(y, Indices{tensor({0, 2})}, tensor({1.0}, kFloat64)), IndexError);
  CHECK_THROWS_AS(index_put_(y, Indices{tensor({0})}, tensor({1.0f}, kFloat32)), TypeError);
  CHECK_THROWS_AS(index_put_(y, Indices{tensor({0})}, zeros({2}, kFloat64)), ValueError);
  if (y.device().is_cpu()) CHECK(values(y) == values(x));  // a kernel on the GPU finds out while it writes
  Tensor expanded = zeros({1}, kFloat64).expand({3});
  CHECK_THROWS_AS(index_put_(expanded, Indices{tensor({0})}, tensor({1.0}, kFloat64)), ValueError);
}

TEST_CASE("index_put: writes or adds, broadcasts values, and copes with aliases and strides") {
  Tensor x = zeros({2, 3}, kFloat64);
  index_put_(x, Indices{std::nullopt, tensor({2, 0, 2})}, counting({2, 3}), true);
  CHECK(values(x) == Doubles{1, 0, 2, 4, 0, 8});
  index_put_(x, Indices{tensor({1})}, tensor({7.0}, kFloat64));
  CHECK(values(x) == Doubles{1, 0, 2, 7, 7, 7});
  Tensor columns = x.t();
  index_put_(columns, Indices{tensor({0, 1})}, tensor({5.0, 6.0}, kFloat64));
  CHECK(values(x) == Doubles{5, 5, 2, 6, 6, 7});
  // The source is the target: all is read before it is written.
  index_put_(x, Indices{tensor({0, 1})}, index(x, Indices{tensor({1, 0})}));
  CHECK(values(x) == Doubles{6, 6, 7, 5, 5, 2});
  Tensor line = counting({4});
  index_put_(line, Indices{tensor({1, 2, 3})}, line.as_strided({3}, {1}, 0));
  CHECK(values(line) == Doubles{0, 0, 1, 2});
  const Tensor mask = tensor({true, false, false, true});
  CHECK(values(index_put(line, Indices{mask}, scalar_tensor(9.0, kFloat64))) == Doubles{9, 0, 1, 9});
  CHECK(values(line) == Doubles{0, 0, 1, 2});
}

TEST_CASE("index_put_: a program written for libtorch adds by the method, with indices in braces") {
  const Tensor x = zeros({3}, kFloat64);
  x.index_put_({tensor({2, 0, 2})}, ones({3}, kFloat64), /*accumulate=*/true);
  CHECK(values(x) == Doubles{1, 0, 2});
  x.index_put_({tensor({2, 0})}, tensor({5.0, 6.0}, kFloat64), false);
  CHECK(values(x) == Doubles{6, 0, 5});
}

TEST_CASE("index_put: many additions to few places, on several threads, equal a plain loop") {
  const int64_t n = 5000, width = 37;
  const Tensor at = zeros({n}, kInt64), source = zeros({n, width}, kFloat64);
  for (int64_t i = 0; i < n; ++i) at.data_ptr<int64_t>()[i] = (i * i) % 11;
  for (int64_t i = 0; i < source.numel(); ++i) source.data_ptr<double>()[i] = std::cos(static_cast<double>(i));
  Doubles expected(static_cast<size_t>(11 * width), 0);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < width; ++c) {
      expected[static_cast<size_t>((i * i) % 11 * width + c)] += std::cos(static_cast<double>(i * width + c));
    }
  }
  const Doubles sums = values(index_put(zeros({11, width}, kFloat64), Indices{at}, source, true));
  const double bound = source.device().is_cpu() ? 0 : 1e-10;  // a GPU adds in another order
  for (size_t i = 0; i < sums.size(); ++i) CHECK(std::abs(sums[i] - expected[i]) <= bound);
}

TEST_CASE("take and put address a tensor as one dimension") {
  const Tensor x = counting({2, 3}).t();  // 0 3 / 1 4 / 2 5
  CHECK(values(take(x, tensor({1, -1, 0, 1}).view({2, 2}))) == Doubles{3, 5, 0, 3});
  const Tensor places = (arange(600, kInt64) * 7 % 12 - 6).view({20, 30}).t();
  CHECK(values(take(x, places)) == values(x.flatten().index_select(0, places.remainder(6).flatten())));
  CHECK(take(x, zeros({0, 2}, kInt64)).sizes() == IntArrayRef({0, 2}));
  CHECK_THROWS_AS(take(x, tensor({6})), IndexError);
  CHECK(values(put(x, tensor({1, -1}), tensor({8.0, 9.0}, kFloat64))) == Doubles{0, 8, 1, 4, 2, 9});
  Tensor y = x.clone();
  y.put_(tensor({0, 0}), tensor({8.0, 9.0}, kFloat64), true);
  CHECK(values(y) == Doubles{17, 3, 1, 4, 2, 5});
  CHECK_THROWS_AS(y.put_(tensor({0, 6}), tensor({8.0, 9.0}, kFloat64)), IndexError);
  CHECK_THROWS_AS(y.put_(tensor({0}), tensor({8.0, 9.0}, kFloat64)), ValueError);
  if (y.device().is_cpu()) CHECK(values(y) == Doubles{17, 3, 1, 4, 2, 5});
}

TEST_CASE("derivatives of indexing") {
  const Tensor rows = tensor({1, 0, 1}), columns = tensor({2, 0, -1});
  const Tensor mask = tensor({true, false, true});
  check_gradients([&](const Tensors& x) { return Tensors{index(x[0], Indices{rows, columns})}; }, {leaf({2, 3})});
  check_gradients(
      [&](const Tensors& x) {
        return Tensors{index(x[0].t(), Indices{std::nullopt, rows})};
      },
      {leaf({2, 3})});
  check_gradients(
      [&](const Tensors& x) {
        return Tensors{index(x[0], Indices{std::nullopt, mask})};
      },
      {leaf({2, 3, 2})});
  for (const bool accumulate : {false, true}) {
    const auto put_rows = [&](const Tensors& x) {
      return Tensors{index_put(x[0], Indices{std::nullopt, tensor({2, 0})}, x[1], accumulate)};
    };
    check_gradients(put_rows, {leaf({2, 3}), leaf({2, 2}, 1)});
    check_gradients(put_rows, {leaf({2, 3}), leaf({1}, 1)});
    const auto in_place = [&](const Tensors& x) {
      Tensor y = x[0] * 2;
      index_put_(y, Indices{mask}, x[1], accumulate);
      return Tensors{y * y};
    };
    check_gradients(in_place, {leaf({3, 2}), leaf({2}, 1)});
    check_gradients(
        [&](const Tensors& x) {
          return Tensors{put(x[0], tensor({3, -1}), x[1], accumulate)};
        },
        {leaf({2, 3}), leaf({2, 1}, 1)});
  }
  check_gradients([&](const Tensors& x) { return Tensors{take(x[0], columns)}; }, {leaf({2, 3})});
}

}  // namespace
