#include "core/ops/pointwise/compare.h"

#include <cmath>

#include "core/ops/pointwise/bitwise.h"
#include "tests/not_finite.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

TEST_CASE("compare: every dtype, NaN, numbers and broadcasting") {
  for (const ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16, kInt8, kInt64, kUInt8}) {
    const Tensor a = tensor({1, 2, 3}).to(dtype), b = tensor({2}).to(dtype);
    CHECK(values(a == b) == Doubles{0, 1, 0});
    CHECK(values(a != b) == Doubles{1, 0, 1});
    CHECK(values(a < b) == Doubles{1, 0, 0});
    CHECK(values(a <= b) == Doubles{1, 1, 0});
    CHECK(values(a > b) == Doubles{0, 0, 1});
    CHECK(values(a >= b) == Doubles{0, 1, 1});
    CHECK(values(2 < a) == Doubles{0, 0, 1});
    CHECK(values(a <= 2) == Doubles{1, 1, 0});
    CHECK((a == b).scalar_type() == kBool);
    const Tensor target = a.clone();
    CHECK(values(target.gt_(1)) == Doubles{0, 1, 1});
    CHECK(target.scalar_type() == dtype);
  }
  const Tensor x = tensor({kNan, 1.0}, kFloat64);
  CHECK(values(x == x) == Doubles{0, 1});
  CHECK(values(x != x) == Doubles{1, 0});
  CHECK(values(x >= x) == Doubles{0, 1});
  CHECK(values(tensor({1, 2}) < 1.5) == Doubles{1, 0});
  CHECK(eq(zeros({2, 1}), zeros({1, 3})).sizes() == IntArrayRef({2, 3}));
  CHECK(eq(empty({2, 1}, kMeta), empty({3}, kMeta)).scalar_type() == kBool);
  CHECK(eq(zeros({0}), 1).numel() == 0);
  CHECK(values(counting({300, 3}).t().contiguous() == counting({300, 3}).t()) == Doubles(900, 1));
}

TEST_CASE("compare: the larger and the smaller") {
  const Tensor a = tensor({1.0, kNan, 5.0, kNan}, kFloat64), b = tensor({2.0, 3.0, kNan, kNan}, kFloat64);
  const auto same = [](const Tensor& got, const Doubles& want) {
    const Doubles have = values(got);
    for (size_t i = 0; i < want.size(); ++i)
      CHECK((have[i] == want[i] || (std::isnan(have[i]) && std::isnan(want[i]))));
  };
  same(maximum(a, b), {2, kNan, kNan, kNan});
  same(minimum(a, b), {1, kNan, kNan, kNan});
  same(fmax(a, b), {2, 3, 5, kNan});
  same(fmin(a, b), {1, 3, 5, kNan});
  CHECK(values(max(tensor({true, false}), tensor({false, false}))) == Doubles{1, 0});
  CHECK(values(min(tensor({3, 4}, kUInt8), tensor({200}, kUInt8))) == Doubles{3, 4});
  CHECK_THROWS_AS(maximum(zeros({1}, kComplex64), zeros({1}, kComplex64)), NotImplementedError);
  const auto fn = [](const Tensors& in) {
    return Tensors{maximum(in[0], in[1]), minimum(in[0], in[1]), fmax(in[0], in[1]), fmin(in[0], in[1])};
  };
  check_gradients(fn, {leaf({2, 3}), leaf({3}, 0.4)});
  // Equal elements share the gradient; of fmax and fmin the first takes it.
  const Tensor x = tensor({1.0, 2.0}, kFloat64).requires_grad_(), y = tensor({1.0, 3.0}, kFloat64).requires_grad_();
  maximum(x, y).sum().backward();
  CHECK(values(x.grad()) == Doubles{0.5, 0});
  CHECK(values(y.grad()) == Doubles{0.5, 1});
}

