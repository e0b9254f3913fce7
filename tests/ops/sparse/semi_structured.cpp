// 2:4 matrices on the CPU: pruning, compressing, products, derivatives, bad input. tests/cuda/semi_structured.cpp has
// the GPU's.
#include <cmath>

#include "tests/ops/sparse/semi_structured_testing.h"

using namespace rush;
using namespace rush::testing;

namespace {

constexpr ScalarType kDtypes[] = {kFloat16, kBFloat16, kFloat32, kFloat64};

}  // namespace

TEST_CASE("pruning keeps the two largest of each four, of equal ones those further left") {
  const Tensor x = tensor({1.0, -3.0, 2.0, 0.5, 1.0, 1.0, -1.0, 1.0, 0.0, 0.0, 4.0, 0.0}, kFloat32).view({1, 12});
  CHECK(values(sparse::prune_semi_structured(x)) == Doubles{0, -3, 2, 0, 1, 1, 0, 0, 0, 0, 4, 0});
  for (const ScalarType dtype : kDtypes) {
    const Tensor wild = uneven(48, 64, dtype);
    const Tensor pruned = sparse::prune_semi_structured(wild);
    CHECK(pruned.scalar_type() == dtype);
    CHECK(values(pruned) == values(pruned_by_hand(wild)));
    CHECK_FALSE(sparse::is_semi_structured(wild));
    CHECK(sparse::is_semi_structured(pruned));
    CHECK(values(sparse::prune_semi_structured(wild.t())) == values(pruned_by_hand(wild.t().contiguous())));
  }
  CHECK(sparse::prune_semi_structured(zeros({0, 8})).sizes() == IntArrayRef({0, 8}));
  CHECK(sparse::is_semi_structured(zeros({3, 0})));
}

TEST_CASE("the gradient of pruning is that of what was kept") {
  const Tensor x = tensor({1.0, -3.0, 2.0, 0.5, 5.0, 6.0, 7.0, 8.0}, kFloat64).view({1, 8}).requires_grad_();
  (sparse::prune_semi_structured(x) * arange(1, 9, kFloat64)).sum().backward();
  CHECK(values(x.grad()) == Doubles{0, 2, 3, 0, 0, 0, 7, 8});
  check_gradients([](const Tensors& in) { return Tensors{sparse::prune_semi_structured(in[0])}; }, {leaf({3, 8})});
}

TEST_CASE("a compressed matrix is the matrix") {
  for (const ScalarType dtype : kDtypes) {
    for (const auto& [m, k] : {std::array<int64_t, 2>{16, 16}, {32, 48}, {48, 4096}, {112, 16}}) {
      const Tensor dense = sparse::prune_semi_structured(uneven(m, k, dtype, m));
      const Tensor packed = _cslt_compress(dense);
      CHECK(packed.scalar_type() == dtype);
      CHECK(packed.dim() == 2);
      CHECK(packed.size(0) == m);
      CHECK(values(_cslt_decompress(packed, k)) == values(dense));
      // Two values and a byte of each four.
      const int64_t size = packed.element_size();
      CHECK(packed.size(1) * size == k / 2 * size + (k / 4 + size - 1) / size * size);
      const auto weight = sparse::to_sparse_semi_structured(dense.t().contiguous().t());
      CHECK(values(weight.to_dense()) == values(dense));
      CHECK(weight.rows() == m);
      CHECK(weight.columns() == k);
    }
  }
  // One value of a four, in each place, and none.
  Tensor few = zeros({16, 16});
  for (int64_t i = 0; i < 4; ++i) few.data_ptr<float>()[16 * i + 4 * i + i] = static_cast<float>(i + 1);
  few.data_ptr<float>()[16 * 15 + 13] = std::nanf("");
  const Tensor again = _cslt_decompress(_cslt_compress(few), 16);
  CHECK(equal(again.slice(0, 0, 15), few.slice(0, 0, 15)));
  CHECK(std::isnan(again.data_ptr<float>()[16 * 15 + 13]));
}

