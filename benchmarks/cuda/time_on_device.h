// How long calls take on the GPU.
#pragma once
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "backends/cuda/cuda.h"

// The time between two events around `calls` calls, for each of them; the median of as many as the benchmark has
// iterations. With several the host is ahead of the device, and what a launch costs it is not counted; where it was
// late all the same, the median leaves that out.
template <class Run>
void time_on_device(benchmark::State& state, const Run& run, int calls = 1) {
  using namespace rush;
  for (int i = 0; i < 3; ++i) run();
  cuda::CUDAEvent begin(cuda::kEventDefault), end(cuda::kEventDefault);
  std::vector<double> seconds(static_cast<size_t>(state.max_iterations));
  for (double& each : seconds) {
    begin.record();
    for (int i = 0; i < calls; ++i) run();
    end.record();
    end.synchronize();
    each = begin.elapsed_time(end) * 1e-3 / calls;
  }
  const auto median = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), median, seconds.end());
  for (auto _ : state) state.SetIterationTime(*median);
}

inline bool lacks_gpu(benchmark::State& state) {
  if (!rush::cuda::is_available()) state.SkipWithError("no CUDA device");
  return !rush::cuda::is_available();
}
