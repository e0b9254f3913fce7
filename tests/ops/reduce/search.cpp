// searchsorted, bucketize, isin; unique; histc and bincount.
#include "tests/ops/reduce/reduce_testing.h"

using namespace rush;
using namespace rush::testing;

TEST_CASE("searchsorted in one row and in many") {
  const Tensor row = tensor({1., 3., 3., 5.}, kFloat64), x = tensor({0., 1., 3., 4., 9., kNan}, kFloat64);
  CHECK(values(searchsorted(row, x)) == Doubles{0, 0, 1, 3, 4, 4});
  CHECK(values(searchsorted(row, x, false, true)) == Doubles{0, 1, 3, 3, 4, 4});
  CHECK(values(searchsorted(row, x, true, false, "right")) == Doubles{0, 1, 3, 3, 4, 4});
  CHECK(searchsorted(row, x, true).scalar_type() == kInt32);
  CHECK(values(bucketize(x, row, false, true)) == Doubles{0, 1, 3, 3, 4, 4});
  CHECK(searchsorted(row, 3.5).item<int64_t>() == 3);
  CHECK(bucketize(3.5, row).dim() == 0);
  const Tensor rows = tensor({1., 2., 3., 10., 20., 30.}).view({2, 3});
  CHECK(values(searchsorted(rows, tensor({2.5, 0., 15., 35.}).view({2, 2}))) == Doubles{2, 0, 1, 3});
  CHECK(values(searchsorted(tensor({3, 1, 2}), tensor({2.5, 9.}), false, false, std::nullopt,
                            tensor({1, 2, 0}).to(kInt64))) == Doubles{2, 3});
  CHECK(searchsorted(rows, zeros({2, 0})).sizes() == IntArrayRef({2, 0}));
}

TEST_CASE("searchsorted checks its input") {
  const Tensor row = tensor({1., 2., 3.}), x = tensor({2.});
  CHECK_THROWS_AS(searchsorted(row.view({1, 3}), x), ValueError);
  CHECK_THROWS_AS(searchsorted(scalar_tensor(1.), x), ValueError);
  CHECK_THROWS_AS(searchsorted(row, x, false, false, "middle"), ValueError);
  CHECK_THROWS_AS(searchsorted(row, x, false, true, "left"), ValueError);
  CHECK_THROWS_AS(searchsorted(row, x, false, false, std::nullopt, tensor({0, 1}).to(kInt64)), ValueError);
  if (x.device().is_cpu()) {  // a kernel on the GPU sees only the entries that it comes by
    CHECK_THROWS_AS(searchsorted(row, x, false, false, std::nullopt, tensor({0, 1, 3}).to(kInt64)), IndexError);
  }
  CHECK_THROWS_AS(searchsorted(row, x, false, false, std::nullopt, tensor({0, 1, 2}).to(kInt32)), TypeError);
  CHECK_THROWS_AS(bucketize(x, row.view({1, 3})), ValueError);
}

TEST_CASE("isin") {
  CHECK(values(isin(tensor({1., kNan, 3., -0.}), tensor({kNan, 3., 0.}))) == Doubles{0, 0, 1, 1});
  CHECK(values(isin(tensor({1, 2, 3}), tensor({2, 5}), false, true)) == Doubles{1, 0, 1});
  CHECK(values(isin(tensor({1, 2}), tensor({1.5, 2.}))) == Doubles{0, 1});
  CHECK(values(isin(tensor({1, 2}), 2)) == Doubles{0, 1});
  CHECK(isin(3, tensor({1, 3})).item<bool>());
  CHECK(isin(zeros({2, 0}), tensor({1.})).sizes() == IntArrayRef({2, 0}));
}

// PyTorch's answers: beside a tensor a number takes its dtype, in which 1e-300 is 0.
TEST_CASE("searchsorted, bucketize, isin: numbers beside tensors of the same kind") {
  const Tensor zero = tensor({0.f}), tiny = tensor({1e-300}, kFloat64);
  for (const Tensor& t : {zero, zero[0]}) {
    CHECK(isin(t, 1e-300).all().item<bool>());
    CHECK(isin(1e-300, t).item<bool>());
    CHECK_FALSE(isin(t, tiny).any().item<bool>());
    CHECK_FALSE(isin(tiny, t).any().item<bool>());
  }
  CHECK(isin(zero, tiny[0]).all().item<bool>());  // one dimension decides over none
  CHECK_FALSE(isin(zero[0], tiny[0]).item<bool>());
  CHECK(searchsorted(zero, 1e-300).item<int64_t>() == 0);
  CHECK(bucketize(1e-300, zero).item<int64_t>() == 0);
  CHECK(bucketize(tiny[0], zero.to(kFloat64)).item<int64_t>() == 1);
}

