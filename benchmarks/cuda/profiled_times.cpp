// The device's time of products and convolutions as a profile tells it, beside what torch.profiler tells of the same:
//   cuda_profiler/mmSIZE/DTYPE, cuda_profiler/convCHANNELSxSIZE/DTYPE
#include <string>

#include "benchmarks/cuda/time_on_device.h"
#include "rushlight.h"

namespace {

using namespace rush;

constexpr int kCalls = 20;

template <class Call>
void tell(benchmark::State& state, const char* op, const Call& call) {
  if (lacks_gpu(state)) return;
  const NoGradGuard no_grad;
  for (int i = 0; i < 3; ++i) call();
  cuda::synchronize();
  for (auto _ : state) {
    profiler::Profile profile;
    for (int i = 0; i < kCalls; ++i) call();
    profile.stop();
    const profiler::KeyAverages averages = profile.key_averages();
    const profiler::Average* average = averages.find(op);
    if (!average || average->count != kCalls) return state.SkipWithError("the profile lacks the calls");
    state.SetIterationTime(average->device_time_total * 1e-6 / kCalls);
  }
}

const bool registered = [] {
  static constexpr struct {
    const char* name;
    ScalarType dtype;
  } dtypes[] = {{"float32", kFloat32}, {"bfloat16", kBFloat16}, {"float16", kFloat16}};
  const auto add = [](const std::string& name, const auto& measure) {
    benchmark::RegisterBenchmark(name.c_str(), measure)->UseManualTime()->Iterations(5)->Unit(benchmark::kMicrosecond);
  };
  for (const auto& [name, dtype] : dtypes) {
    const TensorOptions options = TensorOptions(dtype).device(kCUDA);
    for (const int64_t n : {512, 2048, 4096}) {
      add(str("cuda_profiler/mm", n, "/", name), [options, n](benchmark::State& state) {
        if (lacks_gpu(state)) return;
        const Tensor a = randn({n, n}, options), b = randn({n, n}, options);
        tell(state, "aten::mm", [&] { return a.mm(b); });
      });
    }
    for (const auto& [channels, size] : {std::pair<int64_t, int64_t>{64, 56}, {256, 14}, {512, 7}}) {
      add(str("cuda_profiler/conv", channels, "x", size, "/", name),
          [options, channels = channels, size = size](benchmark::State& state) {
            if (lacks_gpu(state)) return;
            const Tensor x = randn({64, channels, size, size}, options).contiguous(MemoryFormat::ChannelsLast);
            const Tensor w = randn({channels, channels, 3, 3}, options).contiguous(MemoryFormat::ChannelsLast);
            tell(state, "aten::convolution", [&] { return convolution(x, w, {}, 1, 1, 1, false, 0, 1); });
          });
    }
  }
  return true;
}();

}  // namespace
