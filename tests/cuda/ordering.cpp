// Indexing, sorting, searching and counting on the CUDA backend against the CPU.
#include <cmath>

#include "tests/cuda/same_gradient.h"

using namespace rush;
using namespace rush::testing;

TEST_CASE("gather, scatter and indexing on a GPU" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : {kFloat32, kFloat64, kBFloat16, kInt8, kInt64, kComplex64}) {
    INFO(str(name(dtype)));
    const bool differentiable = is_floating_point(dtype);
    const Tensor x = numbers({50, 24}, dtype, -3, 3), src = numbers({90, 24}, dtype, -3, 3);
    const Tensor rows = (arange(90) * 31).remainder(50), each = (arange(90 * 24) * 17).remainder(50).view({90, 24});
    const auto on = [](const Tensor& index, const Tensors& t) { return index.to(t[0].device()); };
    check_on_both(
        {x}, [&](const Tensors& t) { return index_select(t[0], 0, on(rows, t)); }, 20, differentiable);
    check_on_both(
        {x}, [&](const Tensors& t) { return embedding(t[0], on(rows, t)); }, 20, differentiable);
    check_on_both(
        {x}, [&](const Tensors& t) { return gather(t[0], 0, on(each, t)); }, 20, differentiable);
    check_on_both(
        {x, src}, [&](const Tensors& t) { return index_add(t[0], 0, on(rows, t), t[1]); }, 20, differentiable);
    check_on_both(
        {x, src}, [&](const Tensors& t) { return scatter_add(t[0], 0, on(each, t), t[1]); }, 20, differentiable);
    check_on_both(
        {x, src}, [&](const Tensors& t) { return index_put(t[0], {on(rows, t)}, t[1], true); }, 20, differentiable);
    if (is_complex(dtype)) continue;
    for (const char* how : {"sum", "prod", "mean", "amax", "amin"}) {
      INFO(str(how));
      check_on_both(
          {x, src}, [&](const Tensors& t) { return scatter_reduce(t[0], 0, on(each, t), t[1], how); }, 200, false);
    }
  }
}

TEST_CASE("many values for one index are added in a fixed order" * doctest::skip(!cuda::is_available())) {
  const Tensor x = numbers({100000, 3}, kFloat32, -1, 1).to(kGpu), index = zeros({100000}, kInt64).to(kGpu);
  const Tensor first = index_add(zeros({2, 3}, x.options()), 0, index, x);
  CHECK(allclose(first.cpu()[0], x.cpu().to(kFloat64).sum(0).to(kFloat32), 1e-3, 1e-2));
  for (int i = 0; i < 3; ++i) CHECK(equal(index_add(zeros({2, 3}, x.options()), 0, index, x), first));
}

TEST_CASE("an index out of range is reported when the host waits" * doctest::skip(!cuda::is_available())) {
  const Tensor x = ones({4, 3}).to(kGpu), index = tensor({0, 9}).to(kInt64).to(kGpu);
  CHECK_THROWS_AS(index_select(x, 0, index).cpu(), IndexError);
  Tensor target = zeros({4, 3}).to(kGpu);
  index_add(target, 0, index, ones({2, 3}).to(kGpu));
  CHECK_THROWS_AS(target.cpu(), IndexError);
  CHECK(equal(x.cpu(), ones({4, 3})));
}

TEST_CASE("sorting and what follows from it" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : kOrdered) {
    Tensor x = numbers({6, 333, 4}, kFloat32, -50, 50).floor();
    if (dtype == kUInt8) x = x.abs();
    if (is_floating_point(dtype)) x[0][7][0].fill_(std::nan(""));
    x = x.to(dtype);
    const Tensor y = x.to(kGpu);
    for (int64_t d = 0; d < 3; ++d) {
      for (bool descending : {false, true}) {
        INFO(str(name(dtype), " ", d, " ", descending));
        const auto [values, order] = sort(y, d, descending);
        const auto [cpu_values, cpu_order] = sort(x, d, descending);
        check_same(values, cpu_values, 0);
        check_same(order, cpu_order, 0);
        check_same(std::get<0>(topk(y, 3, d, descending)), std::get<0>(topk(x, 3, d, descending)), 0);
      }
      INFO(str(name(dtype), " ", d));
      check_same(std::get<0>(kthvalue(y, 2, d)), std::get<0>(kthvalue(x, 2, d)), 0);
      check_same(std::get<0>(median(y, d)), std::get<0>(median(x, d)), 0);
      check_same(std::get<0>(nanmedian(y, d)), std::get<0>(nanmedian(x, d)), 0);
      check_same(std::get<0>(mode(y, d)), std::get<0>(mode(x, d)), 0);
    }
    const auto [distinct, inverse, counts] = _unique2(y, true, true, true);
    const auto [cpu_distinct, cpu_inverse, cpu_counts] = _unique2(x, true, true, true);
    check_same(distinct, cpu_distinct, 0);
    check_same(inverse, cpu_inverse, 0);
    check_same(counts, cpu_counts, 0);
    check_same(std::get<0>(unique_dim(y, 2)), std::get<0>(unique_dim(x, 2)), 0);
  }
}

