#include "core/ops/linalg/einsum.h"

#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

bool same(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && (a.numel() == 0 || largest(a - b) < 1e-12);
}

TEST_CASE("einsum: what other operators say") {
  const Tensor m = leaf({3, 4}).detach(), n = leaf({4, 5}, 1).detach(), v = leaf({3}, 2).detach();
  const Tensor b = leaf({2, 3, 4}, 3).detach(), c = leaf({2, 4, 5}, 4).detach(), s = leaf({3, 3}, 5).detach();
  CHECK(same(einsum("ij,jk->ik", {m, n}), m.mm(n)));
  CHECK(same(einsum("ij,jk", {m, n}), m.mm(n)));
  const Tensor flags = tensor({true, false});  // which matrix products do not take
  CHECK(equal(einsum("i,i->i", {flags, flags}), flags));
  CHECK(equal(einsum("i,j->ji", {flags, flags}), tensor({true, false, false, false}).view({2, 2})));
  CHECK(same(einsum("ij , jk -> ki", {m, n}), m.mm(n).t()));
  CHECK(same(einsum("bij,bjk->bik", {b, c}), b.bmm(c)));
  CHECK(same(einsum("...ij,...jk", {b, c}), b.bmm(c)));
  CHECK(same(einsum("...ij,jk->...ik", {b, n}), b.matmul(n)));
  CHECK(same(einsum("ij->ji", {m}), m.t()));
  CHECK(same(einsum("ba", {m}), m.t()));
  CHECK(same(einsum("ij->", {m}), m.sum()));
  CHECK(same(einsum("ij->j", {m}), m.sum(0)));
  CHECK(same(einsum("ii->i", {s}), s.diagonal()));
  CHECK(same(einsum("ii", {s}), s.diagonal().sum()));
  CHECK(same(einsum("i,i->i", {v, v}), v * v));
  CHECK(same(einsum("i,i", {v, v}), v.dot(v)));
  CHECK(same(einsum("i,j->ij", {v, m.select(0, 0)}), v.outer(m.select(0, 0))));
  CHECK(same(einsum("ij,j,i->", {m, n.select(1, 0), v}), v.dot(m.mv(n.select(1, 0)))));
  CHECK(same(einsum("ij,jk->", {m, n}), m.mm(n).sum()));
  CHECK(same(einsum("bij,kj->bik", {b, m}), b.matmul(m.t())));
  CHECK(same(einsum("i...->...", {b}), b.sum(0)));
  CHECK(same(einsum(",ij->ij", {tensor(2.0, kFloat64), m}), m * 2));
  CHECK(same(einsum("aBc->Bac", {b}), b.transpose(0, 1)));
  // Capital letters come first in a result that is not spelled out.
  CHECK(einsum("bA", {m}).sizes() == IntArrayRef({4, 3}));
  // "..." that the result lacks is summed; letters of size one broadcast.
  CHECK(same(einsum("...ik, ...j -> ij", {b, n.select(0, 0)}), b.sum(IntArrayRef({0, 2})).outer(n.select(0, 0))));
  CHECK(same(einsum("ij,kj->ik", {m, n.select(1, 0).view({4, 1}).t().narrow(1, 0, 1)}),
             m.sum(1, true) * n.select(1, 0).select(0, 0)));
  CHECK(same(einsum("i,i->", {v, ones({1}, kFloat64) * 2}), v.sum() * 2));
  CHECK(same(einsum("iij->ji", {leaf({3, 3, 2}).detach()}), leaf({3, 3, 2}).detach().diagonal(0, 0, 1)));
  // What is summed before it is multiplied is int64.
  const Tensor few = m.to(kInt8), row = v.to(kInt8);
  CHECK(same(einsum("ik,j->ij", {few, row}), few.sum(1).outer(row.to(kInt64))));
  CHECK_THROWS_AS(einsum("ij,jk->ik", {m, n.to(kFloat32)}), TypeError);
  CHECK(einsum("ij,jk->ik", {zeros({0, 3}), zeros({3, 2})}).sizes() == IntArrayRef({0, 2}));
}

TEST_CASE("einsum: derivatives") {
  const auto fn = [](const char* equation) {
    return [equation](const Tensors& t) { return Tensors{einsum(equation, t)}; };
  };
  check_gradients(fn("ij,jk->ik"), {leaf({2, 3}), leaf({3, 4}, 1)});
  check_gradients(fn("bij,bjk,k->bi"), {leaf({2, 2, 3}), leaf({2, 3, 2}, 1), leaf({2}, 2)});
  check_gradients(fn("iij->j"), {leaf({3, 3, 2})});
  check_gradients(fn("...i,...i->..."), {leaf({2, 3}), leaf({3}, 1)});
}

TEST_CASE("einsum: bad input") {
  const Tensor m = ones({2, 3});
  CHECK_THROWS_AS(einsum("ij,jk", {m}), ValueError);
  CHECK_THROWS_AS(einsum("ijk", {m}), ValueError);
  CHECK_THROWS_AS(einsum("ij,jk", {m, m}), ValueError);
  CHECK_THROWS_AS(einsum("ii", {m}), ValueError);
  CHECK_THROWS_AS(einsum("ij->ii", {m}), ValueError);
  CHECK_THROWS_AS(einsum("ij->k", {m}), ValueError);
  CHECK_THROWS_AS(einsum("i1", {m}), ValueError);
  CHECK_THROWS_AS(einsum("i.j", {m}), ValueError);
  CHECK_THROWS_AS(einsum("", TensorList()), ValueError);
  CHECK_THROWS_AS(einsum("ij", {m}, {0, 1}), ValueError);
}

}  // namespace
