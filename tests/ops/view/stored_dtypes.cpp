// The dtypes without arithmetic: what they take part in, on every device, and what refuses them.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "rushlight.h"
#include "tests/not_finite.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

constexpr ScalarType kStored[] = {kFloat8_e4m3fn, kFloat8_e5m2, kUInt16, kUInt32, kUInt64};
constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();

std::vector<uint64_t> unsigned_values(const Tensor& t) {
  const Tensor host = t.cpu().contiguous();
  return {host.data_ptr<uint64_t>(), host.data_ptr<uint64_t>() + host.numel()};
}

TEST_CASE("traits of the dtypes that are only stored") {
  for (int i = 0; i < kNumScalarTypes; ++i) {
    const auto dtype = static_cast<ScalarType>(i);
    CHECK(has_arithmetic(dtype) == (std::find(std::begin(kStored), std::end(kStored), dtype) == std::end(kStored)));
    CHECK(element_size(moved_as(dtype)) == element_size(dtype));
    CHECK(has_arithmetic(moved_as(dtype)));
  }
  CHECK(element_size(kFloat8_e5m2) == 1);
  CHECK(element_size(kUInt32) == 4);
  CHECK(is_floating_point(kFloat8_e4m3fn));
  CHECK(is_integral(kUInt64, false));
  CHECK(zeros({1}, kFloat8_e4m3fn).is_signed());
  CHECK_FALSE(zeros({1}, kUInt16).is_signed());
  CHECK_FALSE(can_cast(kFloat8_e5m2, kInt64));
  CHECK(can_cast(kInt64, kFloat8_e5m2));
}

TEST_CASE("they are created by the factories") {
  for (const ScalarType dtype : kStored) {
    CAPTURE(name(dtype));
    CHECK(empty({2, 3}, dtype).nbytes() == 6 * element_size(dtype));
    CHECK(values(zeros({3}, dtype)) == Doubles{0, 0, 0});
    CHECK(values(ones({2}, dtype)) == Doubles{1, 1});
    CHECK(values(full({2}, 96, dtype)) == Doubles{96, 96});
    CHECK(values(full({40, 50}, 3, dtype)) == Doubles(2000, 3));
    CHECK(values(tensor({1, 2, 96}, dtype)) == Doubles{1, 2, 96});
    CHECK(values(full_like(zeros({2}, dtype), 5)) == Doubles{5, 5});
    CHECK(values(zeros({4}, dtype).slice(0, 0, 4, 2).fill_(7)) == Doubles{7, 7});
    CHECK(scalar_tensor(3, dtype).item<double>() == 3);
  }
  CHECK(tensor(std::vector<uint16_t>{1, 65535}).scalar_type() == kUInt16);
  CHECK(unsigned_values(tensor({kLargest, uint64_t{7}}, kUInt64)) == std::vector<uint64_t>{kLargest, 7});
  CHECK(unsigned_values(full({2}, kLargest, kUInt64)) == std::vector<uint64_t>{kLargest, kLargest});
  CHECK(unsigned_values(full({1}, 1e19, kUInt64)) == std::vector<uint64_t>{10000000000000000000u});
  CHECK(full({}, kLargest, kUInt64).item<uint64_t>() == kLargest);
  CHECK(values(full({2}, 500, kFloat8_e5m2)) == Doubles{512, 512});
  CHECK(std::isnan(full({}, 500, kFloat8_e4m3fn).item<double>()));
  CHECK_THROWS_AS(full({1}, 70000, kUInt16), ValueError);
  CHECK_THROWS_AS(full({1}, 3e19, kUInt64), ValueError);
  CHECK_THROWS_AS(full({1}, kLargest, kInt64), ValueError);
  CHECK_THROWS_AS(set_default_dtype(kFloat8_e4m3fn), TypeError);
}

