// The CPU's kernels: arithmetic of matrix products, and bytes moved by operators that the memory limits.
#include <benchmark/benchmark.h>

#include <string>

#include "rushlight.h"

namespace {

using namespace rush;

void matmul_of(benchmark::State& state) {
  const int64_t n = state.range(0);
  const Tensor a = randn({n, n}), b = randn({n, n});
  for (auto _ : state) benchmark::DoNotOptimize(mm(a, b));
  state.counters["flops"] =
      benchmark::Counter(2.0 * static_cast<double>(n * n * n), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(matmul_of)
    ->Name("kernels/matmul")
    ->Arg(512)
    ->Arg(1024)
    ->Arg(2048)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

constexpr int64_t kRows = 4096, kColumns = 4096;  // 64 MiB

struct Kernel {
  const char* name;
  int tensors_moved;  // read and written, of the operand's size
  Tensor (*run)(const Tensor& x, const Tensor& y);
};
const Kernel kKernels[] = {
    {"add", 3, [](const Tensor& x, const Tensor& y) { return x + y; }},
    {"exp", 2, [](const Tensor& x, const Tensor&) { return x.exp(); }},
    {"gelu", 2, [](const Tensor& x, const Tensor&) { return gelu(x); }},
    {"softmax", 2, [](const Tensor& x, const Tensor&) { return softmax(x, -1); }},
    {"layer_norm", 2, [](const Tensor& x, const Tensor&) { return layer_norm(x, {kColumns}); }},
    {"sum", 1, [](const Tensor& x, const Tensor&) { return x.sum(); }},
};

// Registered by a loop, so that a row of the table is a benchmark.
const bool registered = [] {
  for (const Kernel& kernel : kKernels) {
    const auto measure = [&kernel](benchmark::State& state) {
      const Tensor x = randn({kRows, kColumns}), y = randn({kRows, kColumns});
      for (auto _ : state) benchmark::DoNotOptimize(kernel.run(x, y));
      state.SetBytesProcessed(state.iterations() * kernel.tensors_moved * x.nbytes());
    };
    benchmark::RegisterBenchmark((std::string("kernels/") + kernel.name).c_str(), measure)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
