// The program that docs/walk_captured_graph.md walks through: a step with random numbers, captured and replayed.
#include <cstdio>

#include "backends/cuda/cuda.h"
#include "rushlight.h"

namespace {

rush::Tensor noisy_step(const rush::Tensor& x) {
  const rush::Tensor noise = rush::rand_like(x);
  return noise + x * 2;
}

}  // namespace

int main() {
  if (!rush::cuda::is_available()) return std::puts("skipped: no CUDA device") < 0;
  rush::manual_seed(7);
  const rush::Tensor x = rush::ones({1024}, rush::kCUDA);
  {
    const rush::StreamGuard on_captured(rush::cuda::capture_stream());
    rush::cuda::synchronize();
    noisy_step(x);
  }
  rush::cuda::CUDAGraph graph;
  rush::Tensor y;
  {
    const rush::cuda::graph capture(graph);
    y = noisy_step(x);
  }
  graph.replay();
  const rush::Tensor first = y.clone();
  graph.replay();
  return rush::equal(first, y) ? 1 : 0;
}
