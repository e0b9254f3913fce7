// 2:4 matrices on the GPU, through cuSPARSELt, against products in float64.
#include "backends/cuda/sparse/semi_structured.h"

#include <thread>

#include "backends/cuda/cuda.h"
#include "backends/cuda/sparse/cusparselt.h"
#include "tests/cuda/gpu.h"
#include "tests/ops/sparse/semi_structured_testing.h"

using namespace rush;
using namespace rush::testing;

namespace {

// Whether this test is to be left out, which it says: without a GPU as doctest does.
bool lacks_cusparselt() {
  const bool lacks = !cuda::cusparselt::is_available();
  if (lacks) MESSAGE("skipped: no cuSPARSELt, or a GPU that is older than it");
  return lacks;
}

// Whether `got` is diag(alpha) a b + bias, for a product that is rounded before and after the bias is added, its terms
// summed in float32.
bool is_product(const Tensor& got, const Tensor& a, const Tensor& b, const Tensor& bias = {},
                const Tensor& alpha = {}) {
  const double rounding = got.scalar_type() == kFloat16 ? 0x1p-11 : 0x1p-8;
  const Tensor scale = alpha.defined() ? alpha.abs() : alpha;
  const Tensor result = product_by_definition(a, b, bias, alpha);
  const Tensor terms = product_by_definition(a.abs(), b.abs(), {}, scale);
  const Tensor bound = 2 * rounding * (product_by_definition(a, b, {}, alpha).abs() + result.abs()) + 1e-5 * terms;
  const Tensor error = (got.detach().cpu().to(kFloat64) - result).abs();
  return got.sizes() == result.sizes() && error.le(bound + 1e-7).all().item<bool>();
}

Tensor pruned(int64_t rows, int64_t columns, ScalarType dtype) {
  return sparse::prune_semi_structured(randn({rows, columns}, kGpu).to(dtype));
}
Tensor random(IntArrayRef sizes, ScalarType dtype) { return randn(sizes, kGpu).to(dtype); }

// The same numbers at an address that is a multiple of their size only.
Tensor at_an_odd_place(const Tensor& t) {
  const Tensor longer = empty(t.numel() + 1, t.options());
  Tensor shifted = longer.slice(0, 1).view(t.sizes());
  shifted.copy_(t);
  return shifted;
}

}  // namespace

TEST_CASE("pruning on the GPU keeps what it keeps on the CPU" * doctest::skip(!cuda::is_available())) {
  for (const ScalarType dtype : {kFloat16, kBFloat16, kFloat32}) {
    const Tensor wild = uneven(112, 264, dtype), on_gpu = sparse::prune_semi_structured(wild.to(kGpu));
    CHECK(on_gpu.is_cuda());
    CHECK(equal(on_gpu.cpu(), pruned_by_hand(wild)));
    CHECK(sparse::is_semi_structured(on_gpu));
    CHECK_FALSE(sparse::is_semi_structured(wild.to(kGpu)));
  }
}

TEST_CASE("without cuSPARSELt a compressed matrix is refused in one line" *
          doctest::skip(!cuda::is_available() || cuda::cusparselt::is_available())) {
  try {
    _cslt_compress(zeros({16, 16}, TensorOptions(kFloat16).device(kGpu)));
    FAIL("no error");
  } catch (const NotImplementedError& error) {
    const std::string text = error.what();
    CHECK(text.starts_with("_cslt_compress: "));
    CHECK(text.find('\n') == text.npos);
  }
}

