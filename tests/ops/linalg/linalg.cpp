#include "core/ops/linalg/linalg.h"

#include <cmath>

#include "tests/not_finite.h"
#include "tests/ops/linalg/linalg_testing.h"

namespace {

using namespace rush;
using rush::testing::kInf;
using namespace rush::testing::linalg;
using rush::testing::check_gradients;
using rush::testing::complex_leaf;
using rush::testing::Doubles;
using rush::testing::largest;
using rush::testing::values;

Tensor hermitian(DimVector sizes, ScalarType dtype) {
  const Tensor a = matrices(sizes, dtype);
  return a + adjoint(a);
}
Tensor positive(DimVector sizes, ScalarType dtype) {
  const Tensor a = matrices(sizes, dtype);
  return a.matmul(adjoint(a)) + eye(sizes.back(), dtype);
}

void check_orthonormal(const Tensor& q) {
  const Tensor identity = eye(q.size(-1), q.scalar_type());
  check_close(adjoint(q).matmul(q), identity.expand(adjoint(q).matmul(q).sizes()));
}

TEST_CASE("linalg_inv, linalg_solve, linalg_det: what they solve") {
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    for (const DimVector& sizes : kSquares) {
      CAPTURE(sizes.size());
      const int64_t n = sizes.back();
      const Tensor a = matrices(sizes, dtype) + eye(n, dtype) * 2;
      const Tensor identity = eye(n, dtype).expand(a.sizes());
      check_close(linalg_inv(a).matmul(a), identity);
      DimVector right(sizes);
      right.back() = 3;
      const Tensor b = matrices(right, dtype, 1);
      check_close(a.matmul(linalg_solve(a, b)), b);
      const Tensor rows = b.mT();
      check_close(linalg_solve(a, rows, false).matmul(a), rows);
      const Tensor vector = b.select(-1, 0);
      if (n > 1) check_close(a.matmul(linalg_solve(a, vector).unsqueeze(-1)), vector.unsqueeze(-1));
      // det(A B) = det(A) det(B)
      if (n < 10) check_close(linalg_det(a.matmul(a)), linalg_det(a) * linalg_det(a));
    }
  }
  CHECK(linalg_det(tensor({0.0, 2.0, 3.0, 4.0}).view({2, 2})).item<double>() == -6);
  CHECK(linalg_det(ones({3, 3})).item<double>() == 0);
}

TEST_CASE("linalg_solve_triangular: only the triangle is read") {
  const Tensor a = matrices({2, 70, 70}, kFloat64) * 0.1 + eye(70, kFloat64) * 3, b = matrices({2, 70, 3}, kFloat64, 1);
  check_close(a.triu().matmul(linalg_solve_triangular(a, b, true)), b);
  check_close(a.tril().matmul(linalg_solve_triangular(a, b, false)), b);
  check_close(linalg_solve_triangular(a, b.mT(), true, false).matmul(a.triu()), b.mT());
  check_close((a.tril(-1) + eye(70, kFloat64)).matmul(linalg_solve_triangular(a, b, false, true, true)), b);
}

TEST_CASE("linalg_cholesky: a triangle whose square is the matrix") {
  for (const ScalarType dtype : kTypes) {
    for (const DimVector& sizes : kSquares) {
      const Tensor a = positive(sizes, dtype);
      const Tensor l = linalg_cholesky(a.tril()), u = linalg_cholesky(a.triu(), true);
      check_close(l.matmul(adjoint(l)), a);
      check_close(l, l.tril());
      check_close(u, adjoint(l));
    }
  }
}

TEST_CASE("linalg_qr: orthonormal times triangular") {
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    for (const DimVector& sizes : kOblongs) {
      const Tensor a = matrices(sizes, dtype);
      for (const char* mode : {"reduced", "complete"}) {
        const auto [q, r] = linalg_qr(a, mode);
        check_orthonormal(q);
        check_close(r, r.triu());
        check_close(q.matmul(r), a);
      }
      const auto [none, r] = linalg_qr(a, "r");
      CHECK(none.numel() == 0);
      check_close(r, std::get<1>(linalg_qr(a)));
    }
  }
}