TEST_CASE("conversions between every pair of dtypes, of any strides") {
  // Numbers that all dtypes but bool hold.
  const Doubles numbers = {0, 1, 2, 3, 96, 4, 12, 0, 64, 5, 6, 7, 8, 14, 16, 20, 24, 28, 32, 48};
  const Tensor x = tensor(numbers, kFloat64), matrix = x.view({4, 5});
  for (int from = 0; from < kNumScalarTypes; ++from) {
    for (int to = 0; to < kNumScalarTypes; ++to) {
      const auto source = static_cast<ScalarType>(from), target = static_cast<ScalarType>(to);
      CAPTURE(name(source));
      CAPTURE(name(target));
      const bool flags = source == kBool || target == kBool;
      const Tensor expected = flags ? x.ne(0).to(kFloat64) : x;
      CHECK(values(real(x.to(source).to(target))) == values(expected));
      const Tensor holes = zeros({5, 8}, target).slice(1, 0, 8, 2);
      holes.copy_(matrix.to(source).t());
      CHECK(values(real(holes)) == values(expected.view({4, 5}).t()));
    }
  }
}

TEST_CASE("conversions round, wrap around and overflow as PyTorch's do") {
  const Tensor x =
      tensor({1.0, 0.1, -0.1, 449.0, 465.0, 57344.0, 62000.0, -1e9, kInf, kNan, 0x1p-10, 0x1.8p-10, 0x1p-17});
  const Doubles e4m3fn = values(x.to(kFloat8_e4m3fn)), e5m2 = values(x.to(kFloat8_e5m2));
  const Doubles expected_e4m3fn = {1, 0.1015625, -0.1015625, 448, kNan, kNan, kNan, kNan, kNan, kNan, 0, 0x1p-9, 0};
  const Doubles expected_e5m2 = {1, 0.09375, -0.09375, 448, 448, 57344, kInf, -kInf, kInf, kNan, 0x1p-10, 0x1.8p-10, 0};
  for (size_t i = 0; i < e4m3fn.size(); ++i) {
    CAPTURE(i);
    CHECK((std::isnan(expected_e4m3fn[i]) ? std::isnan(e4m3fn[i]) : e4m3fn[i] == expected_e4m3fn[i]));
    CHECK((std::isnan(expected_e5m2[i]) ? std::isnan(e5m2[i]) : e5m2[i] == expected_e5m2[i]));
  }
  for (const ScalarType dtype : {kFloat32, kFloat64}) {
    const Tensor y = tensor({-1.0, -3.7, 70000.9}, dtype);
    CHECK(values(y.to(kUInt16)) == Doubles{65535, 65533, 4464});
    CHECK(values(y.to(kUInt32)) == Doubles{4294967295.0, 4294967293.0, 70000});
    CHECK(unsigned_values(y.to(kUInt64)) == std::vector<uint64_t>{kLargest, kLargest - 2, 70000});
    CHECK(unsigned_values(tensor({0x1p63, 0x1.8p63}, dtype).to(kUInt64)) ==
          std::vector<uint64_t>{uint64_t{1} << 63, uint64_t{3} << 62});
  }
  CHECK(values(tensor({int64_t{-1}, (int64_t{1} << 40) + 5}).to(kUInt16)) == Doubles{65535, 5});
  CHECK(unsigned_values(tensor({-1}).to(kUInt64)) == std::vector<uint64_t>{kLargest});
  // A uint64 that no int64 holds.
  const Tensor large = tensor({kLargest, (uint64_t{1} << 63) + 1025, uint64_t{7}}, kUInt64);
  CHECK(values(large) == Doubles{0x1p64, 0x1.0000000000001p63, 7});
  CHECK(values(large.to(kFloat32)) == Doubles{0x1p64, 0x1p63, 7});
  CHECK(values(large.to(kFloat16)) == Doubles{kInf, kInf, 7});
  CHECK(values(real(large.to(kComplex64))) == Doubles{0x1p64, 0x1p63, 7});
  CHECK(values(large.to(kFloat8_e5m2)) == Doubles{kInf, kInf, 7});
  CHECK(values(large.to(kInt32)) == Doubles{-1, 1025, 7});
  CHECK(values(large.to(kUInt16)) == Doubles{65535, 1025, 7});
  CHECK(values(large.to(kBool)) == Doubles{1, 1, 1});
  CHECK(large[0].to(kInt64).item<int64_t>() == -1);
}

// Bytes of every value, so that moving them must not change even the bits of NaN.
Tensor all_bits(ScalarType dtype) { return arange(256, TensorOptions(kInt64)).to(kUInt8).view(dtype).view({8, -1}); }
bool same_bits(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.contiguous().view(kUInt8).equal(b.contiguous().view(kUInt8));
}

