// Sparse products through cuSPARSE against the CPU's, and what is left behind of them. The tests of operators in
// tests/ops/sparse*.cpp run on the GPU as well.
#include <doctest/doctest.h>

#include "backends/cuda/cuda.h"
#include "backends/cuda/sparse/descriptors.h"
#include "examples/gcn/gcn.h"
#include "rushlight.h"
#include "tests/cuda/gpu.h"
#include "tests/ops/sparse/sparse_testing.h"

using namespace rush;
using namespace rush::testing;

namespace {

// The same matrix with int32 indices.
Tensor narrowed(const Tensor& csr) {
  return sparse_csr_tensor(csr.crow_indices().to(kInt32), csr.col_indices().to(kInt32), csr.values(), csr.sizes());
}

// `columns` entries in each row of an (n, n) matrix, at random places.
Tensor random_csr(int64_t n, int64_t entries) {
  const TensorOptions ints = TensorOptions(kInt64).device(kGpu);
  // A column for each stretch of n / entries columns: they ascend, and none comes twice.
  const int64_t stretch = n / entries;
  const Tensor col = randint(0, stretch, {n, entries}, ints) + arange(entries, ints) * stretch;
  return _sparse_compressed_tensor_unsafe(arange(n + 1, ints) * entries, col.view(-1), randn(n * entries, kGpu), {n, n},
                                          TensorOptions().layout(kSparseCsr));
}

}  // namespace

TEST_CASE("products with sparse matrices are the CPU's" * doctest::skip(!cuda::is_available())) {
  for (const ScalarType dtype : {kFloat32, kFloat64, kComplex64, kComplex128, kFloat16, kBFloat16}) {
    const bool narrow_dtype = element_size(dtype) == 2;
    const double tolerance = narrow_dtype ? 0.03 : tolerance_of(dtype);
    for (const auto& [n, k, m] : {std::array<int64_t, 3>{70, 33, 17},
                                  {64, 128, 64},
                                  {5, 7, 1},
                                  {300, 90, 130},
                                  {1, 2000, 3},
                                  {4, 0, 3},
                                  {0, 4, 3},
                                  {4, 6, 0}}) {
      CAPTURE(n);
      CAPTURE(k);
      CAPTURE(m);
      // Positive: of sums that cancel, cuSPARSE's order of adding, which may change, would decide the last places.
      const Tensor a = patterned(n, k, dtype), b = smooth({k, m}, dtype) + 2, c = patterned(k, 20, dtype, 3);
      const Tensor csr = a.to_sparse_csr(), on_gpu = csr.to(kGpu), b_gpu = b.to(kGpu);
      for (const Tensor& x : {on_gpu, narrowed(on_gpu), on_gpu.to_sparse(), on_gpu.to_sparse_csc()}) {
        CHECK(x.is_cuda());
        CHECK(close(mm(x, b_gpu).cpu(), mm(csr, b), tolerance));
        CHECK(close(mm(x, c.to_sparse_csr().to(kGpu)).cpu(), mm(csr, c.to_sparse_csr()), tolerance));
        if (m > 0) CHECK(close(mv(x, b_gpu.select(1, 0)).cpu(), mv(csr, b.select(1, 0)), tolerance));
      }
      const Tensor sum = smooth({n, m}, dtype, 1);
      CHECK(close(addmm(sum.to(kGpu), on_gpu, b_gpu, 0.5, 2).cpu(), addmm(sum, csr, b, 0.5, 2), tolerance));
      const Tensor nan = full({n, m}, std::nan(""), sum.options());
      CHECK(close(addmm(nan.to(kGpu), on_gpu, b_gpu, 0).cpu(), mm(csr, b), tolerance));
      const Tensor left = smooth({n, 9}, dtype), right = smooth({9, k}, dtype, 2);
      CHECK(close(sparse_sampled_addmm(on_gpu, left.to(kGpu), right.to(kGpu), 0.5, 2).cpu(),
                  sparse_sampled_addmm(csr, left, right, 0.5, 2), tolerance));
      const Tensor none = smooth({n, 0}, dtype), nothing = smooth({0, k}, dtype);
      CHECK(close(sparse_sampled_addmm(on_gpu, none.to(kGpu), nothing.to(kGpu), 0.5).cpu(),
                  sparse_sampled_addmm(csr, none, nothing, 0.5), tolerance));
    }
  }
  CHECK(cuda::live_sparse_descriptors == 0);
}

TEST_CASE("a sparse product of many rows is right at its ends" * doctest::skip(!cuda::is_available())) {
  const Tensor a = random_csr(100003, 16), b = randn({100003, 64}, kGpu), host = a.cpu();
  CHECK(close(mm(a, b).cpu(), mm(host, b.cpu()), 1e-4));
  const Tensor grad = randn({100003, 64}, kGpu), x = a.detach().requires_grad_(), y = b.detach().requires_grad_();
  mm(x, y).backward(grad);
  const Tensor x_host = host.detach().requires_grad_(), y_host = b.cpu().requires_grad_();
  mm(x_host, y_host).backward(grad.cpu());
  CHECK(close(x.grad().values().cpu(), x_host.grad().values(), 1e-4));
  CHECK(close(y.grad().cpu(), y_host.grad(), 1e-4));
}

