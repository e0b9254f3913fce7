// rush::compile beside torch.compile: a chain of twenty element-wise operators, and a whole training step of a GPT that
// is written in plain modules. And beside the library's own kernels: softmax, norms and cross entropy that are written
// out in primitives.
#include <benchmark/benchmark.h>

#include <string>

#include "backends/cuda/cuda.h"
#include "benchmarks/fastest_settings.h"
#include "benchmarks/nets/language.h"
#include "core/str.h"
#include "rushlight.h"

namespace {

using namespace rush;

bool lacks(DeviceType device, benchmark::State& state) {
  const bool lacks = device == kCUDA && !cuda::is_available();
  if (lacks) state.SkipWithError("no CUDA device");
  return lacks;
}

// The host waits for the device after so many calls.
template <class Call>
void time_calls(benchmark::State& state, DeviceType device, int calls, const Call& call) {
  const auto make = [&] {
    for (int i = 0; i < calls; ++i) call();
    if (device == kCUDA) cuda::synchronize();
  };
  for (int i = 0; i < 8; ++i) call();
  make();
  for (auto _ : state) make();
  state.counters["per_call"] =
      benchmark::Counter(calls, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// Over 64 MiB. Eager reads and writes them twenty times.
void chain(benchmark::State& state, DeviceType device, bool is_compiled) {
  if (lacks(device, state)) return;
  const NoGradGuard no_grad;
  const auto twenty = [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 5; ++i) y = (y * 1.1 + 0.3).mul(x).relu();
    return y;
  };
  auto compiled = compile(twenty);
  const Tensor x = randn({16, 1024, 1024}, device);
  time_calls(state, device, device == kCUDA ? 50 : 1, [&] { is_compiled ? compiled(x) : twenty(x); });
}

// nanoGPT's shakespeare-char: 6 layers, 384 wide, batch 64 x 256, dropout 0.2, bfloat16, clipped gradients.
void shakespeare(benchmark::State& state, bool is_compiled, bool is_graph) {
  if (lacks(kCUDA, state)) return;
  const FastestSettings settings;
  manual_seed(0);
  plain::Gpt model(plain::GptSize{65, 256, 6, 6, 384, 0.2});
  model->to(kCUDA);
  optim::AdamW optimizer(model->parameters(), optim::AdamWOptions(1e-3).capturable(is_graph));
  const TensorOptions whole = TensorOptions(kInt64).device(kCUDA);
  const Tensor tokens = randint(0, 65, {64, 256}, whole), next = randint(0, 65, {64, 256}, whole);
  const auto take = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const autocast::Autocast lower(kCUDA, kBFloat16);
      loss = nn::functional::cross_entropy(model(x).flatten(0, 1), y.flatten());
    }
    loss.backward();
    const Tensor norm = nn::utils::get_total_norm(nn::utils::gradients_of(model->parameters()));
    nn::utils::clip_grads_with_norm_(model->parameters(), 1, norm);
    optimizer.step();
    return loss;
  };
  auto compiled = compile(take);
  const auto call = [&](const Tensor& x, const Tensor& y) { return is_compiled ? compiled(x, y) : take(x, y); };
  graphs::GraphedStep graph(call);
  time_calls(state, kCUDA, 50, [&] { is_graph ? graph(tokens, next) : call(tokens, next); });
  if (!compiled.obstacle().empty()) state.SkipWithError(compiled.obstacle().c_str());
}

