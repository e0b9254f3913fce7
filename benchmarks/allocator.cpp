// The CPU's caching allocator: what a tensor's memory costs when it is not written.
#include <benchmark/benchmark.h>

#include "core/device/allocator.h"

namespace {

using namespace rush;

// One block, allocated and freed again and again: the cache serves it.
void pair(benchmark::State& state) {
  const auto nbytes = static_cast<size_t>(state.range(0));
  Allocator& cpu = allocator(kCPU);
  for (auto _ : state) {
    void* data = cpu.allocate(nbytes);
    benchmark::DoNotOptimize(data);
    cpu.deallocate(data, nbytes);
  }
}
BENCHMARK(pair)->Name("allocator/pair")->Arg(1 << 10)->Arg(1 << 16)->Arg(1 << 20)->Arg(1 << 26);

}  // namespace
