// Sums, products and reductions of sparse tensors against the dense ones, and their derivatives.
#include <cmath>

#include "core/threads/parallel.h"
#include "tests/fixtures.h"
#include "tests/ops/sparse/sparse_testing.h"

using namespace rush;
using namespace rush::testing;

namespace {

// gradcheck and gradgradcheck of a function of the values of a COO tensor with the entries of `pattern`, and `others`.
using OfSparse = std::function<Tensor(const Tensor& sparse, const Tensors& others)>;
void check_sparse_gradients(const Tensor& pattern, Layout layout, const Tensors& others, const OfSparse& fn) {
  const Tensor coo = pattern.to_sparse();
  const Tensor indices = coo._indices();
  Tensors inputs{leaf(coo._nnz(), 0.3)};
  inputs.insert(inputs.end(), others.begin(), others.end());
  check_gradients(
      [=](const Tensors& in) {
        const Tensor sparse = in_layout(sparse_coo_tensor(indices, in[0], pattern.sizes()), layout, 1);
        return Tensors{fn(sparse, Tensors(in.begin() + 1, in.end()))};
      },
      inputs);
}

// A layout as a type: what takes long is a test case for each.
template <Layout kLayout>
struct In {
  static constexpr Layout layout = kLayout;
};

}  // namespace

TYPE_TO_STRING_AS("COO", In<kSparse>);
TYPE_TO_STRING_AS("CSR", In<kSparseCsr>);
TYPE_TO_STRING_AS("CSC", In<kSparseCsc>);
TYPE_TO_STRING_AS("BSR", In<kSparseBsr>);
TYPE_TO_STRING_AS("BSC", In<kSparseBsc>);
#define RUSH_EACH_LAYOUT In<kSparse>, In<kSparseCsr>, In<kSparseCsc>, In<kSparseBsr>, In<kSparseBsc>

TEST_CASE("sums and differences of sparse and dense tensors") {
  for (const ScalarType dtype : {kFloat32, kFloat64, kComplex128, kInt64}) {
    const Tensor a = patterned(6, 8, dtype), b = patterned(6, 8, dtype, 5);
    for (const Layout layout : kAllLayouts) {
      CAPTURE(name(layout));
      const Tensor x = in_layout(a, layout), y = in_layout(b, layout);
      CHECK((x + y).layout() == layout);
      CHECK(close(x + y, a + b, 1e-6));
      CHECK(close(x.sub(y, 2), a.sub(b, 2), 1e-6));
      CHECK(close(x + zeros_like(x), a));
      CHECK((a + y).layout() == kStrided);
      CHECK(close(a.add(y, 3), a.add(b, 3), 1e-6));
      CHECK(close(x.sub(b, 3), a.sub(b, 3), 1e-6));
      Tensor dense = a.clone(), transposed = a.t().contiguous().t(), sparse = x.clone();
      dense.add_(y, 3);
      transposed.add_(y, 3);
      CHECK(close(dense, a.add(b, 3), 1e-6));
      CHECK(close(transposed, a.add(b, 3), 1e-6));
      sparse.sub_(y);
      CHECK(sparse.layout() == layout);
      CHECK(close(sparse, a - b, 1e-6));
      CHECK_THROWS_AS(sparse.add_(a), ValueError);
      CHECK_THROWS_AS(x + in_layout(b.t(), layout), ValueError);
      CHECK_THROWS_AS(x + b.t(), ValueError);
    }
    const Tensor rows = a.to_sparse(1), twice = with_duplicates(b.to(kFloat64).to_sparse());
    CHECK(close(rows + b.to_sparse(1), a + b, 1e-6));
    CHECK(close(a.clone().add_(rows), a + a, 1e-6));
    CHECK(close(a.to(kFloat64) + twice, a.to(kFloat64) + b.to(kFloat64)));
    CHECK_THROWS_AS(rows + a.to_sparse(), ValueError);
  }
  CHECK((patterned(4, 4, kInt64).to_sparse() + patterned(4, 4, kFloat32).to_sparse()).scalar_type() == kFloat32);
  CHECK((patterned(4, 4, kInt64) + patterned(4, 4, kFloat32).to_sparse()).scalar_type() == kFloat32);
  Tensor whole = patterned(4, 4, kInt64);
  CHECK_THROWS_AS(whole.add_(patterned(4, 4).to_sparse()), TypeError);
  CHECK(equal(whole, patterned(4, 4, kInt64)));
  const Tensor ordered = patterned(6, 8).to_sparse();
  CHECK((ordered + patterned(6, 8, kFloat64, 5).to_sparse()).is_coalesced());
}