TEST_CASE("copies, indexing and what else moves elements keeps their bits") {
  for (const ScalarType dtype : kStored) {
    CAPTURE(name(dtype));
    const Tensor x = all_bits(dtype), as_bits = x.view(moved_as(dtype));
    const auto check = [&](auto&& move) { CHECK(same_bits(move(x), move(as_bits).view(dtype))); };
    const Tensor rows = tensor({3, 0, 7}, kInt64), mask = arange(8).remainder(3).eq(0);
    const Tensor columns = arange(16, TensorOptions(kInt64)).remainder(x.size(1)).view({8, 2});
    check([](const Tensor& t) { return t.clone(); });
    check([](const Tensor& t) { return t.t().contiguous(); });
    check([](const Tensor& t) { return t.slice(0, 1, 8, 3).slice(1, 0, 100, 2).contiguous(); });
    check([](const Tensor& t) { return t.select(1, 2).contiguous(); });
    check([&](const Tensor& t) { return index(t, {rows}); });
    check([&](const Tensor& t) { return index(t, {mask}); });
    check([&](const Tensor& t) { return t.index_select(0, rows); });
    check([&](const Tensor& t) { return t.gather(1, columns); });
    check([&](const Tensor& t) { return t.masked_select(mask.unsqueeze(1)); });
    check([&](const Tensor& t) { return t.clone().index_copy_(0, rows, t.slice(0, 0, 3)); });
    check([&](const Tensor& t) { return t.clone().scatter_(1, columns, t); });
    check([&](const Tensor& t) { return t.clone().index_put_({rows}, t[0]); });
    check([](const Tensor& t) { return cat({t, t.flip(1)}, 0); });
    check([](const Tensor& t) { return stack({t[0], t[1]}); });
    check([](const Tensor& t) { return t.roll(3); });
    check([](const Tensor& t) { return t.tril(); });
    check([](const Tensor& t) { return t.repeat({2, 3}); });
    check([&](const Tensor& t) { return where(mask.unsqueeze(1), t, t[0]); });
    check([&](const Tensor& t) { return t.masked_fill(mask.unsqueeze(1), 0); });
    CHECK(values(tensor({1, 2, 3}, dtype).masked_fill_(tensor({true, false, true}), 12)) == Doubles{12, 2, 12});
    CHECK(values(where(tensor({true, false}), tensor({1, 2}, dtype), 3)) == Doubles{1, 3});
    CHECK(values(constant_pad_nd(tensor({1, 2}, dtype), {1, 1})) == Doubles{0, 1, 2, 0});
    CHECK(x.cpu().clone().is_cpu());
  }
}

TEST_CASE("they can be told equal, by value") {
  for (const ScalarType dtype : kStored) {
    CAPTURE(name(dtype));
    const Tensor x = tensor({1, 2, 3}, dtype);
    CHECK(values(x == tensor({1, 3, 3}, dtype)) == Doubles{1, 0, 1});
    CHECK(values(x != 2) == Doubles{1, 0, 1});
    CHECK(values(x.view({3, 1}) == x).size() == 9);
    CHECK(x.equal(x.clone()));
    CHECK_FALSE(x.equal(tensor({1, 2, 4}, dtype)));
  }
  CHECK(values(tensor({0.0, kNan}, kFloat8_e4m3fn) == tensor({-0.0, kNan}, kFloat8_e4m3fn)) == Doubles{1, 0});
  CHECK(values(tensor({kLargest, uint64_t{0}}, kUInt64) == tensor({kLargest - 1, uint64_t{0}}, kUInt64)) ==
        Doubles{0, 1});
  CHECK(values(tensor({kLargest, uint64_t{5}}, kUInt64) == Scalar(kLargest)) == Doubles{1, 0});
  CHECK(values(tensor({1, 2}, kUInt16) == tensor({1.0, 2.5})) == Doubles{1, 0});
  CHECK_THROWS_AS(tensor({1}, kFloat8_e5m2) == tensor({1.0}), TypeError);
}

