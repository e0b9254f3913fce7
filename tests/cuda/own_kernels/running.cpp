// Operators from a kernel's source, on a GPU: results, derivatives, graphs, threads, errors.
#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "autograd/derivative.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/jit/compiled.h"
#include "core/profiler/profiler.h"
#include "rushlight.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/graph_testing.h"
#include "tests/environment_guard.h"

using namespace rush;
using namespace rush::testing;

namespace {

using Scale = Tensor(const Tensor&, double);

// A source of its own for each test, which is compiled there.
std::string scale_source(const std::string& comment) {
  return "// " + comment + R"(
template <class T>
__global__ void scale(T* out, const T* x, float a, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = static_cast<T>(a * static_cast<float>(x[i]));
})";
}

CudaKernel<Scale> make_scale(const std::string& name) {
  return cuda_kernel<Scale>(name, scale_source(name), "test::" + name + "(Tensor x, float a) -> Tensor");
}

}  // namespace

TEST_CASE("a kernel runs for every dtype and size" * doctest::skip(no_gpu())) {
  const auto scale = make_scale("every_dtype");
  for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt32, kInt64, kInt16, kUInt8}) {
    for (const int64_t n : {0, 1, 255, 256, 257, 100000}) {
      const Tensor x = arange(n, TensorOptions(kFloat64)).remainder(50).to(dtype).to(Device(kCUDA));
      const Tensor y = scale(x, 2.0);
      CHECK(y.scalar_type() == dtype);
      CHECK(y.is_cuda());
      CHECK(equal(y, x * 2));
    }
  }
  CHECK(scale(ones({3, 4, 5}, on_gpu()), 0.5).sizes() == IntArrayRef({3, 4, 5}));
}

TEST_CASE("numbers, flags and optional tensors reach the kernel as its parameters" * doctest::skip(no_gpu())) {
  using Mixed = Tensor(const Tensor&, const std::optional<Tensor>&, double, int64_t, bool);
  const auto mixed = cuda_kernel<Mixed>(
      "mixed", R"(
__global__ void mixed(double* out, const double* x, const double* y, double a, unsigned char k, bool negate) {
  const int i = threadIdx.x;
  out[i] = (negate ? -1 : 1) * (a * x[i] + k + (y ? y[i] : 0));
})",
      "test::kinds(Tensor x, Tensor? y, float a, int k, bool negate) -> Tensor",
      {.shape = [](const Tensor& out, const Tensor&, const std::optional<Tensor>&, double, int64_t, bool) {
        return cuda::KernelShape{{1}, {static_cast<uint32_t>(out.numel())}};
      }});
  const Tensor x = arange(5, on_gpu(kFloat64)), y = ones({5}, on_gpu(kFloat64));
  CHECK(equal(mixed(x, y, 0.5, 200, true), -(x * 0.5 + 201)));
  CHECK(equal(mixed(x, std::nullopt, 0.5, 0, false), x * 0.5));
  CHECK_THROWS_WITH_AS(mixed(x, y, 0.5, 256, true), doctest::Contains("k is 256"), ValueError);
  CHECK_THROWS_AS(mixed(x, y, 0.5, -1, true), ValueError);
  CHECK_THROWS_AS(mixed(x, y.cpu(), 0.5, 1, true), Error);
}

TEST_CASE("a number is converted to the type parameter's dtype, integers included" * doctest::skip(no_gpu())) {
  const auto scale = cuda_kernel<Scale>("of_type", R"(
template <class T>
__global__ void of_type(T* out, const T* x, T a, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = a * x[i];
})",
                                        "test::of_type(Tensor x, float a) -> Tensor");
  for (const ScalarType dtype : {kFloat32, kFloat64, kInt32, kUInt8}) {
    const Tensor x = arange(5, on_gpu(kFloat64)).to(dtype);
    CHECK(equal(scale(x, 3.0), x * 3));
  }
}

TEST_CASE("several results, dynamic shared memory and a grid of one's own" * doctest::skip(no_gpu())) {
  using Extremes = std::tuple<Tensor, Tensor>(const Tensor&);
  // Blocks of 64 rows' columns; more than 48 KiB of shared memory, which has to be asked for.
  constexpr uint32_t kShared = 100 * 1024;
  const auto extremes =
      cuda_kernel<Extremes>("extremes", R"(
__global__ void extremes(float* least, int64_t* where, const float* x) {
  extern __shared__ float row[];
  const int columns = 64;
  row[threadIdx.x] = x[blockIdx.x * columns + threadIdx.x];
  __syncthreads();
  if (threadIdx.x != 0) return;
  int best = 0;
  for (int i = 1; i < columns; ++i) best = row[i] < row[best] ? i : best;
  least[blockIdx.x] = row[best];
  where[blockIdx.x] = best;
})",
                            "test::extremes(Tensor x) -> (Tensor, Tensor)",
                            {.shape =
                                 [](const std::tuple<Tensor, Tensor>&, const Tensor& x) {
                                   return cuda::KernelShape{{static_cast<uint32_t>(x.size(0))}, {64}, kShared};
                                 },
                             .meta = [](const Tensor& x) -> std::tuple<Tensor, Tensor> {
                               RUSH_CHECK_VALUE(x.dim() == 2 && x.size(1) == 64, "extremes: expected rows of 64");
                               return {x.new_empty({x.size(0)}), x.new_empty({x.size(0)}, kInt64)};
                             }});
  const Tensor x = randn({33, 64}, on_gpu());
  const auto [least, where] = extremes(x);
  const auto [expected, position] = x.min(1);
  CHECK(equal(least, expected));
  CHECK(equal(where, position));
}

