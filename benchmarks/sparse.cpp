// Sparse tensors: training steps of an embedding whose gradient has the rows used only, which must not take longer for
// more rows, and products with dense matrices.
#include <benchmark/benchmark.h>

#include <string>

#include "rushlight.h"

namespace {

using namespace rush;

bool lacks(benchmark::State& state, DeviceType type) {
  const bool missing = type == kCUDA && !cuda::is_available();
  if (missing) state.SkipWithError("no CUDA device");
  return missing;
}
void finish(DeviceType type) {
  if (type == kCUDA) cuda::synchronize();
}

// One iteration is one call of run(), which the device is waited for.
template <class Run>
void time_calls(benchmark::State& state, DeviceType type, const Run& run) {
  for (int i = 0; i < 3; ++i) run();
  finish(type);
  for (auto _ : state) {
    run();
    finish(type);
  }
  // The process's, so a row's own where it runs alone.
  if (type == kCUDA) state.counters["peak_bytes"] = static_cast<double>(allocator(kCUDA).stats().max_allocated);
}

constexpr int64_t kBatch = 4096, kWidth = 16;

template <class Optimizer>
void embedding_step(benchmark::State& state, DeviceType type, int64_t rows) {
  if (lacks(state, type)) return;
  manual_seed(1);
  const Tensor weight = zeros({rows, kWidth}, type).requires_grad_();
  const Tensor at = randint(0, rows, kBatch, TensorOptions(kInt64).device(type));
  const Tensor scale = randn({kBatch, kWidth}, type);
  Optimizer optimizer({weight}, {0.01});
  time_calls(state, type, [&] {
    optimizer.zero_grad();
    (embedding(weight, at, -1, false, /*sparse=*/true) * scale).sum().backward();
    optimizer.step();
  });
}

// (n, n) with `entries` at random places in each row.
Tensor random_csr(int64_t n, int64_t entries, DeviceType type) {
  const TensorOptions ints = TensorOptions(kInt64).device(type);
  const int64_t stretch = n / entries;
  const Tensor col = randint(0, stretch, {n, entries}, ints) + arange(entries, ints) * stretch;
  return _sparse_compressed_tensor_unsafe(arange(n + 1, ints) * entries, col.view(-1), randn(n * entries, type), {n, n},
                                          TensorOptions().layout(kSparseCsr));
}

void sparse_by_dense(benchmark::State& state, DeviceType type, int64_t n) {
  if (lacks(state, type)) return;
  const NoGradGuard no_grad;
  manual_seed(1);
  const Tensor a = random_csr(n, 16, type), b = randn({n, 64}, type);
  time_calls(state, type, [&] { benchmark::DoNotOptimize(sparse::mm(a, b)); });
}

const bool registered = [] {
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime()->Unit(benchmark::kMicrosecond);
  };
  for (const DeviceType type : {kCPU, kCUDA}) {
    const std::string device = device_type_name(type);
    for (const int64_t rows : {100000, 1000000, 10000000}) {
      add(str("sparse/", device, "/embedding_sgd/", rows),
          [=](benchmark::State& state) { embedding_step<optim::SGD>(state, type, rows); });
      add(str("sparse/", device, "/embedding_sparse_adam/", rows),
          [=](benchmark::State& state) { embedding_step<optim::SparseAdam>(state, type, rows); });
    }
    const int64_t n = type == kCUDA ? 1000000 : 100000;
    add(str("sparse/", device, "/mm_16_by_64/", n), [=](benchmark::State& state) { sparse_by_dense(state, type, n); });
  }
  return true;
}();

}  // namespace