TEST_CASE("compare: isclose, allclose, equal") {
  const Tensor a = tensor({1.0, 2.0, kInf, kNan}, kFloat64), b = tensor({1.0 + 1e-9, 2.1, kInf, kNan}, kFloat64);
  CHECK(values(isclose(a, b)) == Doubles{1, 0, 1, 0});
  CHECK(values(isclose(a, b, 0.1, 0, true)) == Doubles{1, 1, 1, 1});
  CHECK(values(isclose(a, -a)) == Doubles{0, 0, 0, 0});
  CHECK(values(isclose(tensor({100, 7}), tensor({101, 7}), 0.02)) == Doubles{1, 1});
  CHECK(values(isclose(tensor({true}), tensor({true}))) == Doubles{1});
  CHECK_FALSE(allclose(a, b));
  CHECK(allclose(a, b, 0.1, 0, true));
  CHECK(equal(tensor({1, 2}), tensor({1, 2})));
  CHECK_FALSE(equal(tensor({1, 2}), tensor({1, 3})));
  CHECK_FALSE(equal(tensor({1, 2}), tensor({1})));
  CHECK(equal(tensor({1, 2}), tensor({1.0, 2.0})));
  CHECK_FALSE(equal(tensor({1, 2}), tensor({1.0, 2.5})));
  CHECK_FALSE(equal(a, a));  // NaN
  CHECK(equal(zeros({0}), zeros({0})));
  for (const Tensor& x :
       {zeros({300, 500}), zeros({1, 90001}), zeros({500, 300}).t(), zeros({5, 1}).expand({5, 9000})}) {
    CHECK(equal(x, zeros(x.sizes())));
    for (const int64_t i : {int64_t{0}, int64_t{4999}, x.numel() - 1}) {
      const Tensor y = zeros(x.sizes());
      y.view({-1})[i].fill_(1);
      CHECK_FALSE(equal(x, y));
      CHECK_FALSE(equal(y, x));
    }
  }
  CHECK_THROWS_AS(isclose(a, b, -1), ValueError);
  CHECK_THROWS_AS(isclose(a, tensor({1})), TypeError);
  CHECK_THROWS_AS(equal(empty({2}, kMeta), empty({2}, kMeta)), NotImplementedError);
}

TEST_CASE("logical and bitwise operators") {
  for (const int64_t n : {1, 63, 513}) {  // whole vectors and their ends
    const Tensor flags = arange(n).remainder(3).ne(0), odd = flags.slice(0, 0, n, 2);
    for (const Tensor& each : {flags, odd}) {
      CHECK(equal(logical_not(each).to(kInt64), 1 - each.to(kInt64)));
      CHECK(equal(bitwise_not(each).to(kInt64), 1 - each.to(kInt64)));
    }
  }
  const Tensor a = tensor({0.0, 2.0, 0.0, kNan}), b = tensor({0.0, 0.0, 1.0, 1.0});
  CHECK(values(logical_and(a, b)) == Doubles{0, 0, 0, 1});
  CHECK(values(logical_or(a, b)) == Doubles{0, 1, 1, 1});
  CHECK(values(logical_xor(a, b)) == Doubles{0, 1, 1, 0});
  const Tensor x = tensor({12, -1, 5}, kInt32), y = tensor({10, 6, 3}, kInt32);
  CHECK(values(x & y) == Doubles{8, 6, 1});
  CHECK(values(x | y) == Doubles{14, -1, 7});
  CHECK(values(x ^ y) == Doubles{6, -7, 6});
  CHECK(values(x & 4) == Doubles{4, 4, 4});
  CHECK(values(1 | x) == Doubles{13, -1, 5});
  CHECK(values(bitwise_left_shift(x, y)) == Doubles{12288, -64, 40});
  CHECK(values(bitwise_right_shift(x, 1)) == Doubles{6, -1, 2});
  CHECK(values(bitwise_left_shift(x, 40)) == Doubles{0, 0, 0});
  CHECK(values(bitwise_right_shift(x, 40)) == Doubles{0, -1, 0});
  CHECK(values(tensor({true, false}) ^ tensor({true, true})) == Doubles{0, 1});
  Tensor target = x.clone();
  target &= y;
  CHECK(values(target) == Doubles{8, 6, 1});
  CHECK_THROWS_AS(a & b, NotImplementedError);
  CHECK_THROWS_AS(bitwise_left_shift(tensor({true}), tensor({true})), NotImplementedError);
}

}  // namespace
