// Fourier transforms on the CPU and, where there is one, on the GPU: long ones alone, short ones by thousands. In one
// iteration a transform is made several times, so that the host's wait for the GPU does not count.
#include <benchmark/benchmark.h>

#include <string>

#include "rushlight.h"

namespace {

using namespace rush;

struct Transform {
  const char* name;
  DimVector sizes;
  ScalarType dtype;
  Tensor (*run)(const Tensor& x);
};
Tensor complex_transform(const Tensor& x) { return fft::fft(x); }
Tensor real_transform(const Tensor& x) { return fft::rfft(x); }
const Transform kTransforms[] = {
    {"c2c_2^20", {1 << 20}, kComplex64, complex_transform},
    {"c2c_2^24", {1 << 24}, kComplex64, complex_transform},
    {"c2c_prime", {1000003}, kComplex64, complex_transform},
    {"r2c_4096x1024", {4096, 1024}, kFloat32, real_transform},
};

void measure(benchmark::State& state, const Transform& transform, DeviceType type) {
  if (type == kCUDA && !cuda::is_available()) return state.SkipWithError("no CUDA device");
  const NoGradGuard no_grad;
  const int times = type == kCUDA ? 10 : 1;
  const auto finish = [&] {
    if (type == kCUDA) cuda::synchronize();
  };
  const Tensor x = randn(transform.sizes, TensorOptions(transform.dtype).device(type));
  benchmark::DoNotOptimize(transform.run(x));  // plans
  finish();
  for (auto _ : state) {
    for (int i = 0; i < times; ++i) benchmark::DoNotOptimize(transform.run(x));
    finish();
  }
  state.counters["per_transform"] =
      benchmark::Counter(times, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

const bool registered = [] {
  for (const DeviceType type : {kCPU, kCUDA}) {
    for (const Transform& transform : kTransforms) {
      const std::string name = str("fft/", device_type_name(type), "/", transform.name);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [&transform, type](benchmark::State& state) { measure(state, transform, type); })
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
  return true;
}();

}  // namespace
