// What a call costs apart from its arithmetic: dispatch, the iterator, allocation, recording and the backward pass.
// Times are of one thread and tensors of 8 floats; the chain's is for each of its multiplications, forward and
// backward.
#include <benchmark/benchmark.h>

#include "rushlight.h"

namespace {

using namespace rush;

void one_thread(const benchmark::State&) { set_num_threads(1); }

void add8_nograd(benchmark::State& state) {
  const NoGradGuard no_grad;
  const Tensor a = ones({8}), b = ones({8});
  for (auto _ : state) benchmark::DoNotOptimize(a + b);
}

void add8_inplace(benchmark::State& state) {
  const NoGradGuard no_grad;
  const Tensor a = ones({8}), b = ones({8});
  for (auto _ : state) benchmark::DoNotOptimize(a.add_(b));
}

void view(benchmark::State& state) {
  const NoGradGuard no_grad;
  const Tensor a = ones({8});
  for (auto _ : state) benchmark::DoNotOptimize(a.view({2, 4}));
}

void empty8(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(empty({8}));
}

void add8_grad(benchmark::State& state) {
  const Tensor a = ones({8}, requires_grad()), b = ones({8});
  for (auto _ : state) benchmark::DoNotOptimize(a + b);
}

void chain100(benchmark::State& state) {
  constexpr int kLength = 100;
  const Tensor p = ones({8}, requires_grad()), b = ones({8});
  for (auto _ : state) {
    Tensor c = p;
    for (int i = 0; i < kLength; ++i) c = c * b;
    c.sum().backward();
    p.mutable_grad() = Tensor();
  }
  state.counters["per_op"] =
      benchmark::Counter(kLength, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void mm32(benchmark::State& state) {
  const NoGradGuard no_grad;
  const Tensor a = ones({32, 32}), b = ones({32, 32});
  for (auto _ : state) benchmark::DoNotOptimize(a.mm(b));
}

BENCHMARK(add8_nograd)->Name("dispatch/add8_nograd")->Setup(one_thread);
BENCHMARK(add8_inplace)->Name("dispatch/add8_inplace")->Setup(one_thread);
BENCHMARK(view)->Name("dispatch/view")->Setup(one_thread);
BENCHMARK(empty8)->Name("dispatch/empty8")->Setup(one_thread);
BENCHMARK(add8_grad)->Name("dispatch/add8_grad")->Setup(one_thread);
BENCHMARK(chain100)->Name("dispatch/chain100")->Setup(one_thread);
BENCHMARK(mm32)->Name("dispatch/mm32")->Setup(one_thread);

}  // namespace
