#include "core/ops/linalg/lu.h"

#include <cmath>
#include <limits>

#include "tests/ops/linalg/linalg_testing.h"

namespace {

using namespace rush;
using namespace rush::testing::linalg;
using rush::testing::check_gradients;
using rush::testing::complex_leaf;
using rush::testing::largest;

const DimVector kFactoredShapes[] = {{5, 5}, {7, 4},    {4, 7},    {2, 3, 6, 2}, {1, 1},     {3, 0},
                                     {0, 3}, {0, 2, 2}, {130, 60}, {60, 130},    {3, 20, 20}};

TEST_CASE("linalg_lu: a permutation and two triangles") {
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    for (const DimVector& sizes : kFactoredShapes) {
      CAPTURE(IntArrayRef(sizes));
      const Tensor a = matrices(sizes, dtype, 0.5);
      const Tensor scattered = a.mT().contiguous().mT();
      const auto [p, l, u] = linalg_lu(scattered);
      const int64_t k = std::min(a.size(-2), a.size(-1));
      check_close(p.matmul(l).matmul(u), a);
      check_close(l, l.tril());
      check_close(u, u.triu());
      check_close(l.diagonal(0, -2, -1), ones(l.diagonal(0, -2, -1).sizes(), dtype));
      // Of each column the largest is the pivot, for LAPACK and cuSOLVER by |re| + |im|.
      if (l.numel() > 0) CHECK(largest(l) < (is_complex(dtype) ? std::sqrt(2.0) : 1) + 1e-6);
      const auto [lu, pivots, info] = linalg_lu_factor_ex(scattered);
      CHECK(pivots.scalar_type() == kInt32);
      CHECK(pivots.size(-1) == k);
      CHECK(info.eq(0).all().item<bool>());
      const auto [none, l2, u2] = lu_unpack(lu, pivots, true, false);
      CHECK(none.numel() == 0);
      check_close(l2, l);
      check_close(u2, u);
    }
  }
  // Without pivots, of a matrix that can be decomposed so.
  const Tensor a = matrices({3, 60, 60}, kFloat64) + eye(60, kFloat64) * 60;
  const auto [p, l, u] = linalg_lu(a, false);
  check_close(p, eye(60, kFloat64).expand({3, 60, 60}));
  check_close(l.matmul(u), a);
}

TEST_CASE("linalg_lu_solve: the equation from its factors") {
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    for (const DimVector& sizes : kSquares) {
      const Tensor a = matrices(sizes, dtype) + eye(sizes.back(), dtype) * 2;
      const auto [lu, pivots] = linalg_lu_factor(a);
      DimVector right(sizes);
      right.back() = 3;
      const Tensor b = matrices(right, dtype, 1), rows = b.mT();
      check_close(a.matmul(linalg_lu_solve(lu, pivots, b)), b);
      check_close(adjoint(a).matmul(linalg_lu_solve(lu, pivots, b, true, true)), b);
      check_close(linalg_lu_solve(lu, pivots, rows, false).matmul(a), rows);
      check_close(linalg_lu_solve(lu, pivots, rows, false, true).matmul(adjoint(a)), rows);
    }
  }
  const auto [lu, pivots] = linalg_lu_factor(matrices({2, 1, 4, 4}, kFloat64));
  CHECK(lu_solve(ones({3, 4, 2}, kFloat64), lu, pivots).sizes() == IntArrayRef({2, 3, 4, 2}));
}

TEST_CASE("linalg_slogdet, logdet: the determinant's sign and size") {
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    for (const DimVector& sizes : kSquares) {
      if (sizes.back() > 10) continue;
      const Tensor a = matrices(sizes, dtype);
      const auto [sign, logarithm] = linalg_slogdet(a);
      CHECK(logarithm.scalar_type() == to_real(dtype));
      check_close(sign * logarithm.exp(), linalg_det(a));
      if (is_complex(dtype)) check_close(logdet(a).exp(), linalg_det(a));
    }
  }
  // Far beyond what a determinant holds: 1000^200.
  const auto [sign, logarithm] = slogdet(eye(200, kFloat64) * -1000.);
  CHECK(sign.item<double>() == 1);
  CHECK(logarithm.item<double>() == doctest::Approx(200 * std::log(1000.)));
  const auto [zero, least] = linalg_slogdet(ones({2, 2}, kFloat64));
  CHECK(zero.item<double>() == 0);
  CHECK(least.item<double>() == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(logdet(-eye(3, kFloat64)).item<double>()));
}

