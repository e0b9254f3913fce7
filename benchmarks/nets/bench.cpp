// Twelve nets of plain modules, trained and run: as they stand, by rush::compile, and that as a CUDA graph. "nets" are
// of sizes for a CPU, "cuda_nets" for a GPU. benchmarks/peers/torch_nets.py has the same for PyTorch.
#include <benchmark/benchmark.h>

#include "backends/cuda/cuda.h"
#include "benchmarks/fastest_settings.h"
#include "benchmarks/nets/nets.h"
#include "rushlight.h"

namespace {

using namespace rush;

enum class Way { Eager, Compiled, Graph };

// The most memory that tensors had on the GPU since the last call.
double peak_bytes() {
#ifdef RUSH_HAS_CUDA
  const auto most = static_cast<double>(cuda::max_memory_allocated());
  cuda::reset_peak_memory_stats();
  return most;
#else
  return 0;
#endif
}

// Several calls to an iteration: a GPU works behind the host, and is waited for at the end of each.
template <class Call>
void time_calls(benchmark::State& state, DeviceType device, const Call& call) {
  const int calls = device == kCUDA ? 10 : 1;
  const auto make = [&] {
    for (int i = 0; i < calls; ++i) call();
    if (device == kCUDA) cuda::synchronize();
  };
  call();
  call();  // is traced, which takes memory of its own
  if (device == kCUDA) peak_bytes();
  make();  // is captured or recorded, in memory that the device keeps for its replays
  for (auto _ : state) make();
  state.counters["per_step"] =
      benchmark::Counter(calls, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  if (device == kCUDA) state.counters["peak_bytes"] = peak_bytes();
}

template <class Function, class... Inputs>
void time_function(benchmark::State& state, DeviceType device, Way way, const Function& function,
                   const Inputs&... inputs) {
  if (way == Way::Eager) return time_calls(state, device, [&] { function(inputs...); });
  auto compiled = compile(function, {.pads_outputs = true});  // as torch.compile does
  if (way == Way::Compiled) {
    time_calls(state, device, [&] { compiled(inputs...); });
  } else {
    graphs::GraphedStep graph([&](const Inputs&... each) { return compiled(each...); });
    time_calls(state, device, [&] { graph(inputs...); });
  }
  if (!compiled.obstacle().empty()) state.SkipWithError(compiled.obstacle().c_str());
}

// On that device, with random numbers from the start.
struct Settings {
  explicit Settings(DeviceType device) {
    set_default_device(device);
    manual_seed(0);
  }
  ~Settings() { set_default_device(kCPU); }

 private:
  FastestSettings fastest_;
};

void run(benchmark::State& state, const std::string& name, DeviceType device, bool is_training, Way way) {
  if (device == kCUDA && !cuda::is_available()) return state.SkipWithError("no CUDA device");
  const Settings settings(device);
  plain::Workload workload = plain::make_workload(name, device == kCPU ? plain::Size::Cpu : plain::Size::Gpu);
  if (is_training) {
    // A net that knows its batch by heart has subnormal gradients, which a CPU multiplies slowly: there it learns
    // little.
    plain::Training train(workload, way == Way::Graph, device == kCPU ? 1e-6 : 1e-3);
    time_function(
        state, device, way, [&](const Tensor& x, const Tensor& y) { return train(x, y); }, workload.x, workload.y);
  } else {
    const NoGradGuard no_grad;
    plain::prepare_for_inference(workload);
    time_function(state, device, way, workload.forward, workload.x);
  }
}

const bool is_registered = [] {
  const std::pair<const char*, Way> ways[] = {
      {"eager", Way::Eager}, {"compiled", Way::Compiled}, {"compiled_graph", Way::Graph}};
  for (const DeviceType device : {kCPU, kCUDA}) {
    for (const std::string& name : plain::names_of_nets()) {
      for (const bool is_training : {true, false}) {
        for (const auto& [end, way] : ways) {
          if (device == kCPU && way == Way::Graph) continue;
          const std::string full =
              str(device == kCUDA ? "cuda_nets/" : "nets/", name, is_training ? "/train/" : "/infer/", end);
          benchmark::RegisterBenchmark(full.c_str(), run, name, device, is_training, way)
              ->UseRealTime()
              ->Unit(benchmark::kMillisecond)
              ->MinTime(1);
        }
      }
    }
  }
  return true;
}();

}  // namespace
