// A linear layer of n inputs, n outputs and n rows, with a dense weight and with a 2:4 one through cuSPARSELt, whose
// sparse tensor cores have twice the arithmetic.
#include "benchmarks/cuda/time_on_device.h"
#include "rushlight.h"

namespace {

using namespace rush;

void register_linear(int64_t n, ScalarType dtype, bool compressed) {
  const auto measure = [=](benchmark::State& state) {
    if (lacks_gpu(state)) return;
    const NoGradGuard no_grad;
    nn::Linear dense(n, n);
    dense->to(kCUDA, dtype);
    dense->weight.set_data(sparse::prune_semi_structured(dense->weight.detach()));
    const Tensor x = randn({n, n}, TensorOptions(dtype).device(kCUDA));
    try {
      if (compressed) {
        const nn::SemiStructuredLinear sparse(dense);
        time_on_device(
            state, [&] { sparse->forward(x); }, 10);
      } else {
        time_on_device(
            state, [&] { dense->forward(x); }, 10);
      }
    } catch (const NotImplementedError& error) {  // no cuSPARSELt
      state.SkipWithError(error.what());
    }
    // The sparse one's as if it were dense.
    state.counters["flops"] =
        benchmark::Counter(2.0 * static_cast<double>(n * n * n), benchmark::Counter::kIsIterationInvariantRate);
  };
  const std::string name = str("cuda_semi_structured/", compressed ? "linear" : "dense", n, "/", dtype);
  benchmark::RegisterBenchmark(name.c_str(), measure)->UseManualTime()->Iterations(10)->Unit(benchmark::kMillisecond);
}

const bool registered = [] {
  for (const ScalarType dtype : {kFloat16, kBFloat16}) {
    for (const bool compressed : {false, true}) register_linear(4096, dtype, compressed);
  }
  return true;
}();

}  // namespace