TEST_CASE("they are no indices") {
  for (const ScalarType dtype : {kUInt16, kUInt32, kUInt64}) {
    const Tensor index = zeros({2}, dtype);
    CHECK_THROWS_WITH_AS(ones({3}).index({index}), doctest::Contains("tensors used as indices must be long, int"),
                         TypeError);
    CHECK_THROWS_AS(ones({3}).index_select(0, index), TypeError);
    CHECK_THROWS_AS(ones({3}).gather(0, index), TypeError);
  }
}

TEST_CASE("arithmetic refuses them, naming the operator and the dtype") {
  for (const ScalarType dtype : kStored) {
    CAPTURE(name(dtype));
    const Tensor x = tensor({1, 2, 3}, dtype);
    CHECK_THROWS_WITH_AS(x + x, doctest::Contains(str("add: not implemented for ", dtype).c_str()),
                         NotImplementedError);
    CHECK_THROWS_WITH_AS(x + 1, doctest::Contains(str("add: not implemented for ", dtype).c_str()),
                         NotImplementedError);
    CHECK_THROWS_WITH_AS(x * x, doctest::Contains(str("mul: not implemented for ", dtype).c_str()),
                         NotImplementedError);
    CHECK_THROWS_AS(x < x, NotImplementedError);
    CHECK_THROWS_AS(-x, NotImplementedError);
    CHECK_THROWS_AS(x.max(), NotImplementedError);
    CHECK_THROWS_AS(x.sum(), NotImplementedError);
    CHECK_THROWS_AS(x.clone().add_(x), NotImplementedError);
    CHECK_THROWS_AS(x.clone().eq_(x), NotImplementedError);
    CHECK_THROWS_AS(x.clamp(1, 2), NotImplementedError);
    CHECK_THROWS_AS(x.nonzero(), NotImplementedError);
    CHECK_THROWS_AS(matmul(x, x), NotImplementedError);
    CHECK_THROWS_AS(arange(3, dtype), NotImplementedError);
    CHECK_THROWS_AS(x + tensor({1, 2, 3}, kInt32), TypeError);
    CHECK_THROWS_AS(cat({x, tensor({1}, kInt64)}), TypeError);
  }
  // An unsigned integer with a wider float is that float; an operator of floats takes integers.
  CHECK((tensor({1, 2}, kUInt16) + tensor({0.5, 0.5})).scalar_type() == kFloat32);
  CHECK(values(tensor({1, 2}, kUInt32) + 1.5) == Doubles{2.5, 3.5});
  CHECK(values(tensor({4, 9}, kUInt64).sqrt()) == Doubles{2, 3});
  CHECK_THROWS_AS(tensor({1}, kFloat8_e4m3fn) + tensor({0.5}), TypeError);
  CHECK_THROWS_AS(tensor({4}, kFloat8_e5m2).sqrt(), NotImplementedError);
  CHECK_THROWS_AS(tensor({1}, kUInt8) + tensor({1}, kUInt16), TypeError);
}

TEST_CASE("8-bit floats carry gradients through a cast") {
  const Tensor x = tensor({1.0, 2.5, -3.0}).requires_grad_();
  x.to(kFloat8_e4m3fn).to(kFloat32).sum().backward();
  CHECK(values(x.grad()) == Doubles{1, 1, 1});
}

TEST_CASE("they are printed as in PyTorch") {
  const auto printed = [](const Tensor& t) { return to_string(t.cpu()); };
  CHECK(printed(tensor({1.0, 0.1, kNan, 448.0}, kFloat8_e4m3fn)) ==
        "tensor([1.0000e+00, 1.0156e-01,        nan, 4.4800e+02],\n       dtype=torch.float8_e4m3fn)");
  CHECK(printed(tensor({1.5, 2.0, kInf}, kFloat8_e5m2)) == "tensor([1.5000, 2.0000,    inf], dtype=torch.float8_e5m2)");
  CHECK(printed(tensor({1, 65535}, kUInt16)) == "tensor([    1, 65535], dtype=torch.uint16)");
  CHECK(printed(tensor({kLargest, uint64_t{7}}, kUInt64)) ==
        "tensor([18446744073709551615,                    7], dtype=torch.uint64)");
}

}  // namespace