TEST_CASE("products of sparse tensors with numbers, dense and sparse ones") {
  const Tensor a = patterned(6, 8), b = patterned(6, 8, kFloat64, 5), d = smooth({6, 8});
  for (const Layout layout : kAllLayouts) {
    CAPTURE(name(layout));
    const Tensor x = in_layout(a, layout), y = in_layout(b, layout);
    CHECK((x * 2.5).layout() == layout);
    CHECK(close(x * 2.5, a * 2.5));
    CHECK(close(tensor(2.5, kFloat64) * x, a * 2.5));
    CHECK(close(x / 4, a / 4));
    CHECK(close(-x, -a));
    CHECK((x * y).layout() == layout);
    CHECK(close(x * y, a * b));
    CHECK(close(x * d, a * d));
    CHECK(close(d * x, a * d));
    CHECK(close(x * d[0], a * d[0]));
    CHECK(close(x * zeros_like(y), zeros_like(a)));
    Tensor scaled = x.clone();
    scaled.mul_(3).div_(2);
    CHECK(close(scaled, a * 1.5));
    CHECK_THROWS_AS(x / y, ValueError);
    CHECK_THROWS_WITH_AS(d.clone().mul_(x), doctest::Contains("mul_: "), ValueError);
    CHECK_THROWS_AS(x * smooth({6, 7}), ValueError);
  }
  CHECK(close(with_duplicates(a.to_sparse()) * b.to_sparse(), a * b));
  CHECK(close(a.to_sparse(1) * b.to_sparse(1), a * b));
}

TEST_CASE("sparse by dense, by vector and by sparse") {
  for (const ScalarType dtype : {kFloat32, kFloat64, kComplex64, kComplex128}) {
    const double tolerance = tolerance_of(dtype);
    for (const auto& [n, k, m] :
         {std::array<int64_t, 3>{8, 12, 5}, {12, 8, 130}, {6, 2, 1}, {4, 0, 3}, {0, 4, 3}, {4, 6, 0}, {20, 30, 64}}) {
      const Tensor a = patterned(n, k, dtype), b = smooth({k, m}, dtype), v = smooth({k}, dtype, 2);
      const Tensor s = patterned(k, 10, dtype, 3), left = smooth({m, n}, dtype, 1);
      for (const Layout layout : kAllLayouts) {
        CAPTURE(name(layout));
        const Tensor x = in_layout(a, layout);
        CHECK(close(mm(x, b), mm(a, b), tolerance));
        CHECK(close(sparse::mm(x, b), mm(a, b), tolerance));
        CHECK(close(matmul(x, b.t().contiguous().t()), mm(a, b), tolerance));
        CHECK(close(mm(left, x), mm(left, a), tolerance));
        CHECK(close(mv(x, v), mv(a, v), tolerance));
        CHECK(close(matmul(x, v), mv(a, v), tolerance));
        CHECK(close(mm(x.t(), left.t()), mm(a.t(), left.t()), tolerance));
        const Tensor batch = smooth({2, 3, m, k}, dtype), rows = smooth({m, k}, dtype, 2);
        CHECK(close(matmul(x, batch.mT()), matmul(a, batch.mT()), tolerance));
        CHECK(close(matmul(batch, x.t()), matmul(batch, a.t()), tolerance));
        CHECK(close(matmul(batch.mT().contiguous().mT(), x.t()), matmul(batch, a.t()), tolerance));
        CHECK(close(linear(batch, x, smooth({n}, dtype)), linear(batch, a, smooth({n}, dtype)), tolerance));
        CHECK(close(linear(x, rows, smooth({m}, dtype)), linear(a, rows, smooth({m}, dtype)), tolerance));
        const Tensor product = mm(x, in_layout(s, layout));
        CHECK(product.layout() == (is_blocked(layout) ? kSparseCsr : layout));
        CHECK(close(product, mm(a, s), tolerance));
        const Tensor sum = smooth({n, m}, dtype, 4);
        CHECK(close(addmm(sum, x, b), addmm(sum, a, b), tolerance));
        CHECK(close(sparse::addmm(sum, x, b, 0.5, -2), addmm(sum, a, b, 0.5, -2), tolerance));
        CHECK(close(addmm(sum.sum(), x, b, 2, 3), addmm(sum.sum(), a, b, 2, 3), tolerance));
        CHECK(close(addmm(full({n, m}, std::nan(""), sum.options()), x, b, 0), mm(a, b), tolerance));
        CHECK(close(sum.clone().addmm_(x, b, 2, 3), addmm(sum, a, b, 2, 3), tolerance));
      }
      if (k > 0 && n > 0) {
        const Tensor csr = a.to_sparse_csr();
        const Tensor narrow =
            sparse_csr_tensor(csr.crow_indices().to(kInt32), csr.col_indices().to(kInt32), csr.values(), a.sizes());
        CHECK(close(mm(narrow, b), mm(a, b), tolerance));
        CHECK(close(mm(narrow, s.to_sparse_csr()), mm(a, s), tolerance));
        CHECK(close(mm(with_duplicates(a.to_sparse()), b), mm(a, b), tolerance));
      }
    }
  }
  for (const ScalarType dtype : {kHalf, kBFloat16}) {
    const Tensor a = patterned(8, 12, dtype), b = smooth({12, 70}, dtype);
    CHECK(close(mm(a.to_sparse_csr(), b).to(kFloat32), mm(a.to(kFloat32), b.to(kFloat32)), 0.03));
  }
}

