// How long calls take on the GPU.
#pragma once
#include <benchmark/benchmark.h>

#include "backends/cuda/cuda.h"

// The time between two events around `calls` calls, for each of them. With several the host is ahead of the device,
// and what a launch costs it is not counted.
template <class Run>
void time_on_device(benchmark::State& state, const Run& run, int calls = 1) {
  using namespace rush;
  for (int i = 0; i < 3; ++i) run();
  cuda::CUDAEvent begin(cuda::kEventDefault), end(cuda::kEventDefault);
  for (auto _ : state) {
    begin.record();
    for (int i = 0; i < calls; ++i) run();
    end.record();
    end.synchronize();
    state.SetIterationTime(begin.elapsed_time(end) * 1e-3 / calls);
  }
}

inline bool lacks_gpu(benchmark::State& state) {
  if (!rush::cuda::is_available()) state.SkipWithError("no CUDA device");
  return !rush::cuda::is_available();
}
