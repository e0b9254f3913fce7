#include "core/ops/linalg/distance.h"

#include "tests/not_finite.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

TEST_CASE("cdist: every pair's norm") {
  const Tensor a = leaf({2, 3, 4}).detach(), b = leaf({2, 5, 4}, 1).detach();
  const Tensor difference = (a.unsqueeze(2) - b.unsqueeze(1)).abs();
  for (double p : {0.5, 1.0, 1.5, 2.0, 3.0}) {
    const Tensor expected = difference.pow(p).sum(-1).pow(1 / p);
    CHECK(largest(cdist(a, b, p) - expected) < 1e-12);
  }
  CHECK(largest(cdist(a, b, kInf) - difference.amax(-1)) == 0);
  CHECK(values(cdist(tensor({1.0, 2.0}).view({1, 2}), tensor({1.0, 5.0}).view({1, 2}), 0)) == Doubles{1});
  CHECK(cdist(a, b.select(0, 0)).sizes() == IntArrayRef({2, 3, 5}));
  CHECK(cdist(zeros({0, 4}), zeros({5, 4})).sizes() == IntArrayRef({0, 5}));
  CHECK(values(cdist(zeros({1, 0}), zeros({2, 0}))) == Doubles{0, 0});
}

// More vectors than a panel has lanes, on either side, and fewer; more numbers in one than registers hold.
TEST_CASE("cdist: any number of vectors, of every dtype") {
  for (const auto& [n, m, d] : {std::array<int64_t, 3>{1, 70, 5}, {70, 3, 67}, {300, 65, 1}, {5, 33, 40}}) {
    CAPTURE(n);
    for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16, kFloat16}) {
      CAPTURE(dtype);
      const Tensor a = leaf({2, n, d}).detach().to(dtype), b = leaf({2, m, d}, 1).detach().to(dtype);
      const Tensor difference = (a.to(kFloat64).unsqueeze(2) - b.to(kFloat64).unsqueeze(1)).abs();
      const double tolerance = dtype == kFloat64 ? 1e-13 : dtype == kFloat32 ? 1e-6 : dtype == kFloat16 ? 1e-3 : 8e-3;
      for (const double p : {0.0, 1.0, 2.0, 3.0, kInf}) {
        CAPTURE(p);
        const Tensor expected = p == 0      ? difference.ne(0).sum(-1).to(kFloat64)
                                : p == kInf ? difference.amax(-1)
                                            : difference.pow(p).sum(-1).pow(1 / p);
        const Tensor got = cdist(a, b, p);
        CHECK(got.scalar_type() == dtype);
        CHECK(largest((got.to(kFloat64) - expected) / (expected + 1)) < tolerance);
      }
    }
  }
}

TEST_CASE("cdist: a NaN, an infinity and tiny differences") {
  Tensor a = zeros({40, 6}), b = zeros({50, 6});
  a[3][5].fill_(std::numeric_limits<double>::quiet_NaN());
  b[49][0].fill_(-kInf);
  a[7][2].fill_(1e-30);
  for (const double p : {0.0, 1.0, 2.0, 3.0, kInf}) {
    CAPTURE(p);
    const Tensor got = cdist(a, b, p), turned = cdist(b, a, p);
    CHECK(equal(isnan(got), isnan(turned.t())));
    CHECK(got[0][49].item<float>() == (p == 0 ? 1 : kInf));
    CHECK(got[7][48].item<float>() == (p == 0 ? 1.0f : p == 2 || p == 3 ? 0.0f : 1e-30f));
    CHECK(isnan(got).sum().item<int64_t>() == (p == 0 ? 0 : 50));
  }
}

TEST_CASE("cdist: derivatives") {
  for (double p : {1.0, 1.5, 2.0, 3.0, kInf}) {
    CAPTURE(p);
    check_gradients([p](const Tensors& t) { return Tensors{cdist(t[0], t[1], p)}; }, {leaf({2, 3}), leaf({4, 3}, 1)});
  }
  check_gradients([](const Tensors& t) { return Tensors{cdist(t[0], t[1])}; }, {leaf({2, 2, 3}), leaf({1, 3, 3}, 1)});
  // No slope at distance zero.
  for (double p : {0.5, 1.0, 2.0, 3.0}) {
    const Tensor x = ones({1, 3}, kFloat64).requires_grad_();
    const Tensors grads = autograd::grad({cdist(x, ones({1, 3}, kFloat64), p)}, {x}, {ones({1, 1}, kFloat64)});
    CHECK(values(grads[0]) == Doubles{0, 0, 0});
  }
}

TEST_CASE("cdist: bad input") {
  CHECK_THROWS_AS(cdist(ones({2, 3}), ones({2, 4})), ValueError);
  CHECK_THROWS_AS(cdist(ones({3}), ones({2, 3})), ValueError);
  CHECK_THROWS_AS(cdist(ones({2, 3}), ones({2, 3}), -1), ValueError);
  CHECK_THROWS_AS(cdist(ones({2, 3}), ones({2, 3}), 2, 3), ValueError);
  CHECK_THROWS_AS(cdist(ones({2, 3}, kInt64), ones({2, 3}, kInt64)), TypeError);
  CHECK_THROWS_AS(cdist(ones({2, 3}), ones({2, 3}, kFloat64)), TypeError);
}

TEST_CASE("pdist: each pair of rows once") {
  const Tensor x = leaf({4, 3});
  for (const double p : {0.0, 1.0, 2.0, 3.0, kInf}) {
    Doubles expected;
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = i + 1; j < 4; ++j) expected.push_back((x[i] - x[j]).norm(p).item<double>());
    }
    const Doubles got = values(pdist(x, p));
    REQUIRE(got.size() == expected.size());
    for (size_t k = 0; k < got.size(); ++k) CHECK(got[k] == doctest::Approx(expected[k]).epsilon(1e-12));
  }
  check_gradients([](const Tensors& in) { return Tensors{pdist(in[0])}; }, {x});
  check_gradients([](const Tensors& in) { return Tensors{pdist(in[0], 3)}; }, {x});
  // Rows that are the same are at no distance, and have no gradient.
  const Tensor twice = ones({2, 3}, kFloat64).requires_grad_();
  pdist(twice).backward();
  CHECK(values(twice.grad()) == Doubles(6, 0.0));
  CHECK(pdist(zeros({1, 3})).numel() == 0);
  CHECK(pdist(empty({5, 3}, kMeta)).sizes() == IntArrayRef({10}));
  CHECK_THROWS_AS(pdist(zeros({3})), ValueError);
  CHECK_THROWS_AS(pdist(zeros({2, 3}), -1), ValueError);
  CHECK_THROWS_AS(pdist(zeros({2, 3}, kInt64)), TypeError);
}

}  // namespace
