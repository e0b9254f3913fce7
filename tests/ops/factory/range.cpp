// Expected numbers are PyTorch 2.11's where they are not obvious.
#include "core/ops/factory/range.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

TEST_CASE("arange") {
  CHECK(values(arange(4)) == Doubles{0, 1, 2, 3});
  CHECK(arange(4).scalar_type() == kInt64);
  CHECK(arange(4.0).scalar_type() == kFloat32);
  CHECK(values(arange(2, 9, 3)) == Doubles{2, 5, 8});
  CHECK(values(arange(3, -2, -2)) == Doubles{3, 1, -1});
  CHECK(values(arange(1.0, 2.0, 0.25)) == Doubles{1, 1.25, 1.5, 1.75});
  CHECK(values(arange(0.5, 5.5, 1.9, kInt64)) == Doubles{0, 1, 2, 3, 4});
  CHECK(values(arange(0.5, 5.5, 1.9, kInt32)) == Doubles{0, 1, 2});
  CHECK(arange(5, 5).numel() == 0);
  CHECK(arange(1, 5, 0.7, kFloat16).numel() == 6);
  CHECK(arange(INT64_MAX - 2, INT64_MAX, 1)[1].item<int64_t>() == INT64_MAX - 1);
  CHECK(arange(INT64_MIN, INT64_MIN + 3, 2).numel() == 2);
  CHECK(arange(10, kMeta).sizes() == IntArrayRef({10}));
  const Tensor many = arange(0.0, 1e6, 0.1, kFloat32);
  CHECK(many.numel() == 10000000);
  CHECK(many[9999999].item<double>() == static_cast<float>(999999.9));
  CHECK_THROWS_AS(arange(0, 5, 0), ValueError);
  CHECK_THROWS_AS(arange(-2, 2, 1e19, kInt64), ValueError);
  CHECK_THROWS_AS(arange(0, 1e19, 1e18, kInt64), ValueError);
  CHECK_THROWS_AS(arange(0, 5, -1), ValueError);
  CHECK_THROWS_AS(arange(0, 5, 0.5, kInt64), ValueError);
  CHECK_THROWS_AS(arange(0, INFINITY), ValueError);
  CHECK_THROWS_AS(arange(0, NAN), ValueError);
  CHECK_THROWS_AS(arange(complex<double>(0, 1)), ValueError);
  CHECK_THROWS_AS(arange(INT64_MIN, INT64_MAX), ValueError);
}

TEST_CASE("linspace and logspace") {
  CHECK(values(linspace(0, 1, 5)) == Doubles{0, 0.25, 0.5, 0.75, 1});
  CHECK(values(linspace(3, -3, 3, kInt64)) == Doubles{3, 0, -3});
  CHECK(values(linspace(0, 4, 7, kInt64)) == Doubles{0, 0, 1, 2, 2, 3, 4});
  CHECK(values(linspace(2.9, 5.7, 4, kInt64)) == Doubles{2, 3, 4, 5});
  CHECK(values(linspace(2.5, 9, 1)) == Doubles{2.5});
  CHECK(linspace(0, 1, 0).numel() == 0);
  CHECK(linspace(complex<double>(0, 1), 2, 3)[1].item().to<complex<double>>() == complex<double>(1, 0.5));
  const Tensor fine = linspace(-1, 1, 100001, kFloat64);
  CHECK(fine[100000].item<double>() == 1);
  CHECK(std::abs(fine[50000].item<double>()) < 1e-15);
  CHECK(fine[75000].item<double>() == doctest::Approx(0.5).epsilon(1e-12));
  CHECK(values(logspace(0, 4, 5, 2.0)) == Doubles{1, 2, 4, 8, 16});
  CHECK(values(logspace(0, 4, 7, 3.0, kInt64)) == Doubles{1, 2, 4, 9, 18, 38, 81});
  CHECK(values(logspace(2.9, 5.7, 4, 2.0, kInt64)) == Doubles{4, 8, 16, 32});
  CHECK(values(logspace(2.9, 5.7, 1, 2.0, kInt64)) == Doubles{7});
  CHECK(values(ops::linspace_Tensor_Scalar(tensor(1), 3, 3, kFloat64, {}, {}, {})) == Doubles{1, 2, 3});
  CHECK_THROWS_AS(ops::linspace_Scalar_Tensor(1, tensor({3}), 3, {}, {}, {}, {}), ValueError);
  CHECK_THROWS_AS(linspace(0, 1, -1), ValueError);
  CHECK_THROWS_AS(linspace(0, complex<double>(0, 1), 3, kFloat32), TypeError);
  CHECK(linspace(0, 1, 5, kMeta).sizes() == IntArrayRef({5}));
}

TEST_CASE("eye") {
  CHECK(values(eye(2)) == Doubles{1, 0, 0, 1});
  CHECK(values(eye(2, 3, kInt64)) == Doubles{1, 0, 0, 0, 1, 0});
  CHECK(eye(0, 4).sizes() == IntArrayRef({0, 4}));
  CHECK(eye(3, kMeta).sizes() == IntArrayRef({3, 3}));
  CHECK_THROWS_AS(eye(-1), ValueError);
}

}  // namespace
