// Sparse tensors: how they are made, taken apart, converted and copied, and what bad input does.
#include "tests/ops/sparse/sparse_testing.h"

#include <string>

#include "core/dispatch/call.h"
#include "core/threads/parallel.h"

using namespace rush;
using namespace rush::testing;

namespace {

// The message of the E that `call` throws, which must be of one line and begin with the operator's name.
template <class E, class Call>
std::string message_of(const char* op, const Call& call) {
  try {
    call();
  } catch (const E& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    CHECK_MESSAGE(text.find(op) != std::string::npos, text);
    return text;
  } catch (const std::exception& error) {
    FAIL_CHECK("another error: " << error.what());
    return "";
  }
  FAIL_CHECK("no error");
  return "";
}

bool is_listed(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a COO tensor adds up the entries of one place") {
  const Tensor indices = longs({0, 2, 0, 1, 0, 1}).view({2, 3});  // (0, 1), (2, 0), (0, 1)
  const Tensor t = sparse_coo_tensor(indices, tensor({1.0, 2.0, 4.0}, kFloat64), {3, 2});
  CHECK(t.layout() == kSparse);
  CHECK(t.is_sparse());
  CHECK(t.impl()->keys().has(keys_on(t.device().type, kSparse)));
  CHECK_FALSE(t.has_storage());
  CHECK(t._nnz() == 3);
  CHECK(t.sparse_dim() == 2);
  CHECK(t.dense_dim() == 0);
  CHECK_FALSE(t.is_coalesced());
  CHECK(values(t.to_dense()) == Doubles{0, 5, 0, 0, 2, 0});
  const Tensor sum = t.coalesce();
  CHECK(sum.is_coalesced());
  CHECK(sum._nnz() == 2);
  CHECK(values(sum.indices()) == Doubles{0, 2, 1, 0});
  CHECK(values(sum.values()) == Doubles{5, 2});
  CHECK(sum.coalesce().is_same(sum));
  CHECK(t._nnz() == 3);
}

TEST_CASE("the size is the smallest where none is given, and values take dtype and shape") {
  const Tensor t = sparse_coo_tensor(longs({4, 1}).view({1, 2}), tensor({{1.0, 2.0}, {3.0, 4.0}}, kFloat64), kFloat32);
  CHECK(t.sizes() == IntArrayRef({5, 2}));
  CHECK(t.scalar_type() == kFloat32);
  CHECK(t.sparse_dim() == 1);
  CHECK(t.dense_dim() == 1);
  CHECK(values(t.to_dense()) == Doubles{0, 0, 3, 4, 0, 0, 0, 0, 1, 2});
  const Tensor none = sparse_coo_tensor({3, 0, 2}, kFloat64);
  CHECK(none._nnz() == 0);
  CHECK(none.to_dense().sizes() == IntArrayRef({3, 0, 2}));
  const Tensor number = sparse_coo_tensor(zeros({0, 3}, kInt64), tensor({1.0, 2.0, 3.0}, kFloat64), IntArrayRef());
  CHECK(number.dim() == 0);
  CHECK(number.to_dense().item<double>() == 6);
  CHECK(number.coalesce().values().item<double>() == 6);
}

TEST_CASE("coalescing adds in the order of the entries, whatever the number of threads") {
  const int64_t n = 20000;
  const Tensor rows = (arange(n, kInt64) * 7919).remainder(37), values = smooth({n, 3}, kFloat32);
  const Tensor t = sparse_coo_tensor(rows.unsqueeze(0), values, {40, 3});
  const int before = get_num_threads();
  set_num_threads(1);
  const Tensor one = t.coalesce();
  set_num_threads(3);
  const Tensor three = t.coalesce();
  set_num_threads(before);
  CHECK(equal(one.values(), three.values()));
  CHECK(one._nnz() == 37);
  CHECK(close(one.to_dense(kFloat64), zeros({40, 3}, kFloat64).index_add(0, rows, values.to(kFloat64)), 1e-3));
}

TEST_CASE("every layout goes into every other and back") {
  for (const ScalarType dtype : {kFloat32, kFloat64, kComplex64, kInt64}) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{8, 12}, {12, 6}, {6, 0}, {0, 6}, {2, 2}}) {
      const Tensor dense = patterned(rows, columns, dtype);
      for (const Layout from : kAllLayouts) {
        const Tensor sparse = in_layout(dense, from);
        CAPTURE(name(from));
        CHECK(sparse.layout() == from);
        CHECK(equal(sparse.to_dense(), dense));
        for (const Layout to : kAllLayouts) {
          const Tensor converted = in_layout(sparse, to, from == kSparseBsr ? 1 : 2);
          CAPTURE(name(to));
          CHECK(converted.layout() == to);
          CHECK(equal(converted.to_dense(), dense));
        }
      }
      CHECK(equal(with_duplicates(dense.to(kFloat64).to_sparse()).to_sparse_csr().to_dense(), dense.to(kFloat64)));
      CHECK(equal(dense.to_sparse(1).to_dense(), dense));
    }
  }
}