TEST_CASE("products with a compressed matrix are those of the dense one") {
  for (const ScalarType dtype : kDtypes) {
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{16, 16, 8}, {48, 64, 24}, {32, 272, 136}}) {
      CAPTURE(dtype);
      CAPTURE(n);
      const Tensor a = sparse::prune_semi_structured(uneven(m, k, dtype)), packed = _cslt_compress(a);
      const Tensor b = uneven(k, n, dtype, 3), turned = b.t().contiguous().t(), bias = uneven(1, m, dtype, 5).view(m);
      const Tensor spread = stack({b, b}, 2).select(2, 1), alpha = uneven(1, m, kFloat32, 9).view(m);
      const Tensor one = tensor({0.75}, kFloat32), product = product_by_definition(a, b, bias);
      for (const Tensor& x : {b, turned, spread}) {
        CHECK(is_rounded(_cslt_sparse_mm(packed, x), product_by_definition(a, b)));
        CHECK(is_rounded(_cslt_sparse_mm(packed, x, bias), product));
        const Tensor transposed = _cslt_sparse_mm(packed, x, bias, std::nullopt, std::nullopt, true);
        CHECK(transposed.is_contiguous());
        CHECK(is_rounded(transposed, product.t()));
        CHECK(is_rounded(_cslt_sparse_mm(packed, x, bias, alpha, dtype), product_by_definition(a, b, bias, alpha)));
        CHECK(is_rounded(_cslt_sparse_mm(packed, x, bias, one), product_by_definition(a, b, bias, one.expand(m))));
      }
      const Tensor long_bias = stack({bias, bias}, 1).select(1, 0);
      CHECK(is_rounded(_cslt_sparse_mm(packed, b, long_bias), product));
      CHECK(_cslt_sparse_mm(packed, b.slice(1, 0, 0)).sizes() == IntArrayRef({m, 0}));
    }
  }
}

TEST_CASE("mm and linear with a compressed matrix take any number of columns and rows") {
  for (const ScalarType dtype : kDtypes) {
    const Tensor a = sparse::prune_semi_structured(uneven(32, 48, dtype)), bias = uneven(1, 32, dtype, 5).view(32);
    const auto weight = sparse::to_sparse_semi_structured(a);
    for (const int64_t n : {0, 1, 7, 8, 9, 21}) {
      const Tensor x = uneven(n, 48, dtype, n);
      CHECK(is_rounded(sparse::mm(weight, x.t()), product_by_definition(a, x.t())));
      CHECK(is_rounded(sparse::linear(x, weight), product_by_definition(a, x.t()).t()));
      CHECK(is_rounded(linear(x, weight, bias), product_by_definition(a, x.t(), bias).t()));
    }
    const Tensor batch = uneven(30, 48, dtype, 2).view({2, 3, 5, 48}).transpose(0, 2);
    const Tensor expected = product_by_definition(a, batch.reshape({30, 48}).t(), bias).t();
    CHECK(is_rounded(sparse::linear(batch, weight, bias), expected.reshape({5, 3, 2, 32})));
    CHECK(
        is_rounded(sparse::linear(batch.select(0, 0).select(0, 0).select(0, 0), weight, bias), expected.select(0, 0)));
  }
}

TEST_CASE("derivatives of products with a compressed matrix") {
  const Tensor alpha = uneven(1, 16, kFloat32, 9).view(16);
  for (const auto& [k, n] : {std::array<int64_t, 2>{16, 8}, {32, 16}}) {
    const Tensor packed = _cslt_compress(sparse::prune_semi_structured(uneven(16, k, kFloat64)));
    for (const bool transpose : {false, true}) {
      for (const std::optional<Tensor>& scale : {std::optional<Tensor>(), std::optional<Tensor>(alpha)}) {
        check_gradients(
            [&, transpose = transpose](const Tensors& in) {
              return Tensors{_cslt_sparse_mm(packed, in[0], in[1], scale, std::nullopt, transpose)};
            },
            {leaf({k, n}), leaf({16}, 1)});
      }
    }
  }
  const auto weight = sparse::to_sparse_semi_structured(sparse::prune_semi_structured(uneven(16, 32, kFloat64)));
  check_gradients([&](const Tensors& in) { return Tensors{sparse::linear(in[0], weight, in[1])}; },
                  {leaf({3, 32}), leaf({16}, 1)});
  check_gradients([&](const Tensors& in) { return Tensors{sparse::mm(weight, in[0])}; }, {leaf({32, 3})});
}

TEST_CASE("gradients of 16-bit products are in 16 bits") {
  const Tensor a = sparse::prune_semi_structured(uneven(16, 32, kFloat16)), alpha = tensor({2.0}, kFloat32);
  const Tensor b = uneven(32, 8, kFloat16, 1).requires_grad_(), packed = _cslt_compress(a);
  const Tensor g = uneven(16, 8, kFloat16, 4);
  _cslt_sparse_mm(packed, b, std::nullopt, alpha).backward(g);
  CHECK(b.grad().scalar_type() == kFloat16);
  CHECK(is_rounded(b.grad(), product_by_definition(a.t(), g * 2)));
}

