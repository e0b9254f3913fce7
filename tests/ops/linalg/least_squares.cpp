#include "core/ops/linalg/least_squares.h"

#include <limits>

#include "tests/ops/linalg/linalg_testing.h"

namespace {

using namespace rush;
using namespace rush::testing::linalg;
using rush::testing::check_gradients;
using rush::testing::complex_leaf;

// A (..., n, m) of rank `rank`.
Tensor of_rank(DimVector sizes, int64_t rank, ScalarType dtype) {
  DimVector left(sizes), right(sizes);
  left.back() = rank;
  right[right.size() - 2] = rank;
  return matrices(left, dtype).matmul(matrices(right, dtype, 1));
}

// Moore's and Penrose's four equations.
void check_pseudoinverse(const Tensor& a, const Tensor& x) {
  const Tensor ax = a.matmul(x), xa = x.matmul(a);
  check_close(ax.matmul(a), a);
  check_close(xa.matmul(x), x);
  check_close(adjoint(ax), ax);
  check_close(adjoint(xa), xa);
}

TEST_CASE("linalg_pinv: four equations define it") {
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    for (const DimVector& sizes : kOblongs) {
      const Tensor a = matrices(sizes, dtype);
      check_pseudoinverse(a, linalg_pinv(a));
      check_pseudoinverse(a.mT(), linalg_pinv(a.mT()));
      if (a.size(-1) > 2 && a.size(-2) > 2) {
        const Tensor low = of_rank(sizes, 2, dtype);
        check_pseudoinverse(low, linalg_pinv(low, 1e-4));
      }
    }
    const Tensor a = of_rank({2, 6, 6}, 3, dtype), hermitian = a + adjoint(a);
    check_pseudoinverse(hermitian, linalg_pinv(hermitian, std::nullopt, 1e-4, true));
    check_close(linalg_pinv(hermitian.tril(), 1e-4, true), linalg_pinv(hermitian, 1e-4));
  }
}

TEST_CASE("linalg_pinv: tolerances") {
  const Tensor a = tensor({4.0, 1.0, 0.1}, kFloat64).diag();
  const auto inverses = [](const Tensor& x) { return rush::testing::values(x.diagonal().contiguous()); };
  using Doubles = rush::testing::Doubles;
  CHECK(inverses(linalg_pinv(a, 0.5, std::nullopt)) == Doubles{0.25, 1, 0});  // absolute alone
  CHECK(inverses(linalg_pinv(a, std::nullopt, 0.5)) == Doubles{0.25, 0, 0});
  CHECK(inverses(linalg_pinv(a, 0.05, 0.25)) == Doubles{0.25, 0, 0});  // 1 is not above 0.25 * 4
  CHECK(inverses(linalg_pinv(a, 0.25)) == Doubles{0.25, 0, 0});
  CHECK(inverses(pinverse(a, 0.2)) == Doubles{0.25, 1, 0});
  // One tolerance for each matrix.
  const Tensor both = stack({a, a}), each = tensor({0.5, 2.0}, kFloat64);
  const Tensor x = linalg_pinv(both, std::optional(each));
  CHECK(inverses(x[0]) == Doubles{0.25, 1, 0});
  CHECK(inverses(x[1]) == Doubles{0.25, 0, 0});
  CHECK(inverses(linalg_pinv(both, each / 10)[1]) == Doubles{0.25, 1, 0});
  CHECK_THROWS_AS(linalg_pinv(ones({2, 3}), 0.1, true), ValueError);
  CHECK_THROWS_AS(linalg_pinv(ones({2})), ValueError);
  CHECK_THROWS_AS(linalg_pinv(ones({2, 2}, kInt64)), TypeError);
}

TEST_CASE("linalg_lstsq: normal equations, and the least solution") {
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    for (const char* driver : {"gels", "gelsy", "gelsd", "gelss"}) {
      CAPTURE(driver);
      const bool gels = driver == std::string_view("gels");
      for (const DimVector& sizes : kOblongs) {
        const bool low = !gels && sizes.back() > 3 && sizes[sizes.size() - 2] > 3;
        const Tensor a = low ? of_rank(sizes, 2, dtype) : matrices(sizes, dtype, 0.5);
        DimVector right(sizes);
        right.back() = 3;
        const Tensor b = matrices(right, dtype, 2);
        const auto [x, residuals, rank, s] = linalg_lstsq(a, b, low ? std::optional(1e-4) : std::nullopt, driver);
        const int64_t n = a.size(-2), m = a.size(-1);
        check_close(adjoint(a).matmul(a.matmul(x) - b), zeros_like(x));
        check_close(x, linalg_pinv(a, 1e-4).matmul(b));
        const bool reported = n > m && driver != std::string_view("gelsy") && !low;
        CHECK(residuals.numel() == (reported ? x.numel() / std::max<int64_t>(m, 1) : 0) + (reported && m == 0 ? 3 : 0));
        if (reported) check_close(residuals, (a.matmul(x) - b).abs().square().sum(-2));
        if (gels) {
          CHECK(rank.numel() == 0);
        } else {
          CHECK(rank.eq(low ? 2 : std::min(n, m)).all().item<bool>());
        }
        const bool values = driver == std::string_view("gelsd") || driver == std::string_view("gelss");
        CHECK(s.sizes() == (values ? linalg_svdvals(a).sizes() : IntArrayRef({0})));
      }
    }
  }
}