TEST_CASE("linalg_eigh: orthonormal eigenvectors, ascending values") {
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    for (const DimVector& sizes : kSquares) {
      const Tensor a = hermitian(sizes, dtype);
      const auto [w, v] = linalg_eigh(a.tril());
      CHECK(w.scalar_type() == to_real(dtype));
      check_orthonormal(v);
      check_close((v * w.unsqueeze(-2)).matmul(adjoint(v)), a);
      check_close(w, std::get<0>(w.sort(-1)));
      check_close(linalg_eigvalsh(a.triu(), "U"), w);
    }
  }
  check_close(linalg_eigvalsh(zeros({3, 3}, kFloat64)), zeros({3}, kFloat64));
}

TEST_CASE("linalg_eig: vectors that the matrix only stretches") {
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    for (const DimVector& sizes : kSquares) {
      const Tensor a = matrices(sizes, dtype);
      for (const Tensor& each : {a, a.mT().contiguous().mT()}) {
        const auto [w, v] = linalg_eig(each);
        CHECK(w.scalar_type() == to_complex(dtype));
        check_close(each.to(w.scalar_type()).matmul(v), v * w.unsqueeze(-2));
        check_close(v.abs().square().sum(-2), ones(w.sizes(), to_real(dtype)));
        check_close(linalg_eigvals(each), w);
        check_close(w.sum(-1), each.diagonal(0, -2, -1).sum(-1).to(w.scalar_type()));
      }
    }
  }
  // A rotation's are i and -i.
  const Tensor w = linalg_eigvals(tensor({0.0, -1.0, 1.0, 0.0}, kFloat64).view({2, 2}));
  check_close(std::get<0>(imag(w).sort(-1)), tensor({-1.0, 1.0}, kFloat64));
  check_close(real(w), zeros({2}, kFloat64));
  CHECK_THROWS_AS(linalg_eig(full({2, 2}, kInf)), ValueError);
  CHECK_THROWS_AS(linalg_eig(ones({2, 3})), ValueError);
}

TEST_CASE("linalg_eig: derivatives of what does not depend on phases") {
  const auto invariant = [](const Tensors& t) {
    const auto [w, v] = linalg_eig(t[0]);
    const Tensor a = v * w.square().unsqueeze(-2);
    return Tensors{w, v.abs(), a.matmul(linalg_inv(v))};
  };
  check_gradients(invariant, {full_rank_leaf({3, 3}, 0.5)});
  check_gradients(invariant, {full_rank_leaf({2, 2, 2}, 1)});
  check_gradients(invariant, {complex_leaf({3, 3})});
  check_gradients([](const Tensors& t) { return Tensors{linalg_eigvals(t[0])}; }, {full_rank_leaf({3, 3}, 0.5)});
}

TEST_CASE("linalg: what depends on the phases of complex vectors has no derivative") {
  const Tensor a = complex_leaf({2, 3, 3});
  const auto [u, s, vh] = linalg_svd(a);
  for (const Tensor& vectors : {std::get<1>(linalg_eigh(a + adjoint(a))), std::get<1>(linalg_eig(a)), u, vh}) {
    CHECK_THROWS_WITH_AS(real(vectors).sum().backward(), doctest::Contains("phases"), Error);
  }
}

