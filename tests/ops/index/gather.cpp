#include "core/ops/index/gather.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

// A pattern of indices below `bound` in this shape.
Tensor pattern(IntArrayRef sizes, int64_t bound) {
  const Tensor t = zeros(checked_numel(sizes), kInt64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_ptr<int64_t>()[i] = (i * 7 + i / 3) % bound;
  return t.view(sizes);
}

// The position of row-major element i of `sizes` as an offset in `t`, with `index` along `dim` if one is given.
int64_t offset_of(const Tensor& t, IntArrayRef sizes, int64_t i, int64_t dim = -1, int64_t index = 0) {
  int64_t offset = 0;
  for (int64_t d = static_cast<int64_t>(sizes.size()); d-- > 0; i /= sizes[static_cast<size_t>(d)]) {
    offset += (d == dim ? index : i % sizes[static_cast<size_t>(d)]) * t.stride(d);
  }
  return offset;
}

TEST_CASE("gather and scatter_add equal plain loops along every dimension, strided or not, of an expanded index too") {
  const Tensor base = counting({4, 5, 3});
  for (const Tensor& x : {base, base.transpose(0, 2), base.transpose(1, 2)}) {
    for (int64_t dim = 0; dim < 3; ++dim) {
      // Shorter than x outside `dim`, longer along it.
      DimVector sizes(x.sizes()), line(3, 1);
      for (size_t d = 0; d < 3; ++d) sizes[d] += static_cast<int64_t>(d) == dim ? 2 : -1;
      line[static_cast<size_t>(dim)] = sizes[static_cast<size_t>(dim)];
      for (const Tensor& index : {pattern(sizes, x.size(dim)), pattern(line, x.size(dim)).expand(sizes)}) {
        const Tensor out = gather(x, dim, index), numbers = index.contiguous();
        REQUIRE(out.sizes() == IntArrayRef(sizes));
        const Tensor target = zeros(x.sizes(), kFloat64), expected = zeros(x.sizes(), kFloat64);
        bool right = true;
        for (int64_t i = 0; i < out.numel(); ++i) {
          const int64_t at = numbers.data_ptr<int64_t>()[i];
          right = right && out.data_ptr<double>()[i] == x.data_ptr<double>()[offset_of(x, sizes, i, dim, at)];
          expected.data_ptr<double>()[offset_of(expected, sizes, i, dim, at)] += out.data_ptr<double>()[i];
        }
        CHECK(right);
        CHECK(values(target.scatter_add(dim, index, out)) == values(expected));
        CHECK(values(target.scatter(dim, index, 2)) == values(target.scatter(dim, numbers, 2)));
      }
    }
  }
}

TEST_CASE("an index that is the same outside the dimension, as an expanded one, gives what its copy does") {
  const Tensor x = counting({4, 5, 3});
  for (int64_t dim = 0; dim < 3; ++dim) {
    DimVector one(3, 1), sizes(x.sizes());
    one[static_cast<size_t>(dim)] = 6;
    sizes[static_cast<size_t>(dim)] = 6;
    const Tensor index = pattern(one, x.size(dim)).expand(sizes), copy = index.contiguous();
    for (const Tensor& in : {x, x.transpose(0, 2).contiguous().transpose(0, 2)}) {
      CHECK(equal(gather(in, dim, index), gather(in, dim, copy)));
      CHECK(equal(gather(in, dim, index.to(kInt)), gather(in, dim, copy)));
      const Tensor src = counting(sizes);
      // A GPU writes in any order, so what goes to one place is equal there.
      const Tensor written = in.is_cpu() ? src : gather(in, dim, copy) * 2 + 1;
      CHECK(equal(in.scatter(dim, index, written), in.scatter(dim, copy, written)));
      CHECK(equal(in.scatter(dim, index, 2), in.scatter(dim, copy, 2)));
      CHECK(equal(in.scatter_add(dim, index, src), in.scatter_add(dim, copy, src)));
      for (const char* reduce : {"prod", "mean", "amax"}) {
        CHECK(
            equal(in.scatter_reduce(dim, index, src, reduce, false), in.scatter_reduce(dim, copy, src, reduce, false)));
      }
    }
  }
  // Smaller than x outside the dimension.
  const Tensor index = tensor({3, 0}).view({2, 1, 1}).expand({2, 4, 2});
  CHECK(equal(gather(x, 0, index), gather(x, 0, index.contiguous())));
  CHECK_THROWS_AS(gather(x, 0, tensor({4}).view({1, 1, 1}).expand({1, 5, 3})), IndexError);
}

TEST_CASE("scatter_add over threads equals a plain loop") {
  const int64_t rows = 700, columns = 300;
  const Tensor index = pattern({rows, columns}, 40), src = counting({rows, columns});
  Doubles along_rows(static_cast<size_t>(40 * columns)), along_columns(static_cast<size_t>(rows * 40));
  for (int64_t i = 0; i < rows * columns; ++i) {
    const int64_t at = index.data_ptr<int64_t>()[i];
    along_rows[static_cast<size_t>(at * columns + i % columns)] += static_cast<double>(i);
    along_columns[static_cast<size_t>(i / columns * 40 + at)] += static_cast<double>(i);
  }
  CHECK(values(zeros({40, columns}, kFloat64).scatter_add(0, index, src)) == along_rows);
  CHECK(values(zeros({rows, 40}, kFloat64).scatter_add(1, index, src)) == along_columns);
}

TEST_CASE("gather: shapes, dtypes, bad input") {
  const Tensor x = counting({2, 3});
  CHECK(values(gather(x, 1, tensor({2, 0}).view({2, 1}).to(kInt32))) == Doubles{2, 3});
  CHECK(gather(x, 0, zeros({0, 7, 2}, kInt64)).sizes() == IntArrayRef({0, 7, 2}));
  CHECK(values(gather(scalar_tensor(5), 0, zeros({3}, kInt64))) == Doubles{5, 5, 5});
  CHECK(gather(counting({3}), 0, scalar_tensor(1, kInt64)).sizes().empty());
  for (const ScalarType dtype : {kBool, kUInt8, kFloat16, kComplex128}) {
    CHECK(gather(x.to(dtype), 1, zeros({2, 1}, kInt64)).scalar_type() == dtype);
  }
  CHECK(gather(empty({2, 3}, kMeta), 1, empty({2, 5}, TensorOptions(kInt64).device(kMeta))).sizes() ==
        IntArrayRef({2, 5}));
  CHECK_THROWS_WITH_AS(gather(x, 1, full({2, 1}, 3)),
                       doctest::Contains("gather: index out of range in self: index 3 is out of bounds for"),
                       IndexError);
  CHECK_THROWS_AS(gather(x, 1, full({2, 1}, -1)), IndexError);
  CHECK_THROWS_AS(gather(x, 2, zeros({2, 1}, kInt64)), IndexError);
  CHECK_THROWS_AS(gather(x, 1, zeros({3, 1}, kInt64)), ValueError);
  CHECK_THROWS_AS(gather(x, 1, zeros({2}, kInt64)), ValueError);
  CHECK_THROWS_AS(gather(x, 1, zeros({2, 1})), TypeError);
}

TEST_CASE("take_along_dim broadcasts outside the dimension") {
  const Tensor x = counting({2, 3});
  CHECK(values(take_along_dim(x, tensor({2, 0}).view({1, 2}), 1)) == Doubles{2, 0, 5, 3});
  CHECK(values(take_along_dim(counting({1, 3}), tensor({2, 0}).view({2, 1}), -1)) == Doubles{2, 0});
  CHECK(values(take_along_dim(x, tensor({5, 1}))) == Doubles{5, 1});
  for (const ScalarType dtype : {kInt8, kInt32, kInt64}) {  // from the end, also of more elements than int8 counts
    CHECK(values(take_along_dim(counting({2, 200}), tensor({-1, 3, -100}, dtype).view({1, 3}), 1)) ==
          Doubles{199, 3, 100, 399, 203, 300});
  }
  CHECK(values(take_along_dim(x, tensor({-1, -6, 2}))) == Doubles{5, 0, 2});
  CHECK_THROWS_AS(take_along_dim(x, tensor({-7})), IndexError);
  CHECK_THROWS_AS(take_along_dim(x, tensor({6})), IndexError);
  CHECK_THROWS_AS(take_along_dim(x, tensor({1.5})), TypeError);
  CHECK_THROWS_AS(take_along_dim(x, tensor({1}), 1), ValueError);
}

TEST_CASE("scatter writes, adds, multiplies") {
  const Tensor x = counting({2, 3}), index = tensor({2, 0, 1, 1}).view({2, 2});
  const Tensor src = tensor({10.0, 20.0, 30.0, 40.0, 50.0, 60.0}, kFloat64).view({2, 3});
  const bool in_order = x.device().is_cpu();  // a GPU writes what goes to one place in any order
  if (in_order) CHECK(values(scatter(x, 1, index, src)) == Doubles{20, 1, 10, 3, 50, 5});
  CHECK(values(scatter(x, 1, index, 9)) == Doubles{9, 1, 9, 3, 9, 5});
  CHECK(values(scatter_add(x, 1, index, src)) == Doubles{20, 1, 12, 3, 94, 5});
  CHECK(values(scatter(x, 1, index, src, "add")) == Doubles{20, 1, 12, 3, 94, 5});
  CHECK(values(scatter(x, 1, index, src, "multiply")) == Doubles{0, 1, 20, 3, 8000, 5});
  CHECK(values(scatter(x, 1, index, 2, "add")) == Doubles{2, 1, 4, 3, 8, 5});
  CHECK(values(scatter(x, 1, index, 2, "multiply")) == Doubles{0, 1, 4, 3, 16, 5});
  if (in_order) CHECK(values(x.t().clone().scatter_(0, index.t(), src.t())) == Doubles{20, 3, 1, 50, 10, 5});
  CHECK(values(scatter(x, 1, zeros({2, 0}, kInt64), src)) == values(x));
  Tensor y = x.clone();
  y.scatter_(1, tensor({1, 2, 0, 1, 2, 0}).view({2, 3}), y);
  CHECK(values(y) == Doubles{2, 0, 1, 5, 3, 4});
  CHECK(values(y.scatter_(1, index, 1).scatter_(1, index, src, "add").scatter_(1, index, 2, "multiply")) ==
        Doubles{42, 0, 22, 5, 364, 4});
  const Doubles before = values(y);
  CHECK_THROWS_AS(y.scatter_(1, full({2, 1}, 3), src), IndexError);
  CHECK_THROWS_AS(y.scatter_add_(1, full({2, 1}, -1), src), IndexError);
  CHECK_THROWS_AS(y.scatter_(1, zeros({2, 4}, kInt64), src), ValueError);
  CHECK_THROWS_AS(y.scatter_(0, zeros({2, 4}, kInt64), 1), ValueError);
  CHECK_THROWS_AS(y.scatter_(1, index, src.to(kFloat32)), TypeError);
  CHECK_THROWS_AS(y.scatter_(1, index, src, "mean"), ValueError);
  // A number covers an index of one element.
  CHECK_THROWS_AS(full({}, 1.0, kFloat64).scatter_(0, zeros({2}, kInt64), full({}, 2.0, kFloat64)), ValueError);
  CHECK(full({}, 1.0, kFloat64).scatter_(0, zeros({1}, kInt64), full({}, 2.0, kFloat64)).item<double>() == 2);
  CHECK_THROWS_AS(tensor({1}).scatter_(0, scalar_tensor(0, kInt64), zeros({0}, kInt64)), ValueError);
  CHECK_THROWS_AS(one_hot(full({1}, std::numeric_limits<int64_t>::max(), kInt64)), ValueError);
  CHECK_THROWS_AS(y.select(0, 0).expand({2, 3}).scatter_(0, zeros({1, 3}, kInt64), 1), ValueError);
  CHECK(values(y) == before);
}

TEST_CASE("scatter_reduce equals a plain loop, with and without the old values") {
  const int64_t n = 9, m = 4;
  const Tensor index = tensor({0, 2, 2, 0, 3, 2, 2, 3, 0}), self = tensor({3.0, -8.0, 0.5, -2.0}, kFloat64);
  const Tensor src = tensor({2.0, -1.0, 4.0, 0.0, 7.0, -3.0, 1.5, -6.0, 2.5}, kFloat64);
  for (const char* reduce : {"sum", "prod", "mean", "amax", "amin"}) {
    CAPTURE(reduce);
    for (const bool include_self : {true, false}) {
      Doubles expected = values(self);
      for (int64_t place = 0; place < m; ++place) {
        Doubles parts;
        for (int64_t i = 0; i < n; ++i) {
          if (index.data_ptr<int64_t>()[i] == place) parts.push_back(src.data_ptr<double>()[i]);
        }
        if (parts.empty()) continue;
        if (include_self) parts.insert(parts.begin(), expected[static_cast<size_t>(place)]);
        double total = parts[0];
        const std::string_view name = reduce;
        for (size_t i = 1; i < parts.size(); ++i) {
          const double v = parts[i];
          total = name == "prod"   ? total * v
                  : name == "amax" ? std::max(total, v)
                  : name == "amin" ? std::min(total, v)
                                   : total + v;
        }
        if (name == "mean") total /= static_cast<double>(parts.size());
        expected[static_cast<size_t>(place)] = total;
      }
      CHECK(values(scatter_reduce(self, 0, index, src, reduce, include_self)) == expected);
      const Tensor rows = self.view({4, 1}).expand({4, 3}).clone();
      rows.t().scatter_reduce_(1, index.view({1, 9}).expand({3, 9}), src.view({1, 9}).expand({3, 9}), reduce,
                               include_self);
      CHECK(values(rows.select(1, 2)) == expected);
      const Tensor each = index.view({9, 1}).repeat({1, 3}), sources = src.view({9, 1}).repeat({1, 3});
      const Tensor columns = self.view({4, 1}).repeat({1, 3}).scatter_reduce(0, each, sources, reduce, include_self);
      CHECK(values(columns.select(1, 1)) == expected);
    }
  }
  CHECK(values(scatter_reduce(tensor({-3, 5}), 0, tensor({0, 0}), tensor({1, 0}), "mean")) == Doubles{-1, 5});
  CHECK(values(scatter_reduce(tensor({9, 5}), 0, tensor({0}), tensor({1}), "amax", false)) == Doubles{1, 5});
  CHECK(std::isnan(values(scatter_reduce(zeros({1}), 0, tensor({0, 0}), tensor({NAN, 1.0}, kFloat32), "amin"))[0]));
  CHECK_THROWS_AS(scatter_reduce(self, 0, index, src, "median"), ValueError);
  CHECK_THROWS_AS(scatter_reduce(self.to(kComplex64), 0, index, src.to(kComplex64), "amax"), TypeError);
  CHECK_THROWS_AS(scatter_reduce(self, 0, index + 3, src, "sum"), IndexError);
}

// Sums, extremes and products of `n` numbers at `places` places, `columns` wide, against plain loops.
void check_combined(int64_t n, int64_t places, int64_t columns, ScalarType dtype) {
  CAPTURE(n);
  CAPTURE(places);
  CAPTURE(columns);
  CAPTURE(dtype);
  const Tensor index = zeros(n, kInt64), src = zeros({n, columns}, kFloat64), spread = zeros({n, columns}, kInt64);
  const Tensor signs = ones({n, columns}, kFloat64);
  Doubles sum(static_cast<size_t>(places * columns), 1), most(sum), least(sum), product(sum);
  for (int64_t j = 0; j < n; ++j) {
    index.data_ptr<int64_t>()[j] = j * 2654435761 % 1000003 % places;
    for (int64_t c = 0; c < columns; ++c) {
      // Column c is shifted by c places, so that scatter's index is no expanded one.
      const int64_t i = j * columns + c, at = (index.data_ptr<int64_t>()[j] + c) % places;
      const double value = dtype == kBool ? i % 7 == 0 : static_cast<double>((i * 7 + i / 3) % 4);
      src.data_ptr<double>()[i] = value;
      spread.data_ptr<int64_t>()[i] = at;
      const auto place = static_cast<size_t>(at * columns + c);
      sum[place] = dtype == kBool ? std::max(sum[place], value) : sum[place] + value;
      most[place] = std::max(most[place], value);
      least[place] = std::min(least[place], value);
      if (i % 50 == 1) {
        signs.data_ptr<double>()[i] = -1;
        product[place] = -product[place];
      }
    }
  }
  const Tensor self = ones({places, columns}, dtype), numbers = src.to(dtype);
  CHECK(values(self.scatter_add(0, spread, numbers)) == sum);
  if (columns == 1) {
    CHECK(values(self.index_add(0, index, numbers)) == sum);
    CHECK(values(self.index_put({index}, numbers, true)) == sum);
  }
  if (is_complex(dtype)) return;
  CHECK(values(self.scatter_reduce(0, spread, numbers, "amax")) == most);
  CHECK(values(self.scatter_reduce(0, spread, numbers, "amin")) == least);
  if (dtype == kBool) return;
  CHECK(values(self.scatter_reduce(0, spread, signs.to(dtype), "prod")) == product);
}

TEST_CASE("few values and many, in few places and many, are combined") {
  for (const ScalarType dtype : {kFloat32, kFloat64, kInt32, kInt64, kComplex64}) {
    for (const int64_t n : {1, 32, 33, 128, 129, 8192, 8193, 40000}) {
      for (const int64_t places : {int64_t(1), int64_t(5), n + 10}) {
        for (const int64_t columns : {1, 3}) check_combined(n, places, columns, dtype);
      }
    }
  }
  // What is narrower than a word shares it.
  for (const ScalarType dtype : {kBool, kFloat16, kBFloat16, kInt16}) {
    for (const int64_t places : {700, 10001}) check_combined(9000, places, 3, dtype);
  }
}

TEST_CASE("extremes do not depend on the order of values: NaN stays, +0 is above -0") {
  const Tensor places = zeros({2}, kInt64);
  for (const ScalarType dtype : {kFloat32, kBFloat16, kFloat64}) {
    for (const Tensor& zero : {tensor({0.0, -0.0}, dtype), tensor({-0.0, 0.0}, dtype)}) {
      for (const char* reduce : {"amax", "amin"}) {
        const Tensor extreme = zero.narrow(0, 0, 1).scatter_reduce(0, places, zero, reduce);
        CHECK(std::signbit(values(extreme)[0]) == (std::string_view(reduce) == "amin"));
        const Tensor numbers = tensor({NAN, 1.0}, dtype);
        CHECK(std::isnan(values(zero.scatter_reduce(0, places, numbers, reduce))[0]));
        CHECK(std::isnan(values(numbers.scatter_reduce(0, places, zero, reduce))[0]));
        // Rows of several, by one index for all of them.
        const Tensor rows = zero.view({2, 1}).expand({2, 37}), both = places.view({2, 1}).expand({2, 37});
        for (double number : values(rows.narrow(0, 0, 1).scatter_reduce(0, both, rows, reduce))) {
          CHECK(std::signbit(number) == (std::string_view(reduce) == "amin"));
        }
        const Tensor some = numbers.view({2, 1}).expand({2, 37});
        CHECK(equal(rows.narrow(0, 0, 1).scatter_reduce(0, both, some, reduce).isnan(), ones({1, 37}, kBool)));
      }
    }
  }
}

TEST_CASE("derivatives of gather and scatter") {
  const Tensor index = tensor({2, 0, 1, 1}).view({2, 2}), distinct = tensor({2, 0, 1, 2}).view({2, 2});
  check_gradients([&](const Tensors& x) { return Tensors{gather(x[0], 1, index)}; }, {leaf({2, 3})});
  check_gradients([&](const Tensors& x) { return Tensors{gather(x[0].t(), 0, index)}; }, {leaf({2, 3})});
  check_gradients([&](const Tensors& x) { return Tensors{gather(x[0], 0, zeros({3}, kInt64))}; }, {leaf({})});
  check_gradients([&](const Tensors& x) { return Tensors{take_along_dim(x[0], index, 1)}; }, {leaf({1, 3})});
  check_gradients([&](const Tensors& x) { return Tensors{scatter_add(x[0], 1, index, x[1])}; },
                  {leaf({2, 3}), leaf({2, 2}, 1)});
  check_gradients([&](const Tensors& x) { return Tensors{scatter(x[0], 1, distinct, x[1])}; },
                  {leaf({2, 3}), leaf({3, 2}, 1)});
  check_gradients([&](const Tensors& x) { return Tensors{scatter(x[0], 1, index, 2)}; }, {leaf({2, 3})});
  const auto in_place = [&](const Tensors& x) {
    const Tensor y = x[0] * 2;
    y.scatter_(1, distinct, x[1]).scatter_add_(1, index, x[1]);
    y.select(0, 1).scatter_(0, tensor({0}), 3);
    return Tensors{y * y};
  };
  check_gradients(in_place, {leaf({2, 3}), leaf({2, 2}, 1)});
}

TEST_CASE("derivatives of scatter_reduce") {
  const Tensor index = tensor({2, 0, 1, 1}).view({2, 2});
  const auto reduced = [&](const char* reduce, bool include_self) {
    return [=](const Tensors& x) { return Tensors{scatter_reduce(x[0], 1, index, x[1], reduce, include_self)}; };
  };
  for (const bool include_self : {true, false}) {
    for (const char* reduce : {"sum", "prod", "mean", "amax", "amin"}) {
      CAPTURE(reduce);
      CAPTURE(include_self);
      check_gradients(reduced(reduce, include_self), {leaf({2, 3}), leaf({2, 2}, 1)});
      check_gradients(reduced(reduce, include_self), {leaf({2, 3}), leaf({3, 2}, 1)});
    }
  }
  check_gradients([&](const Tensors& x) { return Tensors{scatter(x[0], 1, index, x[1], "multiply")}; },
                  {leaf({2, 3}), leaf({2, 2}, 1)});
  check_gradients([&](const Tensors& x) { return Tensors{scatter(x[0], 1, index, 3, "multiply")}; }, {leaf({2, 3})});
  const auto in_place = [&](const Tensors& x) {
    const Tensor y = x[0] * 2;
    y.scatter_reduce_(1, index, x[1], "sum").select(0, 0).scatter_reduce_(0, tensor({1}), x[1].select(0, 1), "amax");
    return Tensors{y * y};
  };
  check_gradients(in_place, {leaf({2, 3}), leaf({2, 2}, 1)});

  // One zero among the factors takes all of the gradient, two leave none. By hand: 2 * 3 = 6 for the zero.
  const Tensor self = tensor({2.0, 5.0}, kFloat64).requires_grad_();
  const Tensor src = tensor({0.0, 3.0, 0.0, 0.0}, kFloat64).requires_grad_();
  scatter_reduce(self, 0, tensor({0, 0, 1, 1}), src, "prod").sum().backward();
  CHECK(values(self.grad()) == Doubles{0, 0});
  CHECK(values(src.grad()) == Doubles{6, 0, 0, 0});
}

TEST_CASE("one_hot") {
  CHECK(values(one_hot(tensor({2, 0}), 3)) == Doubles{0, 0, 1, 1, 0, 0});
  CHECK(one_hot(zeros({4, 5}, kInt64)).sizes() == IntArrayRef({4, 5, 1}));
  CHECK(one_hot(scalar_tensor(3, kInt64)).sizes() == IntArrayRef({4}));
  CHECK(values(one_hot(tensor({2, 0, 1, 1}).view({2, 2}).t(), 3).sum({0, 1})) == Doubles{1, 2, 1});
  CHECK(one_hot(zeros({0}, kInt64), 3).sizes() == IntArrayRef({0, 3}));
  CHECK(one_hot(empty({2}, TensorOptions(kInt64).device(kMeta)), 3).sizes() == IntArrayRef({2, 3}));
  CHECK_THROWS_AS(one_hot(tensor({3}), 3), IndexError);
  CHECK_THROWS_AS(one_hot(tensor({-1, 2})), IndexError);
  CHECK_THROWS_AS(one_hot(tensor({1.0})), TypeError);
  CHECK_THROWS_AS(one_hot(tensor({1}), 0), ValueError);
  CHECK_THROWS_AS(one_hot(zeros({0}, kInt64)), ValueError);
  CHECK_THROWS_AS(one_hot(empty({2}, TensorOptions(kInt64).device(kMeta))), NotImplementedError);
}

}  // namespace