TEST_CASE("linalg_lu and what is made of it: derivatives") {
  for (const DimVector& sizes : {DimVector{3, 3}, DimVector{2, 4, 2}, DimVector{2, 4}}) {
    check_gradients(
        [](const Tensors& t) {
          const auto [p, l, u] = linalg_lu(t[0]);
          return Tensors{l, u};
        },
        {full_rank_leaf(sizes)});
    check_gradients([](const Tensors& t) { return Tensors{std::get<0>(linalg_lu_factor_ex(t[0]))}; },
                    {full_rank_leaf(sizes)});
  }
  check_gradients([](const Tensors& t) { return Tensors{std::get<0>(linalg_lu_factor(t[0]))}; },
                  {matrices({3, 3}, kComplex128, 0.5).requires_grad_()});
  for (const bool left : {false, true}) {
    for (const bool adjoint : {false, true}) {
      const auto solve = [=](const Tensors& t) {
        const auto [lu, pivots] = linalg_lu_factor(t[0]);
        return Tensors{linalg_lu_solve(lu, pivots, t[1], left, adjoint)};
      };
      check_gradients(solve, {full_rank_leaf({2, 3, 3}), full_rank_leaf({3, 3}, 1)});
      check_gradients(solve, {matrices({2, 2}, kComplex128, 0.5).requires_grad_(), complex_leaf({2, 2}, 1)});
    }
  }
  const auto slogdets = [](const Tensors& t) {
    const auto [sign, logarithm] = linalg_slogdet(t[0]);
    return Tensors{sign * 1, logarithm};
  };
  check_gradients(slogdets, {full_rank_leaf({2, 3, 3})});
  check_gradients(slogdets, {complex_leaf({2, 2})});
  check_gradients([](const Tensors& t) { return Tensors{logdet(t[0].matmul(t[0].mT()))}; }, {full_rank_leaf({3, 3})});
}

TEST_CASE("linalg_lu: pivots of complex matrices are chosen by the sum of their parts, as LAPACK does") {
  const Tensor rows = tensor({3.0, 0.0, 1.0, 0.0, 2.0, 2.0, 0.0, 0.0}, kFloat64).view({2, 2, 2});
  const Tensor pivots = std::get<1>(linalg_lu_factor(view_as_complex(rows)));
  CHECK(pivots.equal(tensor({2, 2}, kInt32)));  // |2 + 2i| is less than 3
}

TEST_CASE("linalg_lu: bad input") {
  const Tensor singular = ones({2, 2});
  CHECK_THROWS_WITH_AS(linalg_lu_factor(singular),
                       "linalg_lu_factor: the matrix is singular; linalg_lu and linalg_lu_factor_ex decompose it all "
                       "the same",
                       LinAlgError);
  CHECK_THROWS_AS(linalg_lu_factor_ex(singular, true, true), LinAlgError);
  CHECK(std::get<2>(linalg_lu_factor_ex(singular)).item<int>() == 2);
  const auto [p, l, u] = linalg_lu(singular);
  check_close(p.matmul(l).matmul(u), singular);
  const auto [lu, pivots] = linalg_lu_factor(eye(2));
  CHECK_THROWS_AS(linalg_lu_solve(lu, pivots.to(kInt64), lu), TypeError);
  CHECK_THROWS_AS(linalg_lu_solve(lu, pivots + 1, lu), ValueError);
  CHECK_THROWS_AS(linalg_lu_solve(lu, pivots - 1, lu), ValueError);
  CHECK_THROWS_AS(linalg_lu_solve(lu, pivots.narrow(0, 0, 1), lu), ValueError);
  CHECK_THROWS_AS(linalg_lu_solve(lu, pivots, ones({2})), ValueError);
  CHECK_THROWS_AS(linalg_lu_solve(lu, pivots, ones({2, 2}, kFloat64)), TypeError);
  CHECK_THROWS_AS(linalg_slogdet(ones({2, 3})), ValueError);
  CHECK(std::get<1>(linalg_lu(empty({5, 2, 3}, kMeta))).sizes() == IntArrayRef({5, 2, 2}));
}

}  // namespace