TEST_CASE("linalg_svd: orthonormal on both sides, descending values") {
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    for (const DimVector& sizes : kOblongs) {
      const Tensor a = matrices(sizes, dtype);
      const int64_t k = std::min(a.size(-2), a.size(-1));
      for (const bool full : {false, true}) {
        const auto [u, s, vh] = linalg_svd(a, full);
        CHECK(u.size(-1) == (full ? a.size(-2) : k));
        CHECK(vh.size(-2) == (full ? a.size(-1) : k));
        check_orthonormal(u);
        check_orthonormal(adjoint(vh));
        check_close((u.narrow(-1, 0, k) * s.unsqueeze(-2)).matmul(vh.narrow(-2, 0, k)), a);
        check_close(s, std::get<0>(s.sort(-1, true)).abs());
      }
    }
  }
  // Rank one, and nothing at all: the factors are still orthonormal.
  for (const Tensor& a :
       {ones({4, 3}, kFloat64), zeros({3, 4}, kFloat64), ones({3, 4}, kComplexDouble), zeros({4, 3}, kComplexDouble)}) {
    for (const double scale : {1.0, 1e200, 1e-200}) {  // squares of the last two are no numbers
      const auto [u, s, vh] = linalg_svd(a * scale);
      check_orthonormal(u);
      check_orthonormal(adjoint(vh));
      check_close((u.narrow(-1, 0, 3) * (s / scale).unsqueeze(-2)).matmul(vh.narrow(-2, 0, 3)), a);
    }
  }
  check_close(linalg_svdvals(tensor({3.0, 0.0, 0.0, -4.0}).view({2, 2}).to(kFloat64)), tensor({4.0, 3.0}).to(kFloat64));
}

TEST_CASE("linalg_svdvals: the values of linalg_svd, computed without vectors") {
  const auto check_values = [](const Tensor& a) {
    const Tensor values = linalg_svdvals(a), expected = std::get<1>(linalg_svd(a, false));
    REQUIRE(values.sizes() == expected.sizes());
    if (values.numel() == 0) return;
    const double tolerance = (a.scalar_type() == kFloat64 || a.scalar_type() == kComplex128 ? 1e-14 : 1e-6) *
                             static_cast<double>(std::max(a.size(-2), a.size(-1)));
    CHECK(((values - expected).abs().amax() <= expected.amax() * tolerance).item<bool>());
    CHECK((values.diff() <= 0).all().item<bool>());
  };
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    for (const DimVector& sizes : kOblongs) check_values(matrices(sizes, dtype));
    for (const DimVector& sizes : {DimVector{1, 1}, DimVector{1, 9}, DimVector{2, 70, 70}, DimVector{130, 20},
                                   DimVector{3, 0, 4}, DimVector{0, 4, 4}}) {
      check_values(matrices(sizes, dtype, 1));
    }
    check_values(matrices({17, 17}, dtype, 2).t());
  }
  // Zeros on the diagonal and above it, equal values, and ranges beyond those of squares.
  for (const double scale : {1.0, 1e200, 1e-200}) {
    check_values(ones({6, 4}, kFloat64) * scale);
    check_values(zeros({4, 4}, kFloat64));
    check_values(eye(7, kFloat64) * scale);
    for (int64_t zero = 0; zero < 6; ++zero) {
      const Tensor diagonal = ones({6}, kFloat64), above = ones({5}, kFloat64);
      diagonal[zero] = 0;
      check_values((diagonal.diag() + above.diag(1)) * scale);
      if (zero < 5) above[zero] = 0;
      check_values((diagonal.diag() + above.diag(1)) * scale);
    }
    const Tensor graded = pow(Scalar(1e-17), arange(12, kFloat64));
    check_values((graded.diag() + graded.narrow(0, 0, 11).diag(1)) * scale);
    check_values((graded.flip(0).diag() + graded.narrow(0, 0, 11).flip(0).diag(1)) * scale);
  }
  CHECK_THROWS_AS(linalg_svdvals(full({3, 3}, std::nan(""), kFloat64)), LinAlgError);

  const Tensor a = matrices({4, 3}, kFloat64).requires_grad_();
  const Tensor by_values = autograd::grad({linalg_svdvals(a).sum()}, {a})[0];
  const auto [u, s, vh] = linalg_svd(a.detach(), false);
  check_close(by_values, u.matmul(vh));
  const Tensor alone = std::get<1>(ops::_linalg_svd(a, false, false, std::nullopt));
  CHECK_THROWS_AS(alone.sum().backward(), NotImplementedError);
}

