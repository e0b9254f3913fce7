#include "core/ops/pointwise/ternary.h"

#include <cmath>

#include "tests/not_finite.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

TEST_CASE("where: dtypes, broadcasting, numbers") {
  const Tensor test = tensor({true, false, true});
  for (const ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16, kInt8, kInt64, kUInt8, kBool, kComplex64}) {
    const Tensor a = ones({2, 1}, dtype), b = zeros({3}, dtype);
    CHECK(values(where(test, a, b)) == Doubles{1, 0, 1, 1, 0, 1});
    CHECK(where(test, a, b).scalar_type() == dtype);
  }
  CHECK(where(test, tensor({1, 2, 3}), tensor({0.5, 0.5, 0.5})).scalar_type() == kFloat32);
  CHECK(values(where(test, 1.5, tensor({7, 8, 9}))) == Doubles{1.5, 8, 1.5});
  CHECK(values(where(test, tensor({7.0, 8.0, 9.0}), 0)) == Doubles{7, 0, 9});
  CHECK(values(where(test, 1, 2)) == Doubles{1, 2, 1});
  CHECK(values(tensor({7, 8, 9}).where(test, 0)) == Doubles{7, 0, 9});
  CHECK(values(where(tensor({1, 0}, kUInt8), 1, 2)) == Doubles{1, 2});
  CHECK_THROWS_AS(where(tensor({1.0}), tensor({1.0}), tensor({1.0})), TypeError);
  CHECK_THROWS_AS(where(test, zeros({2}), zeros({3})), ValueError);
  CHECK(where(empty({2, 1}, TensorOptions(kBool).device(kMeta)), empty({3}, kMeta), empty({3}, kMeta)).sizes() ==
        IntArrayRef({2, 3}));
  check_gradients(
      [&](const Tensors& in) {
        return Tensors{where(test, in[0], in[1]), where(test, in[0], 2.0)};
      },
      {leaf({2, 3}), leaf({3}, 1)});
}

TEST_CASE("clamp: bounds as numbers") {
  const Tensor x = tensor({-2.0, 0.5, 3.0, kNan}, kFloat64);
  CHECK(values(clamp(x, 0, 1))[0] == 0);
  CHECK(values(clamp(x, 0, 1))[2] == 1);
  CHECK(std::isnan(values(clamp(x, 0, 1))[3]));
  CHECK(values(clamp(x, 0))[2] == 3);
  CHECK(values(clamp(x, std::nullopt, 1.0))[0] == -2);
  CHECK(values(clamp(x, 2, 1))[1] == 1);  // max wins
  CHECK(std::isnan(values(clamp(x, kNan))[0]));
  CHECK(clamp(tensor({1, 2, 3}), 1.5).scalar_type() == kFloat32);
  CHECK(values(clamp(tensor({1, 2, 3}), 1.5)) == Doubles{1.5, 2, 3});
  CHECK(values(clamp(tensor({1, 2, 3}, kUInt8), 2)) == Doubles{2, 2, 3});
  CHECK(values(clamp_max(x, 1))[2] == 1);
  CHECK_THROWS_AS(clamp(x, OptionalScalar()), ValueError);
  CHECK_THROWS_AS(clamp(zeros({1}, kComplex64), 0), TypeError);
  CHECK_THROWS_AS(tensor({1, 2}).clamp_(0.5), TypeError);
  const Tensor target = tensor({-1.0, 2.0});
  CHECK(values(target.clamp_(0, 1)) == Doubles{0, 1});
  check_gradients(
      [](const Tensors& in) {
        return Tensors{clamp(in[0], -0.5, 0.5), clamp(in[0], 0.1), clamp_max(in[0], 0.1), in[0].mul(1).clamp_min_(0.2)};
      },
      {leaf({2, 4})});
}