TEST_CASE("distinct elements") {
  const auto [distinct, inverse, counts] = _unique2(tensor({3, 1, 2, 1}).view({2, 2}), true, true, true);
  CHECK(values(distinct) == Doubles{1, 2, 3});
  CHECK(values(inverse) == Doubles{2, 0, 1, 0});
  CHECK(inverse.sizes() == IntArrayRef({2, 2}));
  CHECK(values(counts) == Doubles{2, 1, 1});
  const auto [with_nan, no_inverse, nan_counts] = _unique2(tensor({3., 1., kNan, 1., kNan}), true, false, true);
  CHECK(close(values(with_nan), {1, 3, kNan, kNan}, 0));
  CHECK(no_inverse.numel() == 0);
  CHECK(values(nan_counts) == Doubles{2, 1, 1, 1});
  const auto [runs, of, lengths] = unique_consecutive(tensor({1, 1, 2, 2, 2, 1}), true, true);
  CHECK(values(runs) == Doubles{1, 2, 1});
  CHECK(values(of) == Doubles{0, 0, 1, 1, 1, 2});
  CHECK(values(lengths) == Doubles{2, 3, 1});
  CHECK(std::get<0>(_unique2(zeros({0, 2}))).numel() == 0);
}

TEST_CASE("distinct elements and rows of every size of numbers") {
  const Tensor numbers = (arange(9000, kInt64) * 2654435761) % 1009 % 50;
  for (const ScalarType dtype : {kBool, kUInt8, kInt8, kBFloat16, kInt32, kFloat32, kInt64, kFloat64}) {
    const Tensor x = dtype == kBool ? numbers > 10 : (numbers - 25 * (dtype != kUInt8)).to(dtype);
    const auto [distinct, inverse, counts] = _unique2(x, true, true, true);
    CHECK(distinct.numel() == (dtype == kBool ? 2 : 50));
    CHECK(distinct.to(kFloat64).diff().gt(0).all().item<bool>());
    CHECK(distinct.index({inverse}).equal(x));
    CHECK(values(counts) == values(inverse.bincount()));
    const auto [runs, run_of, run_lengths] = unique_consecutive(x, true, true);
    CHECK(runs.index({run_of}).equal(x));
    CHECK(values(run_lengths) == values(run_of.bincount()));
    CHECK(runs.slice(0, 1).ne(runs.slice(0, 0, -1)).all().item<bool>());
    // A GPU compares few rows with each other, and sorts many by every column.
    for (const Tensor& table : {x.view({3000, 3}), stack({x, x.flip(0), x.roll(7)}, 1)}) {
      const auto [rows, of, lengths] = unique_dim(table, 0);
      CHECK(rows.index({of}).equal(table));
      CHECK(values(lengths) == values(of.bincount()));
      const Tensor ranks = (rows.to(kFloat64) + 25).mv(tensor({1e4, 1e2, 1.}, kFloat64));
      CHECK(ranks.diff().gt(0).all().item<bool>());
    }
  }
}

TEST_CASE("distinct unsigned numbers") {
  for (const ScalarType dtype : {kUInt16, kUInt32, kUInt64}) {
    CAPTURE(dtype);
    // -1 is the largest number of the dtype.
    const auto [distinct, inverse, counts] = _unique2(tensor({-1, 7, 0, -1, 7}, kInt64).to(dtype), true, true, true);
    CHECK(distinct.scalar_type() == dtype);
    CHECK(equal(distinct, tensor({0, 7, -1}, kInt64).to(dtype)));
    CHECK(values(inverse) == Doubles{2, 1, 0, 2, 1});
    CHECK(values(counts) == Doubles{1, 2, 2});
    const Tensor rows = tensor({-1, 0, 3, 0}, kInt64).to(dtype).view({2, 2});
    CHECK(equal(std::get<0>(unique_dim(rows, 0)), rows.flip({0})));
  }
}

TEST_CASE("distinct slices") {
  const Tensor rows = tensor({1, 2, 0, 1, 1, 2}).view({3, 2});
  const auto [distinct, inverse, counts] = unique_dim(rows, 0);
  CHECK(values(distinct) == Doubles{0, 1, 1, 2});
  CHECK(values(inverse) == Doubles{1, 0, 1});
  CHECK(values(counts) == Doubles{1, 2});
  const auto [columns, of, lengths] = unique_dim(rows.t(), -1);
  CHECK(values(columns) == Doubles{0, 1, 1, 2});
  CHECK(values(of) == values(inverse));
  CHECK(std::get<0>(unique_consecutive(rows, false, false, 0)).sizes() == IntArrayRef({3, 2}));
  // In one dimension the flags count, in more they do not.
  const auto flat = unique_consecutive(tensor({1, 1, 2}), false, false, 0);
  CHECK(values(std::get<0>(flat)) == Doubles{1, 2});
  CHECK(std::get<1>(flat).numel() == 0);
  CHECK(std::get<2>(flat).numel() == 0);
  CHECK(std::get<1>(unique_consecutive(rows, false, false, 0)).numel() == rows.size(0));
  CHECK(std::get<0>(unique_dim(zeros({0, 3}), 0)).sizes() == IntArrayRef({0, 3}));
  CHECK_THROWS_AS(unique_dim(zeros({0, 3}), 1), ValueError);
  CHECK_THROWS_AS(unique_dim(zeros({5, 0, 0}), 1), ValueError);
  CHECK_THROWS_AS(unique_dim(rows, 2), IndexError);
  CHECK_THROWS_AS(_unique2(rows.to(kComplex64)), NotImplementedError);
  CHECK_THROWS_AS(_unique2(empty({2}, TensorOptions().device(Device(DeviceType::Meta)))), NotImplementedError);
}