TEST_CASE("bad factors of sparse products") {
  const Tensor a = patterned(4, 6).to_sparse_csr(), b = smooth({6, 3});
  CHECK_THROWS_AS(mm(a, smooth({5, 3})), ValueError);
  CHECK_THROWS_AS(mm(a, smooth({6})), ValueError);
  CHECK_THROWS_AS(mm(a, b.to(kFloat32)), TypeError);
  CHECK_THROWS_AS(mm(a.to(kInt64), b.to(kInt64)), TypeError);
  CHECK_THROWS_AS(mv(a, smooth({5})), ValueError);
  CHECK_THROWS_AS(mv(smooth({4, 6}), sparse_coo_tensor({6}, kFloat64)), ValueError);
  CHECK_THROWS_AS(addmm(smooth({4, 4}), a, b), ValueError);
  CHECK_THROWS_AS(addmm(smooth({4, 3}, kFloat32), a, b), TypeError);
  CHECK_THROWS_AS(mm(patterned(4, 6).to_sparse(1), b), ValueError);
  CHECK_THROWS_AS(mm(ones({2, 4, 6}, kFloat64).to_sparse(), b), ValueError);
  CHECK_THROWS_AS(sparse_sampled_addmm(patterned(4, 6).to_sparse(), smooth({4, 2}), smooth({2, 6})), ValueError);
  CHECK_THROWS_AS(sparse_sampled_addmm(a, smooth({4, 2}), smooth({2, 5})), ValueError);
  CHECK_THROWS_AS(sparse_sampled_addmm(a, smooth({4, 2}), smooth({3, 6})), ValueError);
}

TEST_CASE("products do not depend on the number of threads") {
  const Tensor a = patterned(700, 300, kFloat32).to_sparse_csr().cpu(), b = smooth({300, 96}, kFloat32).cpu();
  const Tensor c = patterned(300, 500, kFloat32).to_sparse_csr().cpu();
  const int before = get_num_threads();
  set_num_threads(1);
  const Tensor one = mm(a, b), sparse_one = mm(a, c);
  set_num_threads(4);
  CHECK(equal(mm(a, b), one));
  CHECK(equal(mm(a, c).values(), sparse_one.values()));
  set_num_threads(before);
}

TEST_CASE("sampled products") {
  for (const ScalarType dtype : {kFloat32, kFloat64, kComplex128}) {
    const Tensor dense = patterned(8, 12, dtype), x = smooth({8, 5}, dtype), y = smooth({5, 12}, dtype, 1);
    const Tensor csr = dense.to_sparse_csr(), where = dense.ne(0).to(dtype);
    const Tensor sampled = sparse::sampled_addmm(csr, x, y, 0.5, 2);
    CHECK(sampled.layout() == kSparseCsr);
    CHECK(close(sampled, (dense * 0.5 + mm(x, y) * 2) * where, tolerance_of(dtype)));
    CHECK(close(sparse_sampled_addmm(csr, x, y.t().contiguous().t(), 0), mm(x, y) * where, tolerance_of(dtype)));
    CHECK(sparse_sampled_addmm(zeros_like(csr), x, y)._nnz() == 0);
  }
}