TEST_CASE("among equal elements of short lines a GPU takes the CPU's" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : {kFloat32, kBFloat16, kUInt8, kInt64}) {
    for (int64_t length : {1, 2, 5, 10, 17, 100, 256}) {
      const Tensor x = numbers({7, length, 3}, kFloat32, 0, 4).floor().to(dtype), y = x.to(kGpu);
      for (int64_t k : {int64_t{1}, int64_t{3}, length / 3, length / 2 + 1, length}) {
        if (k < 1 || k > length) continue;
        INFO(str(name(dtype), " ", k, " of ", length));
        check_same(std::get<1>(kthvalue(y, k, 1)), std::get<1>(kthvalue(x, k, 1)), 0);
        for (bool largest : {false, true}) {
          check_same(std::get<1>(topk(y, k, 1, largest, false)), std::get<1>(topk(x, k, 1, largest, false)), 0);
          if (k > 16) continue;
          check_same(std::get<1>(topk(y, k, 1, largest)), std::get<1>(topk(x, k, 1, largest)), 0);
        }
      }
    }
  }
}

TEST_CASE("searching and counting" * doctest::skip(!cuda::is_available())) {
  const Tensor row = std::get<0>(sort(numbers({1001}, kFloat32, -1, 1))), x = numbers({77, 3}, kFloat32, -1.2, 1.2);
  check_same(searchsorted(row.to(kGpu), x.to(kGpu)), searchsorted(row, x), 0);
  check_same(isin((x * 5).floor().to(kGpu), tensor({-3.0, 2.0}).to(kFloat32).to(kGpu)),
             isin((x * 5).floor(), tensor({-3.0, 2.0}).to(kFloat32)), 0);
  check_same(histc(x.to(kGpu), 10, -1, 1), histc(x, 10, -1, 1), 0);
  const Tensor whole = (arange(5000) * 37).remainder(101), weight = numbers({5000}, kFloat64, 0, 1);
  check_same(bincount(whole.to(kGpu)), bincount(whole), 0);
  check_same(bincount(whole.to(kGpu), weight.to(kGpu)), bincount(whole, weight), 100);
}

TEST_CASE("linear algebra on a GPU" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : {kFloat32, kFloat64, kComplex64, kComplex128}) {
    INFO(str(name(dtype)));
    const double tolerance = 2000;
    const Tensor a = numbers({3, 6, 6}, dtype, -1, 1), b = numbers({3, 6, 2}, dtype, -1, 1),
                 wide = numbers({3, 4, 7}, dtype, -1, 1);
    const Tensor positive = a.matmul(a.transpose(-2, -1).conj()) + eye(6).to(dtype);
    const auto gpu = [](const Tensor& t) { return t.to(kGpu); };
    const auto same = [&](const Tensor& on_gpu, const Tensor& on_cpu) {
      check_same(on_gpu.contiguous(), on_cpu.contiguous(), tolerance);
    };
    same(linalg_det(gpu(a)), linalg_det(a));
    same(linalg_inv(gpu(positive)), linalg_inv(positive));
    same(linalg_solve(gpu(positive), gpu(b)), linalg_solve(positive, b));
    same(linalg_cholesky(gpu(positive)), linalg_cholesky(positive));
    same(linalg_solve_triangular(gpu(positive), gpu(b), true), linalg_solve_triangular(positive, b, true));
    same(std::get<0>(linalg_eigh(gpu(positive))), std::get<0>(linalg_eigh(positive)));
    for (const Tensor& m : {a, wide, wide.transpose(-2, -1).contiguous()}) {
      const auto [q, r] = linalg_qr(gpu(m), "reduced");
      same(q.matmul(r), m);
      const auto [u, s, vh] = linalg_svd(gpu(m), false);
      same(u.matmul(s.unsqueeze(-1).to(dtype) * vh), m);
      same(s, std::get<1>(linalg_svd(m, false)));
    }
    CHECK_THROWS_AS(linalg_inv(zeros({2, 2}, TensorOptions(dtype)).to(kGpu)), LinAlgError);
  }
}