TEST_CASE("histc") {
  CHECK(values(tensor({1., 2., 1., 5.}).histc(4, 1, 5)) == Doubles{2, 1, 0, 1});
  CHECK(values(tensor({1., 2., 5.}).histc(4)) == Doubles{1, 1, 0, 1});
  CHECK(values(tensor({2., 2.}).histc(4)) == Doubles{0, 0, 2, 0});
  CHECK(values(tensor({kNan, 1., 7.}).histc(3, 0, 2)) == Doubles{0, 1, 0});
  CHECK(values(zeros({0}).histc(2)) == Doubles{0, 0});
  // Steps are rounded to 16 bits, by which PyTorch puts these into other bins than float32 would; but they do not
  // overflow.
  const Tensor in_bfloat16 = tensor({-7.40625, -1.8046875, 2.796875}).to(kBFloat16).histc(100, -10, 10);
  CHECK(values(in_bfloat16.nonzero().squeeze(1)) == Doubles{13, 41, 64});
  CHECK(values(tensor({2.794921875, 7.3984375}).to(kHalf).histc(100, -10, 10).nonzero().squeeze(1)) == Doubles{64, 87});
  CHECK(values(tensor({-900., 0., 1000.}).to(kHalf).histc(100, -1000, 1000).nonzero().squeeze(1)) ==
        Doubles{5, 50, 99});
  CHECK(values(ones({2}, kBFloat16).histc(4, 1.0, 1.001)) == Doubles{2, 0, 0, 0});
  CHECK_THROWS_AS(tensor({1., kNan}).histc(4), ValueError);
  CHECK_THROWS_AS(tensor({1.}).histc(0), ValueError);
  CHECK_THROWS_AS(tensor({1.}).histc(3, 5, 2), ValueError);
  CHECK_THROWS_AS(tensor({1}).histc(3), NotImplementedError);
  // Ranges whose arithmetic would leave float32.
  CHECK_THROWS_AS(tensor({0.f}).histc(100, -1e300, 0.69), ValueError);
  CHECK_THROWS_AS(tensor({1.f}).histc(4, 1, 1 + 1e-12), ValueError);
  CHECK_THROWS_AS(tensor({1e30f}).histc(4), ValueError);
  CHECK(values(tensor({0.5}, kFloat64).histc(2, 0, 1e300)) == Doubles{1, 0});
}

TEST_CASE("histc and bincount count many elements in few bins and in many") {
  for (const int64_t bins : {1, 10, 4096, 4097, 20000}) {
    CAPTURE(bins);
    Doubles expected(static_cast<size_t>(bins));
    const Tensor numbers = zeros(60000, kInt64);
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      const int64_t bin = i * 2654435761 % bins * (i % 3) / 2;  // some bins have more than others
      numbers.data_ptr<int64_t>()[i] = bin;
      ++expected[static_cast<size_t>(bin)];
    }
    CHECK(values(numbers.bincount({}, bins)) == expected);
    CHECK(values(numbers.to(kInt32).bincount({}, bins)) == expected);
    CHECK(values((numbers.to(kFloat64) + 0.5).histc(bins, 0, bins)) == expected);
    CHECK(values(numbers.to(kFloat32).histc(bins, 1, bins + 1)).front() == (bins > 1 ? expected[1] : 0));
  }
}

TEST_CASE("bincount") {
  CHECK_THROWS_AS(tensor({7, INT64_MAX}).bincount(), ValueError);  // the number of bins would overflow
  CHECK(values(tensor({1, 3, 1}).bincount()) == Doubles{0, 2, 0, 1});
  CHECK(values(tensor({1}).bincount({}, 4)) == Doubles{0, 1, 0, 0});
  CHECK(values(tensor({1, 3, 1}).bincount(tensor({0.5, 1., 2.}))) == Doubles{0, 2.5, 0, 1});
  CHECK(tensor({1}).bincount(tensor({2})).scalar_type() == kFloat64);
  CHECK(tensor({1}).bincount(tensor({2.f})).scalar_type() == kFloat32);
  CHECK(zeros({0}, kInt64).bincount({}, 3).scalar_type() == kInt64);
  CHECK_THROWS_AS(tensor({-1}).bincount(), ValueError);
  CHECK_THROWS_AS(tensor({1.}).bincount(), TypeError);
  CHECK_THROWS_AS(tensor({1}).bincount({}, -1), ValueError);
  CHECK_THROWS_AS(tensor({1, 2}).bincount(tensor({1.})), ValueError);
  CHECK_THROWS_AS(zeros({1, 1}, kInt64).bincount(), ValueError);
}
