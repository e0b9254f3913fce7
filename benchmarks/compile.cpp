// rush::compile beside torch.compile: a chain of twenty element-wise operators, and a whole training step of a GPT that
// is written in plain modules.
#include <benchmark/benchmark.h>

#include "backends/cuda/cuda.h"
#include "benchmarks/nets/language.h"
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

}  // namespace