TEST_CASE("sums of sparse tensors") {
  const Tensor cube = counting({3, 4, 2}) * patterned(3, 8).view({3, 4, 2});
  for (const Tensor& t : {cube.to_sparse(), cube.to_sparse(2), cube.to_sparse(1)}) {
    CHECK(close(t.sum(), cube.sum()));
    CHECK(close(sparse::sum(t), cube.sum()));
    const std::vector<std::vector<int64_t>> all{{0}, {1}, {2}, {-1, 0}, {0, 1}, {1, 2}, {0, 1, 2}};
    for (const auto& dims : all) {
      CHECK(close(sparse::sum(t, dims), cube.sum(dims)));
      CHECK(close(t.sum(dims, true), cube.sum(dims, true)));
    }
    CHECK(_sparse_sum(t, kFloat32).scalar_type() == kFloat32);
    CHECK_THROWS_AS(sparse::sum(t, 3), IndexError);
  }
  const Tensor matrix = patterned(6, 8);
  for (const Layout layout : kAllLayouts) {
    CAPTURE(name(layout));
    const Tensor t = in_layout(matrix, layout);
    CHECK(close(t.sum(), matrix.sum()));
    CHECK(close(t.sum(0), matrix.sum(0)));
    CHECK(close(t.sum(1), matrix.sum(1)));
  }
  CHECK(close(with_duplicates(matrix.to_sparse()).sum(1), matrix.sum(1)));
  CHECK(patterned(4, 4, kInt32).to_sparse().sum().scalar_type() == kInt64);
  CHECK(patterned(4, 4, kInt32).to_sparse().sum(0).scalar_type() == kInt64);
}

TEST_CASE("softmax over the entries") {
  const Tensor dense = patterned(6, 8), entries = dense.ne(0);
  const Tensor filled = dense.masked_fill(dense.eq(0), -INFINITY);
  for (const int64_t dim : {0, 1, -1}) {
    const Tensor expected = softmax(filled, dim).masked_fill(entries.logical_not(), 0);
    CHECK(close(sparse::softmax(dense.to_sparse(), dim), expected));
    CHECK(close(sparse::softmax(with_duplicates(dense.to_sparse()), dim), expected));
    CHECK(close(sparse::log_softmax(dense.to_sparse(), dim),
                log_softmax(filled, dim).masked_fill(entries.logical_not(), 0)));
  }
  const Tensor rows = dense.to_sparse(1);
  CHECK(close(sparse::softmax(rows, 1).values(), softmax(rows.values(), 1)));
  CHECK(close(sparse::softmax(rows, 0).values(), softmax(rows.values(), 0)));
  CHECK(sparse::softmax(rows, 0, kFloat32).scalar_type() == kFloat32);
  CHECK(sparse::softmax(sparse_coo_tensor({3, 4}, kFloat64), 1)._nnz() == 0);
  CHECK_THROWS_AS(sparse::softmax(dense.to_sparse(), 2), IndexError);
  CHECK_THROWS_AS(sparse::softmax(dense.to_sparse_csr(), 1), ValueError);
  CHECK_THROWS_AS(sparse::softmax(dense.to(kInt64).to_sparse(), 1), NotImplementedError);
}

TEST_CASE("numbers of PyTorch") {
  const auto fixtures = read_fixtures("ops/sparse/sparse.json");
  const auto read = [](const nlohmann::json& t) {
    const auto shape = t.at("shape").get<std::vector<int64_t>>();
    const auto data = t.at("data").get<std::vector<double>>();
    const Tensor flat = zeros(static_cast<int64_t>(data.size()), kFloat64);
    std::copy(data.begin(), data.end(), flat.data_ptr<double>());
    return flat.view(shape);
  };
  CHECK(fixtures.size() >= 3);
  for (const auto& c : fixtures) {
    const Tensor t =
        sparse_coo_tensor(read(c["indices"]).to(kInt64), read(c["values"]), c["size"].get<std::vector<int64_t>>());
    const Tensor sum = t.coalesce();
    CHECK(equal(sum.indices(), read(c["coalesced_indices"]).to(kInt64)));
    CHECK(close(sum.values(), read(c["coalesced_values"])));
    for (int64_t d = 0; d < t.dim(); ++d) {
      const std::string dim = std::to_string(d);
      CHECK(close(sparse::softmax(t, d), read(c["softmax" + dim])));
      CHECK(close(sparse::log_softmax(t, d), read(c["log_softmax" + dim])));
      CHECK(close(sparse::sum(t, d), read(c["sum" + dim])));
    }
    if (!c.contains("dense")) continue;
    const Tensor values = read(c["values"]).requires_grad_(), dense = read(c["dense"]).requires_grad_();
    const Tensor product = sparse::mm(sparse_coo_tensor(t._indices(), values, t.sizes()), dense);
    CHECK(close(product, read(c["product"])));
    product.backward(read(c["grad"]));
    CHECK(close(values.grad(), read(c["values_grad"])));
    CHECK(close(dense.grad(), read(c["dense_grad"])));
  }
}

