#include <cmath>

#include "tests/ops/reduce/reduce_testing.h"

using namespace rush;
using namespace rush::testing;

namespace {

using Step = std::function<double(double, double)>;

// The running value of `step` along `dim`, in double.
Doubles naive_scan(const Tensor& self, int64_t dim, const Step& step) {
  Tensor lines = self.to(kFloat64).transpose(dim, -1).contiguous();
  if (lines.is_alias_of(self)) lines = lines.clone();
  const int64_t n = lines.size(-1);
  for (int64_t start = 0; start < lines.numel(); start += n) {
    double* x = lines.data_ptr<double>() + start;
    for (int64_t i = 1; i < n; ++i) x[i] = step(x[i - 1], x[i]);
  }
  return values(lines.transpose(dim, -1));
}

}  // namespace

TEST_CASE("scans along any dimension of any layout agree with plain loops") {
  for (ScalarType dtype : {kFloat64, kFloat32}) {
    const double tolerance = dtype == kFloat64 ? 1e-12 : 1e-5;
    for (const Arrangement& layout : arrangements(dtype)) {
      const Tensor& x = layout.tensor;
      CAPTURE(layout.name);
      for (int64_t d = 0; d < x.dim(); ++d) {
        if (x.numel() == 0) {
          CHECK(x.cumsum(d).sizes() == x.sizes());
          continue;
        }
        CHECK(close(values(x.cumsum(d)), naive_scan(x, d, std::plus<double>()), tolerance));
        CHECK(close(values(x.cumprod(d)), naive_scan(x, d, std::multiplies<double>()), tolerance));
        const auto [high, high_at] = x.cummax(d);
        CHECK(values(high) == naive_scan(x, d, [](double a, double b) { return std::max(a, b); }));
        CHECK(values(x.gather(d, high_at)) == values(high));
        const auto [low, low_at] = x.cummin(d);
        CHECK(values(low) == naive_scan(x, d, [](double a, double b) { return std::min(a, b); }));
        CHECK(values(x.gather(d, low_at)) == values(low));
        const auto log_add = [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); };
        CHECK(close(values(x.logcumsumexp(d)), naive_scan(x, d, log_add), tolerance));
      }
    }
  }
}

// A warp of a GPU takes 128 elements at a time, for lines of more than 1024 a block takes 2048, and lines of several
// thousand are split among blocks.
TEST_CASE("scans of lines of any length agree with plain loops") {
  for (const int64_t n : {1, 3, 4, 5, 127, 128, 129, 131, 1024, 1025, 2047, 2049, 5001, 40009}) {
    CAPTURE(n);
    const Tensor x = (arange(3 * n, kFloat64) * 0.37).sin().view({3, n}), near_one = 1 + x / 100;
    CHECK(close(values(x.cumsum(1)), naive_scan(x, 1, std::plus<double>()), 1e-10));
    CHECK(close(values(near_one.cumprod(1)), naive_scan(near_one, 1, std::multiplies<double>()), 1e-10));
    const auto log_add = [](double a, double b) { return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b))); };
    CHECK(close(values(x.logcumsumexp(1)), naive_scan(x, 1, log_add), 1e-10));
    const auto [high, high_at] = x.cummax(1);
    CHECK(values(high) == naive_scan(x, 1, [](double a, double b) { return std::max(a, b); }));
    CHECK(values(x.gather(1, high_at)) == values(high));
    CHECK(values(x.gt(0).cumsum(1)) == naive_scan(x.gt(0), 1, std::plus<double>()));
  }
}

TEST_CASE("dtypes and special values of scans") {
  CHECK(tensor({100, 100, 100}, kInt8).cumsum(0).scalar_type() == kInt64);
  CHECK(values(tensor({100, 100, 100}, kInt8).cumsum(0)) == Doubles{100, 200, 300});
  CHECK(tensor({true, true}).cumprod(0).scalar_type() == kInt64);
  CHECK(tensor({1, 2}).cumsum(0, kFloat32).scalar_type() == kFloat32);
  const Tensor x = tensor({1, 2, 3}).to(kInt32);
  x.cumsum_(0);
  CHECK(values(x) == Doubles{1, 3, 6});
  CHECK(x.scalar_type() == kInt32);
  CHECK_THROWS_AS(x.cumsum_(0, kInt64), TypeError);
  CHECK_THROWS_AS(x.logcumsumexp(0), NotImplementedError);
  CHECK_THROWS_AS(x.cumsum(1), IndexError);
  // Of equal elements the last, and of NaNs too.
  CHECK(values(std::get<1>(tensor({1., 1., 0., 1.}).cummax(0))) == Doubles{0, 1, 1, 3});
  CHECK(values(std::get<1>(tensor({1., kNan, 5., kNan}).cummin(0))) == Doubles{0, 1, 1, 3});
  CHECK(close(values(tensor({-kInf, -kInf, 0.}).logcumsumexp(0)), {-kInf, -kInf, 0}, 1e-7));
  CHECK(values(scalar_tensor(2.).cumsum(0)) == Doubles{2});
}

