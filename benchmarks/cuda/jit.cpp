// Kernels compiled at run time: what compiling, the cache on the disk, loading and launching cost, and what bandwidth
// the kernels of docs/own_kernels.md reach beside a copy.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/jit/compiled.h"
#include "backends/cuda/jit/nvrtc.h"
#include "benchmarks/cuda/bare_launch.h"
#include "benchmarks/cuda/time_on_device.h"
#include "core/library/file_cache.h"
#include "rushlight.h"

namespace {

using namespace rush;
using cuda::jit::Source;

constexpr int kArchitecture = 90;  // no device is needed to compile

Source small_kernel() {
  return {"swish",
          R"(
#include "backends/functors/unary.h"
template <class T>
__global__ void swish(T* out, const T* x, float a, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = x[i] * rush::functors::Sigmoid()(a * x[i]);
})",
          {"swish<float>"}};
}

void cold_compile(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(cuda::jit::compile(small_kernel(), kArchitecture));
}

// The same from the folder of cubins: the entry is read and checked.
void disk_cache(benchmark::State& state) {
  library::FileCache cache("benchmark");
  cache.keep("cubin", cuda::jit::compile(small_kernel(), kArchitecture).image);
  for (auto _ : state) benchmark::DoNotOptimize(cache.read("cubin"));
  std::filesystem::remove_all(cache.folder());
}

// To the device, of what the process has compiled.
void load(benchmark::State& state) {
  if (lacks_gpu(state)) return;
  cuda::jit::Kernel(small_kernel()).load();
  for (auto _ : state) cuda::jit::Kernel(small_kernel()).load();
}

// Host time of one of kBatch calls, which the queue of launches holds.
template <class Run>
void time_calls(benchmark::State& state, const Run& run) {
  constexpr int kBatch = 1000;
  run();
  for (auto _ : state) {
    for (int i = 0; i < kBatch; ++i) run();
    state.PauseTiming();
    cuda::synchronize();
    state.ResumeTiming();
  }
  state.counters["per_call"] =
      benchmark::Counter(kBatch, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void launch_compiled_ahead(benchmark::State& state) {
  if (!lacks_gpu(state)) time_calls(state, launch_bare_kernel);
}

void launch(benchmark::State& state) {
  if (lacks_gpu(state)) return;
  const cuda::jit::Kernel kernel({"nothing", "extern \"C\" __global__ void nothing() {}", {"nothing"}});
  time_calls(state, [&] { kernel.launch("nothing", {{1}, {1}}, nullptr); });
}

using Swish = Tensor(const Tensor&, double);
const CudaKernel<Swish>& swish() {
  static const auto made =
      cuda_kernel<Swish>("swish", small_kernel().text, "benchmarks::swish(Tensor x, float a) -> Tensor");
  return made;
}

void operator_call(benchmark::State& state) {
  if (lacks_gpu(state)) return;
  const Tensor x = ones({1}, kCUDA);
  time_calls(state, [&] { swish()(x, 1.5); });
}

void library_operator_call(benchmark::State& state) {
  if (lacks_gpu(state)) return;
  const Tensor x = ones({1}, kCUDA);
  time_calls(state, [&] { sigmoid(x); });
}

// 16 bytes an access and two accesses in flight, as in docs/own_kernels.md.
const CudaKernel<Swish>& swish_by_vectors() {
  static const auto made = cuda_kernel<Swish>(
      "swish_by_vectors", R"(
#include "backends/functors/unary.h"
template <class T>
struct alignas(16) Vector { T lane[16 / sizeof(T)]; };
template <class T>
__global__ void __launch_bounds__(256) swish(T* out, const T* x, float a, int64_t n) {
  constexpr int kLanes = 16 / sizeof(T);
  const int64_t first = (blockIdx.x * int64_t(512) + threadIdx.x) * kLanes;
  Vector<T> loaded[2];
#pragma unroll
  for (int v = 0; v < 2; ++v) {
    if (first + v * 256 * kLanes < n) loaded[v] = *reinterpret_cast<const Vector<T>*>(x + first + v * 256 * kLanes);
  }
#pragma unroll
  for (int v = 0; v < 2; ++v) {
    if (first + v * 256 * kLanes >= n) continue;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) {
      const float value = loaded[v].lane[l];
      loaded[v].lane[l] = static_cast<T>(value * rush::functors::Sigmoid()(a * value));
    }
    *reinterpret_cast<Vector<T>*>(out + first + v * 256 * kLanes) = loaded[v];
  }
})",
      "benchmarks::swish_by_vectors(Tensor x, float a) -> Tensor",
      {.shape =
           [](const Tensor& out, const Tensor&, double) {
             const int64_t of_a_block = 512 * 16 / out.element_size();
             return cuda::KernelShape{{static_cast<uint32_t>((out.numel() + of_a_block - 1) / of_a_block)}, {256}};
           },
       .meta =
           [](const Tensor& x, double) {
             RUSH_CHECK_VALUE(x.numel() % 16 == 0, "swish_by_vectors: expected whole vectors");
             return empty(x.sizes(), x.options());
           }});
  return made;
}

template <class Run>
void bandwidth(benchmark::State& state, ScalarType dtype, const Run& run) {
  if (lacks_gpu(state)) return;
  const NoGradGuard no_grad;
  const Tensor x = randn({int64_t{1} << 26}, kCUDA).to(dtype);
  time_on_device(
      state, [&] { run(x); }, 10);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * 2 * static_cast<int64_t>(x.nbytes()));
}

[[maybe_unused]] const int registered = [] {
  benchmark::RegisterBenchmark("cuda_jit/cold_compile", cold_compile)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("cuda_jit/disk_cache", disk_cache)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("cuda_jit/load", load)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("cuda_jit/launch_compiled_ahead", launch_compiled_ahead)->UseRealTime();
  benchmark::RegisterBenchmark("cuda_jit/launch", launch)->UseRealTime();
  benchmark::RegisterBenchmark("cuda_jit/operator_call", operator_call)->UseRealTime();
  benchmark::RegisterBenchmark("cuda_jit/library_operator_call", library_operator_call)->UseRealTime();
  for (const ScalarType dtype : {kFloat32, kBFloat16}) {
    const auto add = [&](const char* what, auto run) {
      benchmark::RegisterBenchmark((std::string("cuda_jit/bandwidth/") + what + "/" + name(dtype)).c_str(),
                                   [dtype, run](benchmark::State& state) { bandwidth(state, dtype, run); })
          ->UseManualTime()
          ->Iterations(50);
    };
    add("copy", [](const Tensor& x) { return x.clone(); });
    add("naive", [](const Tensor& x) { return swish()(x, 1.5); });
    add("vectors", [](const Tensor& x) { return swish_by_vectors()(x, 1.5); });
  }
  return 0;
}();

}  // namespace