TEST_CASE("coalescing repeats its bits, and so do products where that is asked for" *
          doctest::skip(!cuda::is_available())) {
  const Tensor rows = randint(0, 500, 200000, TensorOptions(kInt64).device(kGpu)), values = randn({200000, 8}, kGpu);
  const Tensor t = sparse_coo_tensor(rows.unsqueeze(0), values, {500, 8});
  const Tensor once = t.coalesce();
  for (int i = 0; i < 3; ++i) CHECK(equal(t.coalesce().values(), once.values()));
  globalContext().setDeterministicAlgorithms(true);
  const Tensor a = random_csr(4096, 64), b = randn({4096, 96}, kGpu);
  const Tensor product = mm(a, b), vector = mv(a, b.select(1, 0));
  for (int i = 0; i < 5; ++i) {
    CHECK(equal(mm(a, b), product));
    CHECK(equal(mv(a, b.select(1, 0)), vector));
  }
  globalContext().setDeterministicAlgorithms(false);
}

TEST_CASE("a sparse product takes the memory of its result and little more" * doctest::skip(nothing_is_cached())) {
  const int64_t n = 200000;
  const Tensor a = random_csr(n, 16), b = randn({n, 64}, kGpu);
  mm(a, b);
  cuda::synchronize();
  cuda::reset_peak_memory_stats();
  const int64_t before = cuda::memory_allocated();
  const Tensor c = mm(a, b);
  const int64_t operands = a.values().nbytes() + a.col_indices().nbytes() + a.crow_indices().nbytes() + b.nbytes();
  const int64_t extra = cuda::max_memory_allocated() - before - c.nbytes();
  CHECK(extra * 5 <= operands + c.nbytes());
}

TEST_CASE("a sparse product is captured in a graph" * doctest::skip(nothing_is_cached())) {
  const Tensor a = random_csr(1000, 10), b = randn({1000, 32}, kGpu);
  cuda::synchronize();  // the stream of the capture does not wait for what makes them
  {
    const StreamGuard on(cuda::capture_stream());
    mm(a, b);
  }
  cuda::synchronize();
  cuda::CUDAGraph graph;
  Tensor c;
  {
    const cuda::graph capture(graph);
    c = mm(a, b);
  }
  b.copy_(randn({1000, 32}, kGpu));
  graph.replay();
  CHECK(close(c.cpu(), mm(a.cpu(), b.cpu()), 1e-4));
}

TEST_CASE("sparse tensors of two devices are refused in one line" * doctest::skip(!cuda::is_available())) {
  const Tensor a = patterned(4, 6, kFloat32).to_sparse_csr(), b = smooth({6, 3}, kFloat32);
  CHECK_THROWS_AS(mm(a.to(kGpu), b), ValueError);
  CHECK_THROWS_AS(mm(a, b.to(kGpu)), ValueError);
  CHECK_THROWS_AS(a.to(kGpu) + a, ValueError);
  CHECK_THROWS_AS(b.to(kGpu).add_(patterned(6, 3, kFloat32).to_sparse()), ValueError);
  CHECK_THROWS_AS(mm(a.to(kGpu), smooth({5, 3}, kFloat32).to(kGpu)), ValueError);
  CHECK_THROWS_AS(a.to(kGpu).exp(), NotImplementedError);
  CHECK(cuda::live_sparse_descriptors == 0);
}

TEST_CASE("a refused call of cuSPARSE names itself" * doctest::skip(!cuda::is_available())) {
  try {
    RUSH_CUDA_CHECK(cusparseSetStream(nullptr, nullptr));
    FAIL("no error");
  } catch (const CudaError& error) {
    const std::string text = error.what();
    CHECK(text.find("cusparseSetStream") != text.npos);
    CHECK(text.find("CUSPARSE_STATUS_") != text.npos);
    CHECK(text.find('\n') == text.npos);
  }
}

TEST_CASE("an embedding with sparse gradients trains on the GPU as on the CPU" * doctest::skip(!cuda::is_available())) {
  std::vector<Tensor> trained;
  for (const Device device : {Device(kCPU), kGpu}) {
    const Tensor w = smooth({1000, 8}, kFloat64).to(device).requires_grad_();
    optim::SparseAdam optimizer({w}, optim::SparseAdamOptions(0.05));
    for (int64_t i = 0; i < 5; ++i) {
      const Tensor at = (arange(256, kInt64) * (17 + i)).remainder(97).to(device);
      optimizer.zero_grad();
      embedding(w, at, -1, false, true).square().sum().backward();
      CHECK(w.grad().is_sparse());
      optimizer.step();
    }
    trained.push_back(w.detach().cpu());
  }
  CHECK(close(trained[1], trained[0]));
}

TEST_CASE("a graph convolutional net trains on the GPU" * doctest::skip(!cuda::is_available())) {
  manual_seed(3);
  examples::BlockGraphOptions options;
  options.nodes = 400;
  options.train_share = 0.1;
  const examples::BlockGraph graph = examples::draw_block_graph(options);
  examples::GCNTrainingOptions training;
  training.epochs = 60;
  training.device = kGpu;
  examples::RunLog log;
  CHECK(examples::GCNTraining(graph, training, log).accuracy > 0.8);
  CHECK(cuda::live_sparse_descriptors == 0);
}