TEST_CASE("a matrix compressed on the GPU is the matrix" * doctest::skip(!cuda::is_available())) {
  if (lacks_cusparselt()) return;
  CHECK(cuda::cusparselt::version() >= 700);
  manual_seed(1);
  for (const ScalarType dtype : {kFloat16, kBFloat16}) {
    for (const auto& [m, k] :
         {std::array<int64_t, 2>{16, 16}, {32, 48}, {48, 4096}, {112, 16}, {1008, 272}, {4096, 1024}}) {
      CAPTURE(m);
      CAPTURE(k);
      const Tensor dense = pruned(m, k, dtype);
      const auto weight = sparse::to_sparse_semi_structured(dense);
      CHECK(weight.packed().scalar_type() == dtype);
      CHECK(weight.packed().size(0) == m);
      // Half of the values, and 2 bits for each of them.
      CHECK(weight.packed().size(1) >= k / 2 + k / 16);
      if (k >= 256) CHECK(weight.packed().size(1) < k / 2 + k / 8);  // small ones have room at the end
      CHECK(equal(weight.to_dense(), dense));
      CHECK(equal(sparse::to_sparse_semi_structured(at_an_odd_place(dense)).to_dense(), dense));
      CHECK(equal(sparse::to_sparse_semi_structured(dense.t().contiguous().t()).to_dense(), dense));
    }
    const Tensor zero = zeros({32, 32}, TensorOptions(dtype).device(kGpu));
    CHECK(equal(sparse::to_sparse_semi_structured(zero).to_dense(), zero));
  }
}

TEST_CASE("products with a compressed matrix on the GPU" * doctest::skip(!cuda::is_available())) {
  if (lacks_cusparselt()) return;
  manual_seed(2);
  for (const ScalarType dtype : {kFloat16, kBFloat16}) {
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{16, 16, 8},
                                  {48, 64, 24},
                                  {32, 272, 136},
                                  {1008, 96, 8},
                                  {256, 4096, 264},
                                  {1024, 2048, 1032}}) {
      CAPTURE(str(dtype));
      CAPTURE(m);
      CAPTURE(k);
      CAPTURE(n);
      const Tensor a = pruned(m, k, dtype), packed = _cslt_compress(a);
      const Tensor b = random({k, n}, dtype), bias = random({m}, dtype), alpha = random({m}, kFloat32);
      const Tensor spread = stack({b, b}, 2).select(2, 1), one = tensor({0.75}, kFloat32).to(kGpu);
      for (const Tensor& x : {b, b.t().contiguous().t(), spread, at_an_odd_place(b)}) {
        CHECK(is_product(_cslt_sparse_mm(packed, x), a, b));
        CHECK(is_product(_cslt_sparse_mm(packed, x, bias), a, b, bias));
        const Tensor transposed = _cslt_sparse_mm(packed, x, bias, std::nullopt, std::nullopt, true);
        CHECK(transposed.is_contiguous());
        CHECK(is_product(transposed.t(), a, b, bias));
      }
      CHECK(is_product(_cslt_sparse_mm(at_an_odd_place(packed), b, at_an_odd_place(bias)), a, b, bias));
      CHECK(is_product(_cslt_sparse_mm(packed, b, stack({bias, bias}, 1).select(1, 0)), a, b, bias));
      CHECK(is_product(_cslt_sparse_mm(packed, b, bias, one), a, b, bias, one.expand(m)));
      CHECK(is_product(_cslt_sparse_mm(packed, b, bias, alpha, dtype), a, b, bias, alpha));
      CHECK(_cslt_sparse_mm(packed, b.slice(1, 0, 0)).sizes() == IntArrayRef({m, 0}));
    }
  }
}

TEST_CASE("a bias that changes, or another one, is the one that is added" * doctest::skip(!cuda::is_available())) {
  if (lacks_cusparselt()) return;
  manual_seed(3);
  const Tensor a = pruned(64, 64, kFloat16), packed = _cslt_compress(a), b = random({64, 32}, kFloat16);
  const Tensor bias = random({64}, kFloat16), other = random({64}, kFloat16);
  for (int i = 0; i < 3; ++i) {
    CHECK(is_product(_cslt_sparse_mm(packed, b, bias), a, b, bias));
    CHECK(is_product(_cslt_sparse_mm(packed, b, other), a, b, other));
    CHECK(is_product(_cslt_sparse_mm(packed, b), a, b));
    bias.add_(1);
  }
}