// How a GPU computes a batch depends on the sizes of matrices, on how many they are and on how many columns B has.
TEST_CASE("linalg: batches of every size") {
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    for (const DimVector& sizes : {DimVector{3, 9, 9}, DimVector{9, 40, 40}, DimVector{2, 70, 70}, DimVector{9, 70, 70},
                                   DimVector{2, 130, 130}}) {
      const int64_t n = sizes.back();
      CAPTURE(n);
      // Far from singular, with pivots that are not on the diagonal.
      const Tensor noise = matrices(sizes, dtype, 1) * (0.2 / std::sqrt(static_cast<double>(n)));
      const Tensor one = eye(n, dtype), a = one.roll(1, 0) + noise;
      check_close(linalg_inv(a).matmul(a), one.expand(sizes));
      for (const int64_t columns : {int64_t{1}, int64_t{3}, int64_t{9}, n}) {
        CAPTURE(columns);
        const Tensor b = matrices({sizes[0], n, columns}, dtype, 2);
        check_close(a.matmul(linalg_solve(a, b)), b);
        check_close((noise + one).triu().matmul(linalg_solve_triangular(noise + one, b, true)), b);
      }
      const Tensor square = a.matmul(adjoint(a)), l = linalg_cholesky(square);
      check_close(l.matmul(adjoint(l)), square);
      const auto [w, v] = linalg_eigh(square);
      check_close((v * w.unsqueeze(-2)).matmul(adjoint(v)), square);
      check_close(linalg_svdvals(a).square(), w.flip({-1}));
    }
  }
}