// ---- derivatives ----

TEST_CASE("derivatives of making COO tensors, and of what their entries sum up to") {
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{4, 6}, {6, 4}}) {
    const Tensor repeated = with_duplicates(patterned(n, m).to_sparse())._indices();
    check_gradients(
        [&, n = n, m = m](const Tensors& in) {
          return Tensors{sparse_coo_tensor(repeated, in[0], {n, m}).to_dense()};
        },
        {leaf(repeated.size(1))});
    check_gradients(
        [&, n = n, m = m](const Tensors& in) {
          const Tensor t = sparse_coo_tensor(repeated, in[0], {n, m});
          return Tensors{t.sum().square(), t.sum(0), (t * 3).sum(1), t + t};
        },
        {leaf(repeated.size(1))});
    check_gradients(
        [&, n = n, m = m](const Tensors& in) {
          return Tensors{sparse_coo_tensor(repeated, in[0], {n, m}).coalesce().values().square()};
        },
        {leaf(repeated.size(1))});
    check_gradients([](const Tensors& in) { return Tensors{in[0].to_sparse(1).to_dense().square()}; },
                    {leaf({n, m}, 0.5)});
  }
  const Tensor unsorted = with_duplicates(patterned(4, 6).to_sparse()).requires_grad_();
  CHECK_THROWS_AS(unsorted._values().sum().backward(), Error);
  // The masked gradient is that of the entries, the other one that of all.
  const Tensor leaf_of_entries = patterned(4, 6).to_sparse().requires_grad_();
  leaf_of_entries.to_dense().sum().backward();
  CHECK(leaf_of_entries.grad().layout() == kSparse);
  CHECK(leaf_of_entries.grad()._nnz() == leaf_of_entries._nnz());
  const Tensor other = patterned(4, 6).to_sparse().requires_grad_();
  other.to_dense(std::nullopt, false).sum().backward();
  CHECK(equal(other.grad().to_dense(), ones({4, 6}, kFloat64)));
}

TEST_CASE_TEMPLATE("derivatives of making, taking apart and converting", Of, RUSH_EACH_LAYOUT) {
  constexpr Layout layout = Of::layout;
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{4, 6}, {6, 4}}) {
    const Tensor pattern = patterned(n, m);
    check_sparse_gradients(pattern, layout, {}, [](const Tensor& s, const Tensors&) { return s.to_dense(); });
    check_sparse_gradients(pattern, layout, {}, [](const Tensor& s, const Tensors&) {
      return (s.is_sparse() ? s.coalesce() : s)._values().square();
    });
    check_sparse_gradients(pattern, layout, {}, [](const Tensor& s, const Tensors&) { return s.t().clone(); });
    check_gradients([&](const Tensors& in) { return Tensors{in_layout(in[0], layout).to_dense().square()}; },
                    {leaf({n, m}, 0.5)});
    const Tensor made = in_layout(pattern, layout, 1);
    check_gradients([&](const Tensors& in) { return Tensors{in[0].square().sparse_mask(made)}; }, {leaf({n, m})});
    check_gradients([&](const Tensors& in) { return Tensors{in[0].to_sparse().sparse_mask(made)}; }, {leaf({n, m})});
    if (layout == kSparse) continue;
    check_gradients(
        [&](const Tensors& in) {
          const bool rows = compresses_rows(layout);
          return Tensors{sparse_compressed_tensor(rows ? made.crow_indices() : made.ccol_indices(),
                                                  rows ? made.col_indices() : made.row_indices(),
                                                  in[0].view(made.values().sizes()), made.sizes(),
                                                  TensorOptions().layout(layout))
                             .to_dense()
                             .square()};
        },
        {leaf(made._nnz())});
  }
}