TEST_CASE("16-bit running sums keep their carry in float") {
  const Tensor sums = ones({1000}, kBFloat16).cumsum(0);
  CHECK(sums[999].item<double>() == 1000);
}

TEST_CASE("diff") {
  const Tensor x = tensor({1., 4., 9., 16.}, kFloat64);
  CHECK(values(x.diff()) == Doubles{3, 5, 7});
  CHECK(values(x.diff(2)) == Doubles{2, 2});
  CHECK(values(x.diff(1, 0, tensor({0.}, kFloat64), tensor({25.}, kFloat64))) == Doubles{1, 3, 5, 7, 9});
  CHECK(x.diff(9).numel() == 0);
  CHECK(values(x.diff(0)) == values(x));
  CHECK(values(tensor({true, false, false}).diff()) == Doubles{1, 0});
  CHECK(counting({2, 3}).diff(1, 0).sizes() == IntArrayRef({1, 3}));
  CHECK_THROWS_AS(x.diff(-1), ValueError);
  CHECK_THROWS_AS(scalar_tensor(1.).diff(), ValueError);
}

TEST_CASE("derivatives of scans") {
  const Tensor zeros_inside = leaf({3, 4}).detach();
  zeros_inside[1][2].zero_();
  zeros_inside[1][0].zero_();
  for (const Tensor& x : {leaf({3, 4}), zeros_inside.requires_grad_(), leaf({4, 3}).detach().t().requires_grad_()}) {
    for (int64_t dim : {0, 1}) {
      check_gradients([=](const Tensors& in) { return Tensors{in[0].cumsum(dim).exp()}; }, {x});
      check_gradients([=](const Tensors& in) { return Tensors{in[0].cumprod(dim)}; }, {x});
      check_gradients([=](const Tensors& in) { return Tensors{in[0].logcumsumexp(dim)}; }, {x});
      check_gradients([=](const Tensors& in) { return Tensors{in[0].diff(2, dim).exp()}; }, {x});
    }
  }
  for (int64_t dim : {0, 1}) {
    check_gradients([=](const Tensors& in) { return Tensors{in[0].logcumsumexp(dim)}; }, {complex_leaf({3, 4})});
    check_gradients(
        [=](const Tensors& in) {
          return Tensors{std::get<0>(in[0].cummax(dim)).exp(), std::get<0>(in[0].cummin(dim)).exp()};
        },
        {leaf({3, 4})});
  }
  check_gradients(
      [](const Tensors& in) {
        return Tensors{(in[0] * 1).cumsum_(0), (in[0] * 1).cumprod_(1)};
      },
      {leaf({3, 4})});
  check_gradients(
      [](const Tensors& in) {
        return Tensors{in[0].cumsum(0), in[0].cumprod(0), in[0].logcumsumexp(0)};
      },
      {leaf({})});
}

// It takes a step for each bit of the length.
TEST_CASE("the gradient of cumprod for lines of any length, with zeros") {
  for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 16, 33}) {
    CAPTURE(n);
    const Tensor x = leaf({n, 2}).detach();
    x[n / 2][0].zero_();
    x[n / 3][0].zero_();
    check_gradients([](const Tensors& in) { return Tensors{in[0].cumprod(0)}; }, {x.requires_grad_()});
  }
  check_gradients([](const Tensors& in) { return Tensors{in[0].cumprod(0)}; }, {complex_leaf({5})});
}

TEST_CASE("logcumsumexp: gradients of complex numbers that exp would overflow for, and that are zero in part") {
  const Tensor large = (complex_leaf({3}).detach() + 800).requires_grad_();
  const Tensor some = tensor({0., 1., 0.}, kFloat64).to(kComplex128);
  const Tensor grad = autograd::grad({large.logcumsumexp(0)}, {large}, {some})[0];
  const Tensor small = (large - 800).detach().requires_grad_();
  const Tensor same = autograd::grad({small.logcumsumexp(0)}, {small}, {some})[0];
  CHECK(largest(grad - same) < 1e-12);
  CHECK(grad[2].abs().item<double>() == 0);
}