struct Rows {
  Tensor x, w, b, targets;
};
// 16-bit numbers are computed with in float, as the library's kernels do.
Tensor written_softmax(const Rows& r) {
  const Tensor x = r.x.to(kFloat32), e = (x - x.amax({-1}, true)).exp();
  return (e / e.sum({-1}, true)).to(r.x.scalar_type());
}
Tensor written_layer_norm(const Rows& r) {
  const Tensor x = r.x.to(kFloat32), centered = x - x.mean({-1}, true);
  const Tensor scale = ((centered * centered).mean({-1}, true) + 1e-5).rsqrt();
  return (centered * scale * r.w + r.b).to(r.x.scalar_type());
}
Tensor written_rms_norm(const Rows& r) {
  const Tensor x = r.x.to(kFloat32);
  return (x * ((x * x).mean({-1}, true) + 1e-5).rsqrt() * r.w).to(r.x.scalar_type());
}
Tensor written_cross_entropy(const Rows& r) {
  const Tensor x = r.x.to(kFloat32), largest = x.amax({-1}, true);
  const Tensor log_sums = (x - largest).exp().sum({-1}, true).log() + largest;
  return (log_sums - r.x.gather(1, r.targets.unsqueeze(1)).to(kFloat32)).mean();
}
Tensor own_softmax(const Rows& r) { return softmax(r.x, -1); }
Tensor own_layer_norm(const Rows& r) { return layer_norm(r.x, {r.x.size(1)}, r.w, r.b); }
Tensor own_rms_norm(const Rows& r) { return rms_norm(r.x, {r.x.size(1)}, r.w, 1e-5); }
Tensor own_cross_entropy(const Rows& r) { return nn::functional::cross_entropy(r.x, r.targets); }

struct RowFunction {
  const char* name;
  int64_t rows, columns;
  Tensor (*written_out)(const Rows& rows);
  Tensor (*own)(const Rows& rows);
};
constexpr RowFunction kRowFunctions[] = {{"softmax", 8192, 1024, written_softmax, own_softmax},
                                         {"layer_norm", 8192, 1024, written_layer_norm, own_layer_norm},
                                         {"rms_norm", 8192, 4096, written_rms_norm, own_rms_norm},
                                         {"cross_entropy", 8192, 8192, written_cross_entropy, own_cross_entropy}};

void measure_rows(benchmark::State& state, const RowFunction& function, ScalarType dtype, bool is_compiled) {
  if (lacks(kCUDA, state)) return;
  const NoGradGuard no_grad;
  const TensorOptions like = TensorOptions(dtype).device(kCUDA);
  const Rows rows{randn({function.rows, function.columns}, like), randn({function.columns}, like),
                  randn({function.columns}, like),
                  randint(0, function.columns, {function.rows}, TensorOptions(kInt64).device(kCUDA))};
  auto compiled = compile([&](const Tensor& x) { return function.written_out({x, rows.w, rows.b, rows.targets}); });
  time_calls(state, kCUDA, 100, [&] { is_compiled ? compiled(rows.x) : function.own(rows); });
}

void in_milliseconds(benchmark::internal::Benchmark* one) {
  one->UseRealTime()->Unit(benchmark::kMillisecond)->MinTime(2);
}
BENCHMARK_CAPTURE(chain, cpu, kCPU, true)->Name("compile/chain20")->Apply(in_milliseconds);
BENCHMARK_CAPTURE(chain, cpu_eager, kCPU, false)->Name("eager/chain20")->Apply(in_milliseconds);
BENCHMARK_CAPTURE(chain, cuda, kCUDA, true)->Name("cuda_compile/chain20")->Apply(in_milliseconds);
BENCHMARK_CAPTURE(chain, cuda_eager, kCUDA, false)->Name("cuda_eager/chain20")->Apply(in_milliseconds);
BENCHMARK_CAPTURE(shakespeare, graph, true, true)->Name("cuda_compile/gpt_shakespeare")->Apply(in_milliseconds);
BENCHMARK_CAPTURE(shakespeare, no_graph, true, false)
    ->Name("cuda_compile/gpt_shakespeare_calls")
    ->Apply(in_milliseconds);
BENCHMARK_CAPTURE(shakespeare, eager, false, false)->Name("cuda_eager/gpt_shakespeare")->Apply(in_milliseconds);
BENCHMARK_CAPTURE(shakespeare, eager_graph, false, true)
    ->Name("cuda_eager/gpt_shakespeare_graph")
    ->Apply(in_milliseconds);

const bool has_rows = [] {
  for (const RowFunction& function : kRowFunctions) {
    for (const ScalarType dtype : {kFloat32, kBFloat16}) {
      for (const bool is_compiled : {true, false}) {
        const std::string name =
            str(is_compiled ? "cuda_compile/rows_" : "cuda_eager/rows_", function.name, '/', dtype);
        in_milliseconds(benchmark::RegisterBenchmark(name.c_str(), [&function, dtype, is_compiled](auto& state) {
          measure_rows(state, function, dtype, is_compiled);
        }));
      }
    }
  }
  return true;
}();

}  // namespace