TEST_CASE("linalg_lstsq: vectors, broadcasting, bad input") {
  const Tensor a = matrices({2, 5, 3}, kFloat64), b = matrices({2, 5}, kFloat64, 1);
  check_close(std::get<0>(linalg_lstsq(a, b)), linalg_pinv(a).matmul(b.unsqueeze(-1)).squeeze(-1));
  CHECK(std::get<0>(linalg_lstsq(a, ones({4, 1, 5, 2}, kFloat64))).sizes() == IntArrayRef({4, 2, 3, 2}));
  const Tensor square = ones({2, 2});
  CHECK_THROWS_AS(linalg_lstsq(square, square, std::nullopt, "gels"), LinAlgError);
  CHECK_THROWS_AS(linalg_lstsq(square, square, std::nullopt, "qr"), ValueError);
  CHECK_THROWS_AS(linalg_lstsq(square, ones({3, 2})), ValueError);
  CHECK_THROWS_AS(linalg_lstsq(square, square.to(kFloat64)), TypeError);
}

TEST_CASE("linalg_matrix_exp: by its definition") {
  for (const ScalarType dtype : kTypes) {
    CAPTURE(dtype);
    // A nilpotent matrix has a short series.
    const Tensor n = matrices({2, 4, 4}, dtype).triu(1), one = eye(4, dtype), n2 = n.matmul(n);
    check_close(linalg_matrix_exp(n), one + n + n2 / 2 + n2.matmul(n) / 6);
    const Tensor d = matrices({3, 5}, dtype) * 4;
    check_close(matrix_exp(d.diag_embed()), d.exp().diag_embed());
    // Of every size at once: the halvings of each matrix are its own.
    const Tensor sizes = tensor({0.0, 1e-3, 1.0, 3.0}, to_real(dtype)).view({4, 1, 1});
    const Tensor a = matrices({4, 6, 6}, dtype) * sizes;
    const auto [w, v] = linalg_eig(a.mT());
    const Tensor through_eig = linalg_solve(v, v * w.exp().unsqueeze(-2), false).mT();
    if (dtype == kFloat64 || dtype == kComplex128) {
      const Tensor expected = is_complex(dtype) ? through_eig : real(through_eig);
      check_close(linalg_matrix_exp(a)[3], expected[3]);
      check_close(linalg_matrix_exp(a)[2], expected[2]);
    }
    check_close(linalg_matrix_exp(a).matmul(linalg_matrix_exp(-a))[2], eye(6, dtype));
    for (int64_t i = 0; i < 4; ++i) check_close(linalg_matrix_exp(a)[i], linalg_matrix_exp(a[i]));
  }
  CHECK(linalg_matrix_exp(ones({3, 0, 0})).sizes() == IntArrayRef({3, 0, 0}));
  check_close(linalg_matrix_exp(zeros({3, 3})), eye(3));
  CHECK(linalg_matrix_exp(full({2, 2}, std::numeric_limits<double>::infinity())).isnan().all().item<bool>());
  CHECK_THROWS_AS(linalg_matrix_exp(ones({2, 3})), ValueError);
  for (const ScalarType dtype : {kHalf, kBFloat16}) {
    const Tensor a = matrices({2, 4, 4}, kFloat32).to(dtype);
    const Tensor exact = linalg_matrix_exp(a.to(kFloat64));
    CHECK(linalg_matrix_exp(a).equal(exact.to(kFloat32).to(dtype)));
  }
}

TEST_CASE("linalg_pinv, linalg_lstsq, linalg_matrix_exp: derivatives") {
  for (const DimVector& sizes : {DimVector{3, 3}, DimVector{2, 4, 2}, DimVector{2, 3}}) {
    check_gradients([](const Tensors& t) { return Tensors{linalg_pinv(t[0])}; }, {full_rank_leaf(sizes)});
    DimVector right(sizes);
    right.back() = 2;
    for (const char* driver : {"gels", "gelsd"}) {
      const auto lstsq = [=](const Tensors& t) {
        const auto [x, residuals, rank, s] = linalg_lstsq(t[0], t[1], std::nullopt, driver);
        return residuals.numel() > 0 ? Tensors{x, residuals} : Tensors{x};
      };
      check_gradients(lstsq, {full_rank_leaf(sizes, 0.5), full_rank_leaf(right, 1)});
    }
  }
  check_gradients([](const Tensors& t) { return Tensors{linalg_pinv(t[0])}; },
                  {matrices({3, 2}, kComplex128).requires_grad_()});
  check_gradients([](const Tensors& t) { return Tensors{linalg_pinv(t[0].matmul(adjoint(t[0])), 1e-8, true)}; },
                  {matrices({2, 2}, kComplex128, 0.5).requires_grad_()});
  check_gradients([](const Tensors& t) { return Tensors{std::get<0>(linalg_lstsq(t[0], t[1]))}; },
                  {full_rank_leaf({2, 3, 2}), full_rank_leaf({2, 3}, 1)});
  const auto exponential = [](const Tensors& t) { return Tensors{linalg_matrix_exp(t[0])}; };
  check_gradients(exponential, {full_rank_leaf({2, 3, 3})});
  check_gradients(exponential, {complex_leaf({2, 2})});
}

}  // namespace