TEST_CASE("clamp: bounds as tensors") {
  const Tensor x = tensor({-2.0, 0.5, 3.0, kNan}, kFloat64), low = tensor({0.0}, kFloat64),
               high = tensor({1.0, 1.0, kNan, 1.0}, kFloat64);
  CHECK(values(clamp(x, low, high))[0] == 0);
  CHECK(values(clamp(x, low, high))[1] == 0.5);
  CHECK(std::isnan(values(clamp(x, low, high))[2]));
  CHECK(std::isnan(values(clamp(x, low, high))[3]));
  CHECK(values(clamp_min(x, low))[0] == 0);
  CHECK(values(clamp(x, std::nullopt, low))[1] == 0);
  CHECK(clamp(tensor({1, 2}), tensor({1.5})).scalar_type() == kFloat32);
  const auto fn = [](const Tensors& in) {
    return Tensors{clamp(in[0], in[1], in[2]), clamp_min(in[0], in[1]), clamp_max(in[0], in[2])};
  };
  check_gradients(fn, {leaf({2, 4}), leaf({4}, 0.3), leaf({2, 1}, 2.5)});
  // A result that is NaN is neither's.
  const Tensor a = tensor({kNan, 1., 2., 0.}, kFloat64).requires_grad_();
  const Tensor b = tensor({1., kNan, 1., 1.}, kFloat64).requires_grad_();
  const Tensor ones_like_a = ones({4}, kFloat64);
  const Tensors by_min = autograd::grad({clamp_min(a, b)}, {a, b}, {ones_like_a});
  CHECK(values(by_min[0]) == Doubles{0, 0, 1, 0});
  CHECK(values(by_min[1]) == Doubles{0, 0, 0, 1});
  const Tensors by_max = autograd::grad({clamp_max(a, b)}, {a, b}, {ones_like_a});
  CHECK(values(by_max[0]) == Doubles{0, 0, 0, 1});
  CHECK(values(by_max[1]) == Doubles{0, 0, 1, 0});
}

TEST_CASE("lerp, addcmul, addcdiv") {
  const Tensor a = tensor({1.0, 2.0}, kFloat64), b = tensor({3.0, 6.0}, kFloat64), w = tensor({0.25, 0.75}, kFloat64);
  CHECK(values(lerp(a, b, w)) == Doubles{1.5, 5});
  CHECK(values(lerp(a, b, 0.5)) == Doubles{2, 4});
  CHECK(values(lerp(a, b, 1)) == values(b));
  CHECK(values(addcmul(a, b, w, 2)) == Doubles{2.5, 11});
  CHECK(values(addcdiv(a, b, w, 0.5)) == Doubles{7, 6});
  CHECK(values(addcmul(tensor({1, 2}), tensor({3, 4}), tensor({5, 6}), 2)) == Doubles{31, 50});
  CHECK(values(addcmul(tensor({1}, kInt32), tensor({2, 3}, kInt32), tensor({2}, kInt32))) == Doubles{5, 7});
  CHECK(values(lerp(a.to(kBFloat16), b.to(kBFloat16), 0.5)) == Doubles{2, 4});
  CHECK_THROWS_AS(addcdiv(tensor({1}), tensor({1}), tensor({1})), TypeError);
  CHECK_THROWS_AS(lerp(a, b.to(kFloat32), 0.5), TypeError);
  // A single weight takes part in type promotion.
  CHECK(lerp(a.to(kBFloat16), b.to(kBFloat16), tensor(0.5)).scalar_type() == kBFloat16);
  CHECK(values(lerp(tensor({1, 3}), tensor({2, 6}), tensor(0.5))) == Doubles{1.5, 4.5});
  CHECK_THROWS_AS(lerp(a, b, w.to(kFloat32)), TypeError);
  CHECK_THROWS_AS(addcmul(zeros({2}), zeros({3}), zeros({3})), ValueError);
  CHECK(addcdiv(empty({2, 1}, kMeta), empty({3}, kMeta), empty({}, kMeta)).sizes() == IntArrayRef({2, 3}));
  const auto fn = [](const Tensors& in) {
    return Tensors{lerp(in[0], in[1], in[2]), lerp(in[0], in[1], 0.3), addcmul(in[0], in[1], in[2], 1.5),
                   addcdiv(in[0], in[1], in[2] + 3, 1.5), (in[0] * in[1]).addcmul_(in[1], in[2], 2)};
  };
  check_gradients(fn, {leaf({2, 3}), leaf({3}, 1), leaf({}, 2)});
  check_gradients(fn, {leaf({3, 2}).detach().t().requires_grad_(), leaf({2, 3}, 1), leaf({2, 1}, 2)});
}

}  // namespace