TEST_CASE("derivatives pass the checks of first and second order" * doctest::skip(no_gpu())) {
  // x^2 a and its derivative, a kernel each; that one is differentiated again.
  const auto square = cuda_kernel<Scale>("square", R"(
template <class T> __global__ void square(T* out, const T* x, double a, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = a * x[i] * x[i];
})",
                                         "test::square(Tensor x, float a) -> Tensor");
  const auto product =
      cuda_kernel<Tensor(const Tensor&, const Tensor&, double)>("product", R"(
template <class T> __global__ void product(T* out, const T* x, const T* y, double a, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = a * x[i] * y[i];
})",
                                                                "test::product(Tensor x, Tensor y, float a) -> Tensor");
  derivative(square.op(), [product](const Tensors& g, const Tensor& x, double a) -> Tensors {
    return {product(g[0].contiguous(), x, 2 * a)};
  });
  derivative(product.op(), [product](const Tensors& g, const Tensor& x, const Tensor& y, double a) -> Tensors {
    const Tensor grad = g[0].contiguous();
    return {product(grad, y, a), product(grad, x, a)};
  });
  const Tensor x = randn({4, 3}, on_gpu(kFloat64)).requires_grad_(),
               y = randn({4, 3}, on_gpu(kFloat64)).requires_grad_();
  const auto fn = [&](const Tensors& in) {
    const Tensor x = in[0].contiguous(), y = in[1].contiguous();
    return Tensors{square(x, 1.5) * product(x, y, -0.5)};
  };
  CHECK(autograd::gradcheck(fn, {x, y}));
  CHECK(autograd::gradgradcheck(fn, {x, y}));
}

TEST_CASE("a call may be captured in a graph, also the first one" * doctest::skip(nothing_is_cached())) {
  const auto scale = make_scale("captured");
  const Tensor x = ones({1000}, on_gpu());
  Tensor y;
  cuda::synchronize();
  cuda::CUDAGraph graph;
  {
    const cuda::graph capture(graph);
    y = scale(x, 3.0);
  }
  for (const double value : {1.0, 2.0}) {
    x.fill_(value);
    graph.replay();
    CHECK(equal(y, full({1000}, 3 * value, on_gpu())));
  }
}

TEST_CASE("several threads make the first call at once" * doctest::skip(no_gpu())) {
  const EmptyCache cache;
  const auto scale = make_scale("threads");
  const Tensor x = arange(1000, on_gpu());
  const int64_t before = cuda::jit::compilations();
  std::vector<Tensor> got(8);
  {
    std::vector<std::jthread> threads;
    for (Tensor& each : got) {
      threads.emplace_back([&] {
        each = scale(x, 2.0);
        cuda::synchronize();
      });
    }
  }
  CHECK(cuda::jit::compilations() == before + 1);
  for (const Tensor& each : got) CHECK(equal(each, x * 2));
}

TEST_CASE("an error of the compiler names operator and line, and calls go on" * doctest::skip(no_gpu())) {
  const auto broken = cuda_kernel<Tensor(const Tensor&)>(
      "my/broken.cu", "\n__global__ void broken(float* out, const float* x) {\n  out[0] = y;\n}",
      "test::broken(Tensor x) -> Tensor");
  const Tensor x = ones({4}, on_gpu());
  for (int call = 0; call < 2; ++call) {
    try {
      broken(x);
      FAIL("it compiles");
    } catch (const cuda::jit::CompileError& error) {
      CHECK(has(error.what(), "my/broken.cu(3): error: identifier \"y\" is undefined"));
      CHECK(has(error.what(), "in the kernel of test::broken, made at "));
      CHECK(has(error.what(), "running.cpp:"));
    }
  }
  CHECK(equal(x + x, full({4}, 2, on_gpu())));
}

TEST_CASE("a refused launch names the operator" * doctest::skip(no_gpu())) {
  const auto wide = cuda_kernel<Scale>("wide", scale_source("wide"), "test::wide(Tensor x, float a) -> Tensor",
                                       {.shape = [](const Tensor&, const Tensor&, double) {
                                         return cuda::KernelShape{{1}, {2048}};
                                       }});
  check_refused([&] { wide(ones({4}, on_gpu()), 2.0); }, {"the launch of test::wide", "2048 x 1 x 1"});
}

TEST_CASE("a profile has the operator and its kernel" * doctest::skip(no_gpu())) {
  const auto scale = make_scale("profiled");
  const Tensor x = ones({1000}, on_gpu());
  scale(x, 2.0);
  profiler::Profile profile;
  scale(x, 2.0);
  cuda::synchronize();
  profile.stop();
  CHECK(has(profile.key_averages().table(), "test::profiled"));
}