TEST_CASE("linalg: more matrices than a dimension of a GPU's grid has blocks") {
  const Tensor a = positive({66'000, 2, 2}, kFloat64), one = eye(2, kFloat64).expand(a.sizes());
  check_close(linalg_inv(a).matmul(a), one);
  const Tensor l = linalg_cholesky(a);
  check_close(l.matmul(l.mT()), a);
  check_close(linalg_solve_triangular(l, a, false), l.mT());
  const auto [q, r] = linalg_qr(a);
  check_close(q.matmul(r), a);
  check_close(q.mT().matmul(q), one);
  const auto [w, v] = linalg_eigh(a);
  check_close((v * w.unsqueeze(-2)).matmul(v.mT()), a);
  check_close(linalg_svdvals(a), w.flip({-1}));
}

TEST_CASE("linalg: derivatives") {
  const auto check = check_gradients;
  const Tensor identity = eye(3, kFloat64);
  const auto square = [&](double phase) {
    return (full_rank_leaf({2, 3, 3}, phase) + identity * 2).detach().requires_grad_();
  };
  check([](const Tensors& t) { return Tensors{linalg_det(t[0])}; }, {square(0)});
  check([](const Tensors& t) { return Tensors{linalg_inv(t[0])}; }, {square(0)});
  check([](const Tensors& t) { return Tensors{linalg_solve(t[0], t[1])}; }, {square(0), full_rank_leaf({2, 3, 2}, 1)});
  check([](const Tensors& t) { return Tensors{linalg_solve(t[0], t[1])}; }, {square(0), full_rank_leaf({2, 3}, 1)});
  check([](const Tensors& t) { return Tensors{linalg_solve(t[0], t[1], false)}; },
        {square(0), full_rank_leaf({1, 2, 3}, 1)});
  for (const bool upper : {false, true}) {
    check([=](const Tensors& t) { return Tensors{linalg_solve_triangular(t[0], t[1], upper)}; },
          {square(0), full_rank_leaf({3, 2}, 1)});
    check([=](const Tensors& t) { return Tensors{linalg_solve_triangular(t[0], t[1], upper, false, true)}; },
          {square(0), full_rank_leaf({2, 3}, 1)});
    const auto cholesky = [=](const Tensors& t) {
      const Tensor a = t[0].matmul(t[0].mT()) + eye(t[0].size(-1), kFloat64);
      return Tensors{linalg_cholesky(a, upper)};
    };
    check(cholesky, {full_rank_leaf({3, 3})});
    check(cholesky, {full_rank_leaf({2, 2, 2})});
    const auto hermitian = [=](const Tensors& t) {
      const Tensor a = t[0].matmul(t[0].mT().conj()) + eye(t[0].size(-1), kFloat64);
      return Tensors{linalg_cholesky(a, upper)};
    };
    check(hermitian, {complex_leaf({3, 3})});
  }
  const auto qr = [](const Tensors& t) {
    const auto [q, r] = linalg_qr(t[0]);
    return Tensors{q, r};
  };
  // The first column of Q turns around where the first element is zero, as it is in phase 0.
  check(qr, {full_rank_leaf({4, 3}, 1)});
  check(qr, {full_rank_leaf({3, 4}, 1)});
  // Eigenvectors and singular vectors are unique up to their signs, so functions without these are checked.
  const auto eigh = [](const Tensors& t) {
    const auto [w, v] = linalg_eigh(t[0] + t[0].mT());
    return Tensors{w, v * v};
  };
  check(eigh, {full_rank_leaf({3, 3})});
  check(eigh, {full_rank_leaf({2, 2, 2}, 1)});
  for (const DimVector& sizes : {DimVector{3, 3}, DimVector{4, 2}, DimVector{2, 4}}) {
    check(
        [](const Tensors& t) {
          const auto [u, s, vh] = linalg_svd(t[0], false);
          return Tensors{u * u, s, vh * vh, u.matmul(vh)};
        },
        {full_rank_leaf(sizes)});
    check([](const Tensors& t) { return Tensors{linalg_svdvals(t[0])}; }, {full_rank_leaf(sizes)});
    check([](const Tensors& t) { return Tensors{std::get<1>(ops::_linalg_svd(t[0], false, true, std::nullopt))}; },
          {full_rank_leaf(sizes)});
  }
  // A singular matrix's determinant has a gradient too: its cofactors.
  const Tensor a = tensor({1.0, 2.0, 2.0, 4.0}, kFloat64).view({2, 2}).requires_grad_();
  linalg_det(a).backward();
  check_close(a.grad(), tensor({4.0, -2.0, -2.0, 1.0}, kFloat64).view({2, 2}));
}

TEST_CASE("linalg_matrix_norm, linalg_norm: every order") {
  const Tensor a = tensor({1.0, -2.0, 3.0, 0.0, 4.0, -5.0}, kFloat64).view({2, 3});
  const auto norm = [&](const Scalar& ord) { return linalg_matrix_norm(a, ord).item<double>(); };
  CHECK(norm(1) == 8);
  CHECK(norm(-1) == 1);
  CHECK(norm(kInf) == 9);
  CHECK(norm(-kInf) == 6);
  const Doubles s = values(linalg_svdvals(a));
  CHECK(norm(2) == doctest::Approx(s[0]));
  CHECK(norm(-2) == doctest::Approx(s[1]));
  CHECK(linalg_matrix_norm(a, "nuc").item<double>() == doctest::Approx(s[0] + s[1]));
  CHECK(linalg_matrix_norm(a).item<double>() == doctest::Approx(std::sqrt(55.0)));
  CHECK(linalg_norm(a).item<double>() == doctest::Approx(std::sqrt(55.0)));
  CHECK(linalg_norm(a, 1).item<double>() == 8);
  CHECK(linalg_norm(a, 1, 1).sizes() == IntArrayRef({2}));
  CHECK(linalg_norm(a, "nuc").item<double>() == doctest::Approx(s[0] + s[1]));
  // Any two dimensions, kept or not.
  const Tensor b = matrices({3, 4, 5}, kFloat64);
  for (const Scalar& ord : {Scalar(1), Scalar(-kInf), Scalar(2)}) {
    CHECK(linalg_matrix_norm(b, ord, {0, 2}, true).sizes() == IntArrayRef({1, 4, 1}));
    check_close(linalg_matrix_norm(b, ord, {2, 0}), linalg_matrix_norm(b.permute({1, 2, 0}), ord));
  }
  check_close(linalg_matrix_norm(b, "nuc", {0, 2}), linalg_matrix_norm(b.permute({1, 0, 2}), "nuc"));
  check_gradients(
      [](const Tensors& t) {
        return Tensors{linalg_matrix_norm(t[0], "nuc"), linalg_matrix_norm(t[0], 2), linalg_matrix_norm(t[0], 1)};
      },
      {full_rank_leaf({2, 3})});
}

TEST_CASE("linalg: bad input") {
  const Tensor square = ones({2, 2}), oblong = ones({2, 3});
  CHECK_THROWS_WITH_AS(linalg_inv(square), "linalg_inv: the matrix is singular", LinAlgError);
  Tensor batch = eye(2).expand({3, 2, 2}).clone();
  batch.select(0, 1).fill_(0);
  CHECK_THROWS_WITH_AS(linalg_inv(batch), "linalg_inv: matrix 1 of the batch is singular", LinAlgError);
  CHECK_THROWS_AS(linalg_solve(batch, batch), LinAlgError);
  for (const int64_t n : {9, 40}) {
    Tensor larger = eye(n).expand({3, n, n}).clone();
    larger.select(0, 2).select(0, n - 1).fill_(0);
    CHECK_THROWS_WITH_AS(linalg_inv(larger), "linalg_inv: matrix 2 of the batch is singular", LinAlgError);
    CHECK_THROWS_WITH_AS(linalg_solve(larger, larger.narrow(-1, 0, 1)),
                         "linalg_solve: matrix 2 of the batch is singular", LinAlgError);
    CHECK_THROWS_WITH_AS(linalg_cholesky(larger), "linalg_cholesky: matrix 2 of the batch is not positive-definite",
                         LinAlgError);
  }
  CHECK_THROWS_WITH_AS(linalg_cholesky(-batch), "linalg_cholesky: matrix 0 of the batch is not positive-definite",
                       LinAlgError);
  CHECK_THROWS_AS(linalg_inv(oblong), ValueError);
  CHECK_THROWS_AS(linalg_det(ones({2})), ValueError);
  CHECK_THROWS_AS(linalg_det(ones({2, 2}, kInt64)), TypeError);
  CHECK_THROWS_AS(linalg_solve(eye(2), ones({3, 2})), ValueError);
  CHECK_THROWS_AS(linalg_solve(eye(2), ones({2, 2}, kFloat64)), TypeError);
  CHECK_THROWS_AS(linalg_qr(oblong, "full"), ValueError);
  CHECK_THROWS_AS(linalg_eigh(square, "X"), ValueError);
  CHECK_THROWS_AS(linalg_svd(square * kInf), LinAlgError);
  const Tensor column = tensor({0.5, kInf}, kFloat64).unsqueeze(1);  // of which some solvers return NaNs
  CHECK_THROWS_WITH_AS(linalg_svd(column), "linalg_svd: the input has infinities or NaNs", LinAlgError);
  CHECK_THROWS_AS(linalg_matrix_norm(oblong, 3), ValueError);
  CHECK_THROWS_AS(linalg_matrix_norm(oblong, "max"), ValueError);
  CHECK_THROWS_AS(linalg_matrix_norm(oblong, 1, {0, 0}), ValueError);
  CHECK_THROWS_AS(linalg_norm(ones({2, 2, 2}), 2), ValueError);
  CHECK(linalg_det(empty({5, 2, 2}, kMeta)).sizes() == IntArrayRef({5}));
}

}  // namespace