TEST_CASE("linear with a compressed weight on the GPU, and its gradients" * doctest::skip(!cuda::is_available())) {
  if (lacks_cusparselt()) return;
  manual_seed(4);
  for (const ScalarType dtype : {kFloat16, kBFloat16}) {
    const Tensor a = pruned(96, 160, dtype);
    const auto weight = sparse::to_sparse_semi_structured(a);
    for (const int64_t n : {0, 1, 7, 8, 9, 130}) {
      CAPTURE(n);
      const Tensor x = random({n, 160}, dtype).requires_grad_(), bias = random({96}, dtype).requires_grad_();
      const Tensor y = sparse::linear(x, weight, bias), g = random({n, 96}, dtype);
      CHECK(is_product(y.t(), a, x.t(), bias));
      y.backward(g);
      CHECK(is_product(x.grad(), g, a));
      CHECK(is_product(bias.grad().unsqueeze(0), ones({1, n}, g.options()), g));
      CHECK(is_product(sparse::mm(weight, x.t()), a, x.t()));
    }
    const Tensor batch = random({4, 3, 160}, dtype).transpose(0, 1);
    CHECK(is_product(sparse::linear(batch, weight).view({12, 96}).t(), a, batch.reshape({12, 160}).t()));
  }
}

TEST_CASE("a linear layer with a compressed weight on the GPU" * doctest::skip(!cuda::is_available())) {
  if (lacks_cusparselt()) return;
  manual_seed(5);
  nn::Linear linear(256, 128);
  linear->to(kGpu, kFloat16);
  linear->weight.set_data(sparse::prune_semi_structured(linear->weight.detach()));
  nn::SemiStructuredLinear fast(linear);
  const Tensor x = random({33, 256}, kFloat16);
  CHECK(is_product(fast(x).t(), linear->weight, x.t(), linear->bias));
  CHECK(equal(fast->dense_weight(), linear->weight));
  // What is packed here is read nowhere else, and the other way round.
  fast->to(kCPU);
  CHECK_THROWS_AS(fast(x.cpu()), ValueError);
  fast->to(kGpu);
  CHECK(is_product(fast(x).t(), linear->weight, x.t(), linear->bias));
  linear->to(kCPU);
  nn::SemiStructuredLinear of_cpu(linear);
  of_cpu->to(kGpu);
  CHECK_THROWS_AS(of_cpu(x), ValueError);
  CHECK_THROWS_AS(of_cpu->dense_weight(), ValueError);
}

TEST_CASE("plans are made once for a problem, and are let go" * doctest::skip(nothing_is_cached())) {
  if (lacks_cusparselt()) return;
  cuda::cusparselt::clear_plan_cache();
  const int before = cuda::live_cusparselt_objects;
  const Tensor packed = _cslt_compress(pruned(64, 64, kFloat16)), bias = random({64}, kFloat16);
  CHECK(cuda::live_cusparselt_objects == before);
  CHECK(cuda::cusparselt::plan_cache_size() == 0);
  const Tensor b = random({64, 32}, kFloat16), wide = random({64, 40}, kFloat16);
  for (int i = 0; i < 5; ++i) {
    _cslt_sparse_mm(packed, b);
    _cslt_sparse_mm(packed, wide);
    _cslt_sparse_mm(packed, b, bias);
    _cslt_sparse_mm(packed, wide, bias, std::nullopt, std::nullopt, true);
    CHECK(cuda::cusparselt::plan_cache_size() == 4);
  }
  const int64_t allocated = cuda::memory_allocated();
  _cslt_sparse_mm(packed, b);
  CHECK(cuda::memory_allocated() == allocated);  // no workspace is left
  // Biases at 1100 addresses.
  const Tensor biases = zeros({1100, 64}, packed.options());
  for (int64_t i = 0; i < biases.size(0); ++i) _cslt_sparse_mm(packed, b, biases.select(0, i));
  CHECK(cuda::cusparselt::plan_cache_size() == 1024);
  cuda::cusparselt::clear_plan_cache();
  CHECK(cuda::cusparselt::plan_cache_size() == 0);
  CHECK(cuda::live_cusparselt_objects == before);
  CHECK(is_product(_cslt_sparse_mm(packed, b), _cslt_decompress(packed, 64), b));
}