TEST_CASE_TEMPLATE("derivatives of sums and products of elements", Of, RUSH_EACH_LAYOUT) {
  constexpr Layout layout = Of::layout;
  const Tensor pattern = patterned(4, 6), y = in_layout(patterned(4, 6, kFloat64, 5), layout, 1);
  check_sparse_gradients(pattern, layout, {leaf({4, 6})},
                         [](const Tensor& s, const Tensors& in) { return in[0].add(s, 3); });
  check_sparse_gradients(pattern, layout, {leaf({4, 6})},
                         [](const Tensor& s, const Tensors& in) { return s.sub(in[0], 3); });
  check_sparse_gradients(pattern, layout, {}, [&](const Tensor& s, const Tensors&) { return s.add(y, 2) * s; });
  for (const DimVector& sizes : {DimVector{4, 6}, {4, 1}, {6}, {}}) {
    check_sparse_gradients(pattern, layout, {leaf(sizes)},
                           [](const Tensor& s, const Tensors& in) { return s * in[0]; });
  }
  check_sparse_gradients(pattern, layout, {}, [&](const Tensor& s, const Tensors&) { return s * y * 3 / 2; });
  check_sparse_gradients(pattern, layout, {}, [](const Tensor& s, const Tensors&) { return s.sum().square(); });
  check_sparse_gradients(pattern, layout, {}, [](const Tensor& s, const Tensors&) { return s.sum(0); });
  check_sparse_gradients(pattern, layout, {}, [](const Tensor& s, const Tensors&) { return s.sum(1, true); });
  if (layout != kSparse) return;
  check_sparse_gradients(pattern, layout, {}, [](const Tensor& s, const Tensors&) { return sparse::softmax(s, 1); });
  check_sparse_gradients(pattern, layout, {},
                         [](const Tensor& s, const Tensors&) { return sparse::log_softmax(s, 0); });
}

TEST_CASE_TEMPLATE("derivatives of products", Of, RUSH_EACH_LAYOUT) {
  constexpr Layout layout = Of::layout;
  for (const auto& [n, k, m] : {std::array<int64_t, 3>{4, 6, 2}, {6, 3, 3}}) {
    const Tensor pattern = patterned(n, k), other = in_layout(patterned(k, 5, kFloat64, 3), layout, 1);
    check_sparse_gradients(pattern, layout, {leaf({k, m})},
                           [](const Tensor& x, const Tensors& in) { return sparse::mm(x, in[0]); });
    check_sparse_gradients(pattern, layout, {leaf({m, n})},
                           [](const Tensor& x, const Tensors& in) { return mm(in[0], x); });
    check_sparse_gradients(pattern, layout, {leaf({k})},
                           [](const Tensor& x, const Tensors& in) { return mv(x, in[0]); });
    check_sparse_gradients(pattern, layout, {leaf({2, k, m})},
                           [](const Tensor& x, const Tensors& in) { return matmul(x, in[0]); });
    check_sparse_gradients(pattern, layout, {leaf({m, k}), leaf({m}, 1)},
                           [](const Tensor& x, const Tensors& in) { return linear(x, in[0], in[1]); });
    check_sparse_gradients(pattern, layout, {leaf({2, k})},
                           [](const Tensor& x, const Tensors& in) { return linear(in[0], x); });
    check_sparse_gradients(pattern, layout, {leaf({n, m}), leaf({k, m}, 1)},
                           [](const Tensor& x, const Tensors& in) { return sparse::addmm(in[0], x, in[1], 0.5, 2); });
    check_sparse_gradients(pattern, layout, {}, [&](const Tensor& x, const Tensors&) { return mm(x, other); });
    if (layout != kSparseCsr) continue;
    check_sparse_gradients(pattern, layout, {leaf({n, m}), leaf({m, k}, 1)}, [](const Tensor& x, const Tensors& in) {
      return sparse_sampled_addmm(x, in[0], in[1], 0.5, 2);
    });
  }
}