TEST_CASE("a blocksize is for the layouts that have blocks") {
  const Tensor dense = patterned(4, 6);
  CHECK_THROWS_WITH_AS(dense.to_sparse(kSparseBsr), doctest::Contains("give a blocksize"), ValueError);
  CHECK_THROWS_WITH_AS(dense.to_sparse(kSparseCsr, {2, 2}), doctest::Contains("leave out the blocksize"), ValueError);
}

TEST_CASE("compressed tensors have sorted parts") {
  const Tensor dense = tensor({{0.0, 1.0, 2.0}, {0.0, 0.0, 0.0}, {3.0, 0.0, 4.0}}, kFloat64);
  const Tensor csr = dense.to_sparse_csr(), csc = dense.to_sparse_csc();
  CHECK(csr.is_sparse_csr());
  CHECK(csr._nnz() == 4);
  CHECK(values(csr.crow_indices()) == Doubles{0, 2, 2, 4});
  CHECK(values(csr.col_indices()) == Doubles{1, 2, 0, 2});
  CHECK(values(csr.values()) == Doubles{1, 2, 3, 4});
  CHECK(values(csc.ccol_indices()) == Doubles{0, 1, 2, 4});
  CHECK(values(csc.row_indices()) == Doubles{2, 0, 0, 2});
  CHECK(values(csc.values()) == Doubles{3, 1, 2, 4});
  const Tensor bsr = counting({2, 4}).to_sparse_bsr({1, 2});
  CHECK(values(bsr.crow_indices()) == Doubles{0, 2, 4});
  CHECK(bsr.values().sizes() == IntArrayRef({4, 1, 2}));
  CHECK(values(bsr.values()) == Doubles{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK_THROWS_AS(csr.ccol_indices(), ValueError);
  CHECK_THROWS_AS(csc.crow_indices(), ValueError);
}

TEST_CASE("compressed tensors are made of their parts, with indices of either width") {
  for (const ScalarType index : {kInt32, kInt64}) {
    const Tensor crow = longs({0, 2, 2, 4}, index), col = longs({1, 2, 0, 2}, index);
    const Tensor v = tensor({1.0, 2.0, 3.0, 4.0}, kFloat64);
    const Tensor csr = sparse_csr_tensor(crow, col, v, {3, 3});
    CHECK(csr.col_indices().scalar_type() == index);
    CHECK(values(csr.to_dense()) == Doubles{0, 1, 2, 0, 0, 0, 3, 0, 4});
    CHECK(csr.to_sparse_csc().row_indices().scalar_type() == index);
    CHECK(equal(csr.to_sparse_csc().to_dense(), csr.to_dense()));
    CHECK(equal(sparse_csc_tensor(crow, col, v).to_dense(), csr.to_dense().t()));
    CHECK(sparse_csr_tensor(crow, col, v).sizes() == IntArrayRef({3, 3}));
    const Tensor blocks = counting({4, 2, 1});
    const Tensor bsr = sparse_bsr_tensor(crow, col, blocks, {6, 3});
    CHECK(equal(bsr.to_dense(), bsr.to_sparse().to_dense()));
    CHECK(values(bsr.to_dense().select(1, 1)) == Doubles{0, 1, 0, 0, 0, 0});
    CHECK(equal(sparse_bsc_tensor(crow, col, blocks.transpose(1, 2), {3, 6}).to_dense(), bsr.to_dense().t()));
    CHECK(equal(sparse_compressed_tensor(crow, col, v, {3, 3}, TensorOptions().layout(kSparseCsr)).to_dense(),
                csr.to_dense()));
  }
}

TEST_CASE("conversions of indices") {
  CHECK(values(ops::_convert_indices_from_coo_to_csr(longs({0, 0, 2, 3}), 5, false)) == Doubles{0, 2, 2, 3, 4, 4});
  const Tensor coo = ops::_convert_indices_from_csr_to_coo(longs({0, 2, 2, 3}), longs({1, 4, 0}), true, false);
  CHECK(coo.scalar_type() == kInt32);
  CHECK(values(coo) == Doubles{0, 0, 2, 1, 4, 0});
  CHECK_THROWS_AS(ops::_convert_indices_from_csr_to_coo(longs({0, 3, 1, 3}), longs({1, 4, 0}), true, false),
                  ValueError);
}

TEST_CASE("transposed and permuted") {
  const Tensor dense = patterned(6, 8);
  for (const Layout layout : kAllLayouts) {
    CAPTURE(name(layout));
    const Tensor turned = in_layout(dense, layout).t();
    CHECK(turned.sizes() == IntArrayRef({8, 6}));
    CHECK(equal(turned.to_dense(), dense.t()));
    CHECK(equal(turned.transpose(-1, 0).to_dense(), dense));
  }
  CHECK(in_layout(dense, kSparseCsr).t().layout() == kSparseCsc);
  const Tensor cube = counting({2, 3, 4}) * patterned(2, 12).view({2, 3, 4});
  CHECK(equal(cube.to_sparse().permute({2, 0, 1}).to_dense(), cube.permute({2, 0, 1})));
  CHECK(equal(cube.to_sparse(1).transpose(1, 2).to_dense(), cube.transpose(1, 2)));
  CHECK_THROWS_AS(cube.to_sparse(1).transpose(0, 1), ValueError);
}

TEST_CASE("sparse_mask and values at indices") {
  const Tensor dense = smooth({6, 8}), pattern = patterned(6, 8);
  const Tensor expected = dense * pattern.ne(0).to(kFloat64);
  for (const Layout layout : kAllLayouts) {
    CAPTURE(name(layout));
    const Tensor mask = in_layout(pattern, layout, 1), masked = dense.sparse_mask(mask);
    CHECK(masked.layout() == layout);
    CHECK(masked._nnz() == mask._nnz());
    CHECK(equal(masked.to_dense(), expected));
    const Tensor other = in_layout(patterned(6, 8, kFloat64, 4), layout, 1);
    CHECK(equal(other.sparse_mask(mask).to_dense(), other.to_dense() * pattern.ne(0).to(kFloat64)));
  }
  CHECK_THROWS_AS(dense.sparse_mask(pattern), ValueError);
  CHECK_THROWS_AS(dense.sparse_mask(pattern.t().to_sparse()), ValueError);
}

TEST_CASE("copies have their own parts, and dtype and device are converted") {
  for (const Layout layout : kAllLayouts) {
    CAPTURE(name(layout));
    const Tensor t = in_layout(patterned(6, 8), layout);
    const Tensor copy = t.clone(), alias = t.detach();
    CHECK(alias._values().is_alias_of(t._values()));
    CHECK_FALSE(copy._values().is_alias_of(t._values()));
    CHECK(equal(copy.to_dense(), t.to_dense()));
    CHECK(t.to(kFloat32).layout() == layout);
    CHECK(equal(t.to(kFloat32).to_dense(), t.to_dense().to(kFloat32)));
    CHECK(equal(t.cpu().to_dense(), t.to_dense().cpu()));
    CHECK(equal(t.to_dense(kFloat32), t.to_dense().to(kFloat32)));
    const Tensor nothing = zeros_like(t);
    CHECK(nothing.layout() == layout);
    CHECK(nothing._nnz() == 0);
    CHECK(equal(nothing.to_dense(), zeros({6, 8}, kFloat64)));
    nothing.copy_(t);
    CHECK(equal(nothing.to_dense(), t.to_dense()));
    const int64_t version = nothing._version();
    nothing.zero_();
    CHECK(nothing._version() > version);
    CHECK(nothing._nnz() == 0);
    CHECK(t._nnz() > 0);
    if (!is_blocked(layout)) CHECK(zeros({6, 8}, t.options())._nnz() == 0);
  }
}

TEST_CASE("bad parts of COO tensors") {
  const Tensor v = ones({2}, kFloat64);
  const auto coo = [&](const Tensor& indices, const Tensor& values, std::initializer_list<int64_t> size) {
    return [=, sizes = std::vector<int64_t>(size)] { return sparse_coo_tensor(indices, values, sizes); };
  };
  constexpr const char* op = "sparse_coo_tensor";
  CHECK(is_listed(message_of<IndexError>(op, coo(longs({0, 3}).view({1, 2}), v, {3})), "index 3"));
  CHECK(is_listed(message_of<IndexError>(op, coo(longs({0, -1}).view({1, 2}), v, {3})), "negative"));
  CHECK(is_listed(message_of<IndexError>(op, coo(longs({0, 1, 5, 0}).view({2, 2}), v, {3, 5})), "dimension 1"));
  message_of<ValueError>(op, coo(longs({0, 1}), v, {3}));
  message_of<ValueError>(op, coo(longs({0, 1, 2}).view({1, 3}), v, {3}));
  message_of<ValueError>(op, coo(longs({0, 1}).view({1, 2}), v, {3, 4}));
  message_of<ValueError>(op, coo(longs({0, 1}).view({1, 2}), ones({2, 3}, kFloat64), {3, 4}));
  message_of<ValueError>(op, coo(longs({0, 1}).view({1, 2}), v, {-3}));
  message_of<TypeError>(op, coo(ones({1, 2}, kFloat64), v, {3}));
  message_of<ValueError>(op, [&] { return sparse_coo_tensor(longs({1, 0}).view({1, 2}), v, {3}, {}, true); });
  message_of<ValueError>(op, [&] { return sparse_coo_tensor(longs({1, 1}).view({1, 2}), v, {3}, {}, true); });
  message_of<ValueError>(op, [&] { return sparse_coo_tensor(v.to_sparse(), v, {3}); });
  message_of<ValueError>(op, [&] {
    return sparse_coo_tensor(longs({0, 1}).view({1, 2}), v, {3}, TensorOptions().layout(kSparseCsr));
  });
  CHECK_THROWS_AS(sparse_coo_tensor(longs({0, 1}).view({1, 2}), empty({2}, kMeta), {3}), ValueError);
  CHECK_THROWS_AS(sparse_coo_tensor(Tensor(), v, {3}), Error);
  CHECK_THROWS_AS(sparse_coo_tensor({int64_t{1} << 40, int64_t{1} << 40}, kFloat64), ValueError);
}

TEST_CASE("bad parts of compressed tensors") {
  const Tensor crow = longs({0, 2, 2, 4}), col = longs({1, 2, 0, 2}), v = ones({4}, kFloat64);
  const auto csr = [](const Tensor& c, const Tensor& p, const Tensor& values, std::initializer_list<int64_t> size) {
    return [=, sizes = std::vector<int64_t>(size)] { return sparse_csr_tensor(c, p, values, sizes); };
  };
  constexpr const char* op = "sparse_csr_tensor";
  CHECK(is_listed(message_of<ValueError>(op, csr(longs({0, 3, 2, 4}), col, v, {3, 3})), "never fall"));
  CHECK(is_listed(message_of<ValueError>(op, csr(longs({1, 2, 2, 4}), col, v, {3, 3})), "from 1 to 4"));
  CHECK(is_listed(message_of<ValueError>(op, csr(longs({0, 2, 2, 3}), col, v, {3, 3})), "from 0 to 3"));
  CHECK(is_listed(message_of<ValueError>(op, csr(crow, longs({2, 1, 0, 2}), v, {3, 3})), "ascending order"));
  CHECK(is_listed(message_of<ValueError>(op, csr(crow, longs({1, 1, 0, 2}), v, {3, 3})), "ascending order"));
  CHECK(is_listed(message_of<IndexError>(op, csr(crow, longs({1, 3, 0, 2}), v, {3, 3})), "index 3"));
  CHECK(is_listed(message_of<IndexError>(op, csr(crow, longs({-1, 2, 0, 2}), v, {3, 3})), "negative"));
  message_of<ValueError>(op, csr(crow, col, ones({3}, kFloat64), {3, 3}));
  message_of<ValueError>(op, csr(crow, col, v, {4, 3}));
  message_of<ValueError>(op, csr(crow, col, v, {3, 3, 1}));
  message_of<ValueError>(op, csr(crow, col, ones({4, 2, 2}, kFloat64), {3, 3}));
  message_of<ValueError>(op, csr(longs({}), col, v, {3, 3}));
  message_of<TypeError>(op, csr(crow, col.to(kInt32), v, {3, 3}));
  message_of<TypeError>(op, csr(crow.to(kFloat64), col.to(kFloat64), v, {3, 3}));
  message_of<IndexError>("sparse_csc_tensor", [&] { return sparse_csc_tensor(crow, longs({1, 3, 0, 2}), v, {3, 3}); });
  message_of<ValueError>("sparse_bsr_tensor", [&] {
    return sparse_bsr_tensor(crow, col, ones({4, 2, 2}, kFloat64), {6, 7});
  });
  message_of<ValueError>("sparse_bsr_tensor", [&] {
    return sparse_bsr_tensor(crow, col, ones({4, 0, 2}, kFloat64), {0, 6});
  });
  message_of<ValueError>("sparse_compressed_tensor", [&] {
    return sparse_compressed_tensor(crow, col, v, {3, 3}, TensorOptions());
  });
  message_of<ValueError>("to_sparse", [&] { return patterned(6, 8).to_sparse_bsr({4, 2}); });
  message_of<ValueError>("to_sparse", [&] { return patterned(6, 8).to_sparse_bsr({0, 2}); });
  message_of<ValueError>("to_sparse", [&] { return ones({2, 2, 2}).to_sparse_csr(); });
}

TEST_CASE("operators without a sparse kernel say so, alone and beside dense tensors") {
  const Tensor dense = patterned(4, 6);
  for (const Layout layout : kAllLayouts) {
    const Tensor sparse = in_layout(dense, layout);
    CAPTURE(name(layout));
    CHECK(is_listed(message_of<NotImplementedError>("aten::exp", [&] { return sparse.exp(); }), "sparse"));
    message_of<NotImplementedError>("aten::atan2", [&] { return dense.atan2(sparse); });
    message_of<NotImplementedError>("aten::maximum", [&] { return maximum(sparse, dense); });
    message_of<NotImplementedError>("aten::cat", [&] { return cat({dense, sparse}); });
    message_of<NotImplementedError>("aten::view", [&] { return sparse.view({-1}); });
    message_of<NotImplementedError>("data_ptr", [&] { return sparse.data_ptr(); });
    message_of<NotImplementedError>("stride", [&] { return sparse.stride(0); });
    CHECK_THROWS_AS(dense.index_put_({indexing::Slice()}, sparse), Error);
    CHECK_THROWS_AS(sparse.contiguous().data_ptr(), NotImplementedError);
    CHECK_THROWS_AS(sparse.select(0, 1), NotImplementedError);
    CHECK_THROWS_AS(sparse[1], NotImplementedError);
    CHECK_THROWS_AS(sparse.item(), Error);
    CHECK_THROWS_AS(sparse.to(kMeta), ValueError);
    const Tensor recorded = in_layout(dense, layout).requires_grad_();
    CHECK_THROWS_AS(recorded.exp(), NotImplementedError);
    CHECK_THROWS_AS(recorded.reshape({-1}), NotImplementedError);
    CHECK_THROWS_AS(recorded.flatten(), NotImplementedError);
    CHECK_THROWS_AS(dense.clone().copy_(sparse), ValueError);
  }
  // An operator of sparse tensors alone is none of dense ones.
  message_of<NotImplementedError>("aten::_nnz", [&] { return dense._nnz(); });
  CHECK_THROWS_AS(dense.coalesce(), NotImplementedError);
  CHECK_THROWS_AS(dense._indices(), NotImplementedError);
}

TEST_CASE("a tensor is set to another of its layout only") {
  const Tensor a = patterned(4, 6).to_sparse(), b = patterned(6, 4).to_sparse();
  a.set_data(b);
  CHECK(equal(a.to_dense(), b.to_dense()));
  CHECK_THROWS_AS(a.set_data(b.to_dense()), ValueError);
  CHECK_THROWS_AS(a.set_data(b.to_sparse_csr()), ValueError);
}

TEST_CASE("sparse operators through the door by name") {
  const Tensor t = patterned(4, 6).to_sparse();
  const Stack results = call_operator("aten::_to_dense", {t});
  CHECK(equal(results[0].as<Tensor>(), patterned(4, 6)));
  CHECK(call_operator("aten::_nnz", {t})[0].as<int64_t>() == t._nnz());
  CHECK(call_operator("aten::is_coalesced", {t})[0].as<bool>());
}
