// Fourier transforms on the GPU against the CPU's.
#include "core/ops/fft/fft.h"

#include "backends/cuda/check.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/stream/current_stream.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/same_as_cpu.h"

namespace {

using namespace rush;
using rush::testing::kLayouts;
using rush::testing::numbers;
namespace cache = rush::cuda::cufft_plan_cache;

// Values relative to the largest: rounding errors of a transform are proportional to it.
void check_transform(const Tensor& on_gpu, const Tensor& on_cpu) {
  REQUIRE(on_gpu.is_cuda());
  REQUIRE(on_gpu.scalar_type() == on_cpu.scalar_type());
  REQUIRE(on_gpu.sizes() == on_cpu.sizes());
  if (on_cpu.numel() == 0) return;
  const double step = to_real(on_cpu.scalar_type()) == kFloat64 ? 1e-12 : 2e-6;
  CHECK((on_gpu.cpu() - on_cpu).abs().max().item<double>() <= step * (1 + on_cpu.abs().max().item<double>()));
}

const DimVector kTransformShapes[] = {{1}, {17}, {4096}, {5, 12}, {3, 7, 10}, {2, 3, 4, 5}, {2, 2, 3, 2, 4}, {0, 6}};

// Every choice of up to all dimensions, in rising and in falling order.
std::vector<std::vector<int64_t>> choices(int64_t dims) {
  std::vector<std::vector<int64_t>> all;
  for (int64_t bits = 1; bits < int64_t{1} << dims; ++bits) {
    std::vector<int64_t> chosen;
    for (int64_t d = 0; d < dims; ++d) {
      if (bits >> d & 1) chosen.push_back(d);
    }
    all.push_back(chosen);
    if (chosen.size() > 1) all.emplace_back(chosen.rbegin(), chosen.rend());
  }
  return all;
}

}  // namespace

TEST_CASE("cuda: transforms over any dimensions of any layout" * doctest::skip(!cuda::is_available())) {
  for (const DimVector& shape : kTransformShapes) {
    for (const auto& layout : kLayouts) {
      if (shape.size() > 3 && &layout != kLayouts) continue;  // there are many choices of dimensions already
      CAPTURE(str(IntArrayRef(shape)));
      CAPTURE(layout.name);
      for (const ScalarType dtype : {kFloat32, kFloat64}) {
        const Tensor real = numbers(shape, dtype, -1, 1), complex = numbers(shape, to_complex(dtype), -1, 1);
        const Tensor x = layout.arrange(real), z = layout.arrange(complex);
        const Tensor gpu_x = layout.arrange(real.cuda()), gpu_z = layout.arrange(complex.cuda());
        for (const std::vector<int64_t>& dims : choices(x.dim())) {
          if (shape[0] == 0 && dims[0] * dims.back() == 0) continue;  // no points
          CAPTURE(str(IntArrayRef(dims)));
          check_transform(ops::_fft_c2c(gpu_z, dims, 0, true), ops::_fft_c2c(z, dims, 0, true));
          check_transform(ops::_fft_c2c(gpu_z, dims, 2, false), ops::_fft_c2c(z, dims, 2, false));
          check_transform(ops::_fft_r2c(gpu_x, dims, 0, true), ops::_fft_r2c(x, dims, 0, true));
          check_transform(ops::_fft_r2c(gpu_x, dims, 1, false), ops::_fft_r2c(x, dims, 1, false));
          // Frequencies of a real signal: of others the libraries may take the redundant half from either side.
          const Tensor half = ops::_fft_r2c(x, dims, 0, true), gpu_half = half.cuda(), before = gpu_half.clone();
          const int64_t points = x.size(dims.back());
          check_transform(ops::_fft_c2r(gpu_half, dims, 2, points), ops::_fft_c2r(half, dims, 2, points));
          CHECK(gpu_half.equal(before));  // cuFFT overwrites its own copy
        }
      }
    }
  }
}