TEST_CASE("the gradient of a sparse factor is as sparse as it is, and never dense on the way") {
  const Tensor a = patterned(4, 6).to_sparse_csr().requires_grad_();
  mm(a, smooth({6, 3})).sum().backward();
  CHECK(a.grad().layout() == kSparseCsr);
  CHECK(a.grad()._nnz() == a._nnz());
  const int64_t million = 1000000;
  const Tensor diagonal = arange(million, kInt64);
  const Tensor huge =
      sparse_coo_tensor(stack({diagonal, diagonal}), ones(million), {million, million}).requires_grad_();
  mm(huge, ones({million, 2})).sum().backward();
  CHECK(huge.grad()._nnz() == million);
  CHECK(huge.grad()._values().sum().item<double>() == 2e6);
}

TEST_CASE("derivatives of writing sparse tensors in place") {
  const Tensor at = patterned(4, 6).to_sparse()._indices();
  const int64_t nnz = at.size(1);
  check_gradients(
      [&](const Tensors& in) {
        const Tensor t = sparse_coo_tensor(at, in[0], {4, 6}) * 2;
        t.mul_(3).add_(sparse_coo_tensor(at, in[0].square(), {4, 6}), 2);
        Tensor dense = in[1].clone();
        dense.add_(t, 3);
        return Tensors{t.to_dense(), dense.square()};
      },
      {leaf(nnz, 0.4), leaf({4, 6}, 1)});
  // A product that saved its sparse operand has its value of before the write.
  const Tensor x = leaf(nnz, 0.4), t = sparse_coo_tensor(at, x, {4, 6}) * 1,
               y = sparse_coo_tensor(at, smooth(nnz), {4, 6});
  const Tensor before = t.detach().clone();
  Tensor written_to = y.clone() * 1;
  written_to.requires_grad_();
  Tensor product = written_to * 1;
  product.mul_(t);
  product.to_dense().sum().backward();
  CHECK(close(x.grad(), y.coalesce().values()));
  CHECK(close(t.detach(), before));
  CHECK(close(written_to.grad(), t.detach()));
}

TEST_CASE("complex derivatives are those of the dense product") {
  const Tensor dense = patterned(4, 6, kComplex128), b = smooth({6, 3}, kComplex128),
               g = smooth({4, 3}, kComplex128, 2);
  const Tensor x = (dense * Scalar(complex<double>(1, 2))).requires_grad_(), y = b.clone().requires_grad_();
  mm(x, y).backward(g);
  const Tensor xs = x.detach().to_sparse_csr().requires_grad_(), ys = b.clone().requires_grad_();
  mm(xs, ys).backward(g);
  CHECK(close(ys.grad(), y.grad()));
  CHECK(close(xs.grad(), x.grad() * dense.ne(0).to(kComplex128)));
}

TEST_CASE("gradients of sparse and dense kinds are added up") {
  const Tensor w = smooth({5, 2}).requires_grad_(), at = longs({1, 3, 1});
  const auto sparse_loss = [&] { return embedding(w, at, -1, false, true).square().sum(); };
  const auto dense_loss = [&] { return embedding(w, at, -1, false, false).square().sum(); };
  const auto gradient = [&](const std::function<Tensor()>& loss) {
    w.mutable_grad().reset();
    loss().backward();
    return w.grad();
  };
  const Tensor once = gradient(dense_loss);
  CHECK(gradient(sparse_loss).layout() == kSparse);
  CHECK(w.grad()._nnz() == 3);
  CHECK(close(w.grad(), once));
  sparse_loss().backward();  // sparse to sparse
  CHECK(w.grad().layout() == kSparse);
  CHECK(close(w.grad(), once * 2));
  dense_loss().backward();  // dense to sparse
  CHECK(w.grad().layout() == kStrided);
  CHECK(close(w.grad(), once * 3));
  sparse_loss().backward();  // sparse to dense
  CHECK(w.grad().layout() == kStrided);
  CHECK(close(w.grad(), once * 4));
  CHECK(close(gradient([&] { return sparse_loss() + dense_loss() + sparse_loss(); }), once * 3));
  CHECK(close(gradient([&] { return sparse_loss() + sparse_loss(); }), once * 2));
  CHECK(w.grad().layout() == kSparse);
  // What somebody else holds is not taken: the gradient's memory is its own.
  const Tensor out = embedding(w, at, -1, false, true);
  const Tensor seed = ones_like(out);
  w.mutable_grad().reset();
  out.backward(seed);
  w.grad().mul_(0);
  CHECK(close(seed, ones_like(out)));
}

#undef RUSH_EACH_LAYOUT