TEST_CASE("a compressed matrix has no gradient") {
  const Tensor dense = sparse::prune_semi_structured(uneven(16, 32, kFloat32)), b = uneven(32, 8, kFloat32);
  const Tensor packed = _cslt_compress(dense), leaf_packed = packed.clone().requires_grad_();
  CHECK_THROWS_AS(_cslt_compress(dense.clone().requires_grad_()), NotImplementedError);
  CHECK_THROWS_AS(_cslt_decompress(leaf_packed, 32), NotImplementedError);
  CHECK_THROWS_AS(_cslt_sparse_mm(leaf_packed, b), NotImplementedError);
  const Tensor alpha = tensor({2.0}, kFloat32).requires_grad_();
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, b, std::nullopt, alpha), NotImplementedError);
  // The way a layer's weight comes.
  CHECK_FALSE(sparse::to_sparse_semi_structured(dense.clone().requires_grad_()).packed().requires_grad());
  const NoGradGuard no_grad;
  CHECK(equal(_cslt_sparse_mm(leaf_packed, b), _cslt_sparse_mm(packed, b)));
}

TEST_CASE("what is no 2:4 matrix is refused") {
  const Tensor good = sparse::prune_semi_structured(uneven(32, 32, kFloat16));
  Tensor bad = good.clone();
  bad.slice(0, 17, 18).slice(1, 8, 12).fill_(1);
  CHECK_THROWS_WITH_AS(_cslt_compress(bad),
                       "_cslt_compress: the matrix is not 2:4 semi-structured: row 17 has more than two values in "
                       "columns 8 to 11; sparse::prune_semi_structured keeps two of each four",
                       ValueError);
  CHECK_THROWS_WITH_AS(sparse::to_sparse_semi_structured(zeros({24, 32})),
                       "_cslt_compress: the number of rows must be a multiple of 16, got 24", ValueError);
  CHECK_THROWS_WITH_AS(_cslt_compress(zeros({32, 24})),
                       "_cslt_compress: the number of columns must be a multiple of 16, got 24", ValueError);
  CHECK_THROWS_AS(_cslt_compress(zeros({16})), ValueError);
  CHECK_THROWS_AS(_cslt_compress(zeros({0, 16})), ValueError);
  CHECK_THROWS_AS(_cslt_compress(zeros({16, 16}, kInt32)), TypeError);
  CHECK_THROWS_AS(_cslt_compress(zeros({16, 16}, kComplex64)), TypeError);
  CHECK_THROWS_AS(_cslt_compress(zeros({16, 16}, kMeta)), NotImplementedError);
  CHECK_THROWS_AS(sparse::is_semi_structured(zeros({16, 18})), ValueError);
  CHECK_THROWS_AS(sparse::prune_semi_structured(zeros({2, 16, 16})), ValueError);
}

TEST_CASE("products that do not fit are refused") {
  const Tensor packed = _cslt_compress(sparse::prune_semi_structured(uneven(32, 64, kFloat16)));
  const Tensor b = uneven(64, 16, kFloat16);
  CHECK_THROWS_WITH_AS(_cslt_sparse_mm(packed, uneven(48, 16, kFloat16)),
                       "_cslt_sparse_mm: a (32, 48) matrix compressed on the CPU has shape (32, 30), got (32, 40)",
                       ValueError);
  // As if compressed on CUDA.
  CHECK_THROWS_AS(_cslt_sparse_mm(packed.slice(1, 0, 36).contiguous(), b), ValueError);
  CHECK_THROWS_AS(_cslt_decompress(packed, 128), ValueError);
  CHECK_THROWS_AS(_cslt_decompress(packed, 0), ValueError);
  CHECK_THROWS_AS(_cslt_decompress(packed, -16), ValueError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed.slice(0, 0, 24), b), ValueError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed.view(-1), b), ValueError);
  CHECK_THROWS_WITH_AS(_cslt_sparse_mm(packed, uneven(64, 12, kFloat16)),
                       "_cslt_sparse_mm: the number of columns of the dense matrix must be a multiple of 8, got 12",
                       ValueError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, uneven(60, 16, kFloat16)), ValueError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, b.view(-1)), ValueError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, b.to(kBFloat16)), TypeError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed.to(kInt16), b.to(kInt16)), TypeError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, b, uneven(1, 16, kFloat16).view(16)), ValueError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, b, zeros(32)), TypeError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, b, std::nullopt, zeros(32, kFloat16)), TypeError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, b, std::nullopt, zeros(16)), ValueError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, b, std::nullopt, std::nullopt, kFloat32), NotImplementedError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, b, std::nullopt, std::nullopt, std::nullopt, false, int64_t{1} << 40),
                  ValueError);
  const sparse::SparseSemiStructuredTensor weight(packed, 64);
  CHECK_THROWS_WITH_AS(sparse::linear(zeros({4, 32}, kFloat16), weight),
                       "linear: mat1 and mat2 shapes cannot be multiplied (4x32 and 64x32)", ValueError);
  CHECK_THROWS_AS(sparse::mm(weight, zeros({32, 4}, kFloat16)), ValueError);
  CHECK_THROWS_AS(sparse::linear(zeros({}, kFloat16), weight), ValueError);
}
