// What a call on CUDA costs the host: beside a bare kernel launch, operators of one element, a chain forward and
// backward, and the caching allocator.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "benchmarks/cuda/bare_launch.h"
#include "rushlight.h"

namespace {

using namespace rush;

// Runs `batch` times at a time, so that the queue of launches never fills, and waits between batches. A run makes
// `calls`.
template <class Run>
void time_calls(benchmark::State& state, int batch, const Run& run, int calls = 1) {
  if (!cuda::is_available()) return state.SkipWithError("no CUDA device");
  for (int i = 0; i < batch; ++i) run();
  cuda::synchronize();
  for (auto _ : state) {
    for (int i = 0; i < batch; ++i) run();
    cuda::synchronize();
  }
  state.counters["per_call"] =
      benchmark::Counter(batch * calls, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void bare_launch(benchmark::State& state) { time_calls(state, 1000, launch_bare_kernel); }

void add1(benchmark::State& state) {
  const NoGradGuard no_grad;
  Tensor a, b;
  if (cuda::is_available()) a = ones({1}, kCUDA), b = ones({1}, kCUDA);
  time_calls(state, 1000, [&] { a + b; });
}

// How much longer add1 takes than a bare launch: batches in turn, so that both meet the same state of the machine, and
// the median of the differences.
void add1_over_launch(benchmark::State& state) {
  if (!cuda::is_available()) return state.SkipWithError("no CUDA device");
  const NoGradGuard no_grad;
  const Tensor a = ones({1}, kCUDA), b = ones({1}, kCUDA);
  constexpr int kBatch = 1000;
  const auto seconds_of = [](const auto& run) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i) run();
    cuda::synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::vector<double> over;
  for (auto _ : state) {
    const double launch = seconds_of(launch_bare_kernel);
    over.push_back((seconds_of([&] { a + b; }) - launch) / kBatch);
  }
  std::nth_element(over.begin(), over.begin() + over.size() / 2, over.end());
  state.counters["per_call"] = over[over.size() / 2];
}

void chain100(benchmark::State& state) {
  constexpr int kLength = 100;
  Tensor p, b;
  if (cuda::is_available()) p = ones({8}, requires_grad().device(kCUDA)), b = ones({8}, kCUDA);
  const auto chain = [&] {
    Tensor c = p;
    for (int i = 0; i < kLength; ++i) c = c * b;
    c.sum().backward();
    p.mutable_grad() = Tensor();
  };
  time_calls(state, 1, chain, kLength);
}

// The allocator alone, by the calls that a storage makes. (libtorch's makes raw_alloc and raw_delete.)
void allocate_free(benchmark::State& state) {
  time_calls(state, 1000, [&allocator = allocator(kCUDA)] {
    allocator.deallocate(allocator.allocate_on(Device(kCUDA), 4096), 4096);
  });
}

void empty_tensor(benchmark::State& state) {
  time_calls(state, 1000, [] { empty({1 << 18}, kCUDA); });
}

BENCHMARK(bare_launch)->Name("cuda_dispatch/bare_launch")->UseRealTime();
BENCHMARK(add1)->Name("cuda_dispatch/add1")->UseRealTime();
BENCHMARK(add1_over_launch)->Name("cuda_dispatch/add1_over_launch")->UseRealTime()->Iterations(300);
BENCHMARK(chain100)->Name("cuda_dispatch/chain100")->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(allocate_free)->Name("cuda_dispatch/allocate_free")->UseRealTime();
BENCHMARK(empty_tensor)->Name("cuda_dispatch/empty_tensor")->UseRealTime();

}  // namespace
