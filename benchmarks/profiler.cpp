// What a profile adds to a call: the time of a + b, of 8 floats each, while one records what the CPU does, less the
// time without.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#include "rushlight.h"

namespace {

using namespace rush;

constexpr int kCalls = 10000, kRepetitions = 5;

// Seconds of a call, the least of some repetitions.
double seconds(const Tensor& a, const Tensor& b) {
  double least = 1;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) benchmark::DoNotOptimize(a + b);
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least / kCalls;
}

void added(benchmark::State& state, bool requires_grad) {
  set_num_threads(1);
  const Tensor a = ones({8}).requires_grad_(requires_grad), b = ones({8});
  for (auto _ : state) {
    const double without = seconds(a, b);
    const profiler::Profile profile({.with_devices = false});
    state.SetIterationTime(seconds(a, b) - without);
  }
}

BENCHMARK_CAPTURE(added, nograd, false)->Name("profiler/add8_nograd")->UseManualTime()->Iterations(3);
BENCHMARK_CAPTURE(added, grad, true)->Name("profiler/add8_grad")->UseManualTime()->Iterations(3);

}  // namespace