TEST_CASE("a product with a compressed matrix is captured in a graph" * doctest::skip(nothing_is_cached())) {
  if (lacks_cusparselt()) return;
  manual_seed(6);
  const Tensor a = pruned(256, 512, kFloat16), bias = random({256}, kFloat16);
  const auto weight = sparse::to_sparse_semi_structured(a);
  const Tensor x = random({100, 512}, kFloat16);
  cuda::synchronize();  // the stream of the capture does not wait for what makes them
  {
    const StreamGuard on(cuda::capture_stream());
    sparse::linear(x, weight, bias);
  }
  cuda::synchronize();
  cuda::CUDAGraph graph;
  Tensor y;
  {
    const cuda::graph capture(graph);
    y = sparse::linear(x, weight, bias);
  }
  cuda::cusparselt::clear_plan_cache();
  x.copy_(random({100, 512}, kFloat16));
  bias.add_(1);
  graph.replay();
  CHECK(is_product(y.t(), a, x.t(), bias));
}

TEST_CASE("products on several streams and threads are each their own" * doctest::skip(!cuda::is_available())) {
  if (lacks_cusparselt()) return;
  manual_seed(7);
  const Tensor a = pruned(512, 512, kFloat16), packed = _cslt_compress(a);
  std::vector<Tensor> factors, products(4);
  for (int i = 0; i < 4; ++i) factors.push_back(random({512, 256}, kFloat16));
  cuda::synchronize();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const cuda::CUDAStreamGuard on(cuda::getStreamFromPool());
      for (int repeat = 0; repeat < 20; ++repeat) products[i] = _cslt_sparse_mm(packed, factors[i]);
      cuda::synchronize();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 4; ++i) CHECK(is_product(products[i], a, factors[i]));
}

TEST_CASE("what cuSPARSELt cannot do is refused in one line" * doctest::skip(!cuda::is_available())) {
  if (lacks_cusparselt()) return;
  manual_seed(8);
  const Tensor a = pruned(64, 64, kFloat16), packed = _cslt_compress(a), b = random({64, 32}, kFloat16);
  CHECK_THROWS_AS(_cslt_compress(pruned(64, 64, kFloat32)), NotImplementedError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed.to(kFloat32), b.to(kFloat32)), NotImplementedError);
  CHECK_THROWS_AS(_cslt_compress(random({64, 64}, kFloat16)), ValueError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, b.cpu()), ValueError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, b, random({64}, kFloat16).cpu()), ValueError);
  CHECK_THROWS_AS(_cslt_sparse_mm(packed, random({128, 32}, kFloat16)), ValueError);
  CHECK_THROWS_AS(_cslt_decompress(packed, 128), ValueError);
  // Compressed for another kind of device. Of 64 x 128 cuSPARSELt's size and the room after it are what the CPU needs.
  for (const auto& [m, k] : {std::array<int64_t, 2>{32, 64}, {64, 64}, {64, 128}}) {
    const Tensor other = pruned(m, k, kFloat16), factor = random({k, 32}, kFloat16);
    CHECK_THROWS_AS(_cslt_sparse_mm(_cslt_compress(other.cpu()).to(kGpu), factor), ValueError);
    CHECK_THROWS_AS(_cslt_sparse_mm(_cslt_compress(other).cpu(), factor.cpu()), ValueError);
    CHECK(is_product(_cslt_sparse_mm(_cslt_compress(other), factor), other, factor));
  }
  const int before = cuda::live_cusparselt_objects;
  try {
    _cslt_sparse_mm(packed, b, std::nullopt, std::nullopt, std::nullopt, false, /*alg_id=*/1 << 20);
    FAIL("no error");
  } catch (const CudaError& error) {
    const std::string text = error.what();
    CHECK(text.find("cusparseLt") != text.npos);
    CHECK(text.find("aten::_cslt_sparse_mm") != text.npos);
    CHECK(text.find('\n') == text.npos);
  }
  CHECK(cuda::live_cusparselt_objects == before);
  CHECK(is_product(_cslt_sparse_mm(packed, b), a, b));
}
