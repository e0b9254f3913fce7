#include <cmath>

#include "tests/ops/reduce/reduce_testing.h"

using namespace rush;
using namespace rush::testing;

namespace {

// Where the first largest or smallest element is.
double position(const Doubles& v, bool largest) {
  size_t best = 0;
  for (size_t i = 1; i < v.size(); ++i) {
    if (largest ? v[i] > v[best] : v[i] < v[best]) best = i;
  }
  return static_cast<double>(best);
}

}  // namespace

TEST_CASE("max, min, argmax and argmin along any dimension of any layout") {
  for (ScalarType dtype : {kFloat64, kFloat32, kBFloat16, kInt32, kUInt8}) {
    for (const Arrangement& layout : arrangements(kFloat64)) {
      const Tensor x = (layout.tensor * 50 + 60).to(dtype);
      CAPTURE(layout.name);
      CAPTURE(name(dtype));
      for (int64_t d = 0; d < x.dim(); ++d) {
        if (x.size(d) == 0) {
          CHECK_THROWS_AS(x.max(d), IndexError);
          continue;
        }
        for (bool largest : {true, false}) {
          const auto where = [=](const Doubles& v) { return position(v, largest); };
          const auto what = [=](const Doubles& v) { return v[static_cast<size_t>(position(v, largest))]; };
          const auto [extreme, index] = largest ? x.max(d) : x.min(d);
          CHECK(values(extreme) == naive(x, {d}, what));
          CHECK(values(index) == naive(x, {d}, where));
          CHECK(values(largest ? x.argmax(d) : x.argmin(d)) == naive(x, {d}, where));
          const auto [lowest, highest] = x.aminmax(d);
          CHECK(values(largest ? highest : lowest) == naive(x, {d}, what));
        }
      }
      if (x.numel() == 0) {
        CHECK_THROWS_AS(x.argmax(), IndexError);
        CHECK_THROWS_AS(x.max(), IndexError);
        CHECK_THROWS_AS(x.aminmax(), IndexError);
        continue;
      }
      const Doubles all = values(x);
      CHECK(x.argmax().item<double>() == position(all, true));
      CHECK(x.argmin().item<double>() == position(all, false));
      CHECK(x.max().item<double>() == *std::max_element(all.begin(), all.end()));
      const auto [low, high] = x.aminmax();
      CHECK(low.item<double>() == *std::min_element(all.begin(), all.end()));
      CHECK(high.item<double>() == x.max().item<double>());
    }
  }
}

TEST_CASE("the first NaN is the largest and the smallest") {
  const Tensor x = zeros({2000, 2}, kFloat32);
  x.select(1, 0).copy_(waves({2000}, kFloat32));
  x[1500][0].fill_(kNan);
  x[1700][0].fill_(kNan);
  for (const Tensor& column : {x, x.t().contiguous().t()}) {
    CHECK(column.argmax(0)[0].item<int64_t>() == 1500);
    CHECK(column.argmin(0)[0].item<int64_t>() == 1500);
    CHECK(std::isnan(std::get<0>(column.max(0))[0].item<double>()));
    CHECK(column.argmax(0)[1].item<int64_t>() == 0);
    const auto [lowest, highest] = column.aminmax(0);
    CHECK(values(lowest.isnan()) == Doubles{1, 0});
    CHECK(values(highest.isnan()) == Doubles{1, 0});
  }
}

TEST_CASE("of equal extremes and of NaNs the first is found, in short rows and in few columns") {
  for (const int64_t n : {1, 20, 22, 43, 400}) {
    for (const bool nans : {false, true}) {
      Tensor x = ((arange(3 * n, kInt64) * 2654435761) % 97 % 5).to(kFloat32);
      if (nans) x = x.masked_fill(x == 3, kNan);
      const Tensor tall = x.view({n, 3}), wide = tall.t().contiguous();
      for (int64_t line = 0; line < 3; ++line) {
        CHECK(values(std::get<1>(tall.max(0)))[line] == std::get<1>(wide[line].max(0)).item<double>());
        CHECK(values(std::get<1>(tall.min(0)))[line] == std::get<1>(wide[line].min(0)).item<double>());
      }
      for (int64_t line = 0; line < n; ++line) {
        CHECK(values(tall.argmax(1))[line] == tall[line].argmax().item<double>());
        CHECK(close(values(std::get<0>(tall.min(1)))[line], tall[line].min().item<double>(), 0));
      }
    }
  }
  CHECK_THROWS_AS(zeros({40, 0}).max(1), IndexError);
  CHECK_THROWS_AS(zeros({0, 3}).argmin(0), IndexError);
}

TEST_CASE("extremes of infinities, bool and the ends of integers") {
  CHECK(tensor({-kInf, -kInf}).argmax().item<int64_t>() == 0);
  CHECK(tensor({kInf, 1.}).argmin().item<int64_t>() == 1);
  CHECK(tensor({false, true, true}).max().item<bool>());
  CHECK(std::get<1>(tensor({false, true, true}).max(0)).item<int64_t>() == 1);
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  CHECK(tensor({lowest, lowest}).max().item<int64_t>() == lowest);
  CHECK(tensor({lowest, lowest}).argmax().item<int64_t>() == 0);
}

TEST_CASE("shapes of extremes") {
  const Tensor x = empty({2, 3, 4}, TensorOptions().device(Device(DeviceType::Meta)));
  CHECK(std::get<1>(x.max(1, true)).sizes() == IntArrayRef({2, 1, 4}));
  CHECK(x.argmax().dim() == 0);
  CHECK(x.argmax(std::nullopt, true).sizes() == IntArrayRef({1, 1, 1}));
  CHECK(x.argmax(-1).scalar_type() == kInt64);
  CHECK(std::get<0>(x.aminmax(0)).sizes() == IntArrayRef({3, 4}));
  CHECK(std::get<1>(zeros({}).max(0)).item<int64_t>() == 0);
  CHECK_THROWS_AS(zeros({2}).argmax(1), IndexError);
}

TEST_CASE("equal extremes share the gradient of amax, the first takes that of max along a dimension") {
  const Tensor x = tensor({1., 3., 3., 2.}, kFloat64).requires_grad_();
  x.amax().backward();
  CHECK(values(x.grad()) == Doubles{0, 0.5, 0.5, 0});
  x.mutable_grad().reset();
  std::get<0>(x.max(0)).backward();
  CHECK(values(x.grad()) == Doubles{0, 1, 0, 0});
}

TEST_CASE("derivatives of extremes") {
  for (const Tensor& x : {leaf({3, 4}), leaf(5), leaf({}), leaf({4, 3}).detach().t().requires_grad_()}) {
    check_gradients([](const Tensors& in) { return Tensors{in[0].amax().exp(), in[0].amin(0, true).exp()}; }, {x});
    check_gradients([](const Tensors& in) { return Tensors{in[0].max().exp(), in[0].min().exp()}; }, {x});
    check_gradients([](const Tensors& in) { return Tensors{in[0].median().exp(), in[0].nanmedian()}; }, {x});
    check_gradients(
        [](const Tensors& in) {
          const auto [low, high] = in[0].aminmax(-1);
          return Tensors{low.exp(), high.exp()};
        },
        {x});
    check_gradients(
        [](const Tensors& in) {
          return Tensors{std::get<0>(in[0].max(0)).exp(), std::get<0>(in[0].min(-1, true)).exp()};
        },
        {x});
  }
}