TEST_CASE("cuda: the transforms that programs call, and dtypes" * doctest::skip(!cuda::is_available())) {
  const Tensor x = numbers({6, 20}, kFloat32, -1, 1), gpu = x.cuda();
  check_transform(fft::fft(gpu), fft::fft(x));
  check_transform(fft::rfft(gpu, 31, 0), fft::rfft(x, 31, 0));
  check_transform(fft::ifft2(gpu), fft::ifft2(x));
  check_transform(fft::hfft(fft::ihfft(gpu)), x);
  check_transform(fft::irfft2(fft::rfft2(gpu), {6, 20}), x);
  check_transform(fft::fftshift(gpu), fft::fftshift(x));
  check_transform(fft::fftfreq(7, kCUDA), fft::fftfreq(7));
  check_transform(stft(gpu, 8, 3, std::nullopt, hann_window(8, kCUDA), true, "reflect", false, true, true),
                  stft(x, 8, 3, std::nullopt, hann_window(8), true, "reflect", false, true, true));
  check_transform(signal::fftconvolve(gpu, gpu.narrow(1, 0, 5)), signal::fftconvolve(x, x.narrow(1, 0, 5)));
  // There is no complex32: float16 is transformed as float32.
  check_transform(fft::rfft(gpu.to(kFloat16)), fft::rfft(x.to(kFloat16).to(kFloat32)));
  CHECK_THROWS_AS(fft::rfft(gpu.to(kBFloat16)), TypeError);
}

TEST_CASE("cuda: gradients of transforms" * doctest::skip(!cuda::is_available())) {
  const auto gradient = [](const Tensor& signal) {
    const Tensor leaf = signal.detach().clone().requires_grad_();
    const Tensor half = fft::rfft(leaf, 11);
    (fft::irfft(half * half, 11).square().sum() + fft::fft(leaf).abs().sum()).backward();
    return leaf.grad();
  };
  const Tensor x = numbers({3, 8}, kFloat64, 1, 2);
  check_transform(gradient(x.cuda()), gradient(x));
}

TEST_CASE("cuda: cuFFT's plans are kept, and as many as allowed" * doctest::skip(!cuda::is_available())) {
  const int64_t limit = cache::max_size();
  cache::clear();
  CHECK(cache::size() == 0);
  const auto transform = [](int64_t n) { check_transform(fft::fft(ones({n}, kCUDA)), fft::fft(ones({n}))); };
  for (const int64_t n : {10, 11, 12, 10}) transform(n);
  CHECK(cache::size() == 3);
  cache::set_max_size(2);  // 11, used least recently, goes
  CHECK(cache::max_size(0) == 2);
  CHECK(cache::size() == 2);
  transform(13);
  CHECK(cache::size(-1) == 2);
  cache::set_max_size(0);
  transform(14);
  CHECK(cache::size() == 0);
  cache::set_max_size(limit);
  transform(14);
  CHECK(cache::size() == 1);
  CHECK_THROWS_AS(cache::set_max_size(-1), ValueError);
  CHECK_THROWS_AS(cache::size(1000), ValueError);
}

TEST_CASE("cuda: what is planned can be captured and replayed" * doctest::skip(rush::testing::nothing_is_cached())) {
  const Tensor x = numbers({4, 96}, kComplex64, -1, 1), y = numbers({4, 96}, kComplex64, 2, 3);
  const cuda::CUDAStream side = cuda::getStreamFromPool();
  const cuda::CUDAStreamGuard guard(side);
  const Tensor input = x.cuda();
  fft::fft(input);  // plans
  cuda::synchronize();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  const cudaStream_t stream = cuda::current_stream();
  RUSH_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const Tensor output = fft::fft(input);
  RUSH_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  RUSH_CUDA_CHECK(cudaGraphInstantiate(&replay, graph, 0));
  cache::clear();  // the graph goes on reading the plan's tables
  for (const Tensor& values : {x, y}) {
    input.copy_(values);
    RUSH_CUDA_CHECK(cudaGraphLaunch(replay, stream));
    cuda::synchronize();
    check_transform(output, fft::fft(values));
  }
  RUSH_CUDA_CHECK(cudaGraphExecDestroy(replay));
  RUSH_CUDA_CHECK(cudaGraphDestroy(graph));
}

TEST_CASE("cuda: a transform that does not fit into memory" * doctest::skip(rush::testing::nothing_is_cached())) {
  const Tensor one = zeros({1}, TensorOptions(kComplex128).device(kCUDA));
  const int64_t held = cuda::memory_allocated(), plans = cache::size();
  // 64 TiB of results of a view of one number.
  CHECK_THROWS_AS(fft::fft(one.expand({int64_t{1} << 42})), OutOfMemoryError);
  CHECK(cuda::memory_allocated() == held);
  CHECK(cache::size() == plans);
}
