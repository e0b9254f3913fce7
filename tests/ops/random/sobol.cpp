#include "core/ops/random/sobol.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "rushlight.h"

namespace {

using namespace rush;
using quasirandom::SobolEngine;

// The points as whole numbers of 2^-30, on the CPU.
Tensor digits(const Tensor& points) { return points.to(kCPU, kFloat64).mul(1 << SobolEngine::kBits).to(kLong); }

Tensor columns(const Tensor& points, std::initializer_list<int64_t> numbers) {
  return points.index_select(1, tensor(std::vector<int64_t>(numbers), TensorOptions(kLong).device(kCPU)));
}

// What torch.quasirandom.SobolEngine of PyTorch 2.15 gives, unscrambled.
TEST_CASE("a Sobol' sequence is PyTorch's") {
  SobolEngine engine(SobolEngine::kMaxDimension);
  const Tensor x = digits(engine.draw(300, kFloat64));
  const auto expected = [](std::vector<int64_t> numbers) {
    return tensor(numbers, TensorOptions(kLong).device(kCPU)).reshape({-1, 6});
  };
  CHECK(columns(x.narrow(0, 3, 2), {0, 1, 2, 5, 99, 1110})
            .equal(expected({268435456, 805306368, 805306368, 268435456, 268435456, 268435456,  //
                             402653184, 402653184, 671088640, 134217728, 939524096, 939524096})));
  const auto index = [](int64_t n) { return arange(1, n + 1, TensorOptions(kLong).device(kCPU)); };
  const Tensor weights = index(300).unsqueeze(1) * index(1111);
  CHECK((x * weights).remainder(1000003).sum().item<int64_t>() == 166042629544);
  engine.reset().fast_forward(1000003);
  CHECK(columns(digits(engine.draw(2, kFloat64)), {0, 1, 2, 5, 99, 1110})
            .equal(expected({296862720, 603356160, 83747840, 585255936, 53261312, 166417408,  //
                             431080448, 200702976, 486401024, 987909120, 724349952, 569070592})));
}

TEST_CASE("a Sobol' sequence does not depend on how it is drawn") {
  for (const bool scramble : {false, true}) {
    SobolEngine whole(7, scramble, 3), parts(7, scramble, 3);
    const Tensor x = whole.draw(1000, kFloat64);
    Tensors drawn;
    for (const int64_t n : {1, 0, 2, 61, 64, 500}) drawn.push_back(parts.draw(n, kFloat64));
    parts.fast_forward(100);
    CHECK(cat(drawn).equal(x.narrow(0, 0, 628)));
    CHECK(parts.draw(272, kFloat64).equal(x.narrow(0, 728, 272)));
    CHECK(parts.num_generated() == 1000);
    CHECK(x.device().type == get_default_device().type);
    CHECK(parts.reset().draw(5).equal(x.narrow(0, 0, 5).to(kFloat32)));
    CHECK(parts.reset().draw(5, kHalf).equal(x.narrow(0, 0, 5).to(kFloat32).to(kHalf)));
  }
}

// Of the first 2^m points every interval of length 2^-m holds one, in each dimension (Sobol', 1967).
TEST_CASE("a Sobol' sequence is balanced, scrambled or not") {
  for (const bool scramble : {false, true}) {
    SobolEngine engine(SobolEngine::kMaxDimension, scramble, 11);
    const Tensor x = digits(engine.draw_base2(8, kFloat64));
    const Tensor intervals = std::get<0>(x.bitwise_right_shift(SobolEngine::kBits - 8).sort(0));
    CHECK(intervals.equal(arange(256, TensorOptions(kLong).device(kCPU)).unsqueeze(1).expand_as(intervals)));
  }
}

TEST_CASE("a scrambled Sobol' sequence depends on its seed") {
  const Tensor x = SobolEngine(4, true, 1).draw(16), y = SobolEngine(4, true, 2).draw(16);
  CHECK(x.equal(SobolEngine(4, true, 1).draw(16)));
  CHECK_FALSE(x.equal(y));
  manual_seed(5);
  const Tensor first = SobolEngine(4, true).draw(16), second = SobolEngine(4, true).draw(16);
  CHECK_FALSE(first.equal(second));
  manual_seed(5);
  CHECK(first.equal(SobolEngine(4, true).draw(16)));
}

TEST_CASE("Sobol' sequences refuse what they cannot give") {
  CHECK_THROWS_WITH_AS(SobolEngine(0), "SobolEngine: expected a dimension from 1 to 1111, got 0", ValueError);
  CHECK_THROWS_AS(SobolEngine(1112), ValueError);
  SobolEngine engine(2);
  CHECK_THROWS_AS(engine.draw(-1), ValueError);
  CHECK_THROWS_AS(engine.draw(3, kLong), TypeError);
  engine.fast_forward((1 << 30) - 2);
  CHECK_THROWS_AS(engine.draw(3), ValueError);
  CHECK(engine.draw(2, kFloat64).lt(1).all().item<bool>());
  CHECK_THROWS_AS(engine.fast_forward(1), ValueError);
  engine.reset().fast_forward(3);
  CHECK_THROWS_AS(engine.draw_base2(2), ValueError);
  CHECK(engine.draw_base2(0).size(0) == 1);
  CHECK_THROWS_AS(engine.draw_base2(31), ValueError);
}

}  // namespace
