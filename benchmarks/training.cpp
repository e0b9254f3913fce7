// One training step, on the CPU and on CUDA: forward, backward, optimiser. The nets and the batches are those of
// PyTorch's example for MNIST, of nanoGPT's smallest configurations and of GPT-2; ResNets see images of noise.
// benchmarks/peers has the same for PyTorch.
#include <benchmark/benchmark.h>

#include "benchmarks/fastest_settings.h"
#include "core/amp/cast_weights.h"
#include "examples/gpt/gpt.h"
#include "examples/gpt2/pretraining.h"
#include "examples/precision.h"
#include "examples/resnet/training.h"
#include "rushlight.h"

namespace {

using namespace rush;
namespace F = nn::functional;

// Two convolutions, a pool and two linear layers: PyTorch's example for MNIST.
struct CnnImpl : nn::Module {
  nn::Conv2d c1{nn::Conv2dOptions(1, 32, 3)}, c2{nn::Conv2dOptions(32, 64, 3)};
  nn::Dropout d1{0.25}, d2{0.5};
  nn::Linear f1{9216, 128}, f2{128, 10};

  CnnImpl() {
    register_module("c1", c1);
    register_module("c2", c2);
    register_module("d1", d1);
    register_module("d2", d2);
    register_module("f1", f1);
    register_module("f2", f2);
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = d1(F::max_pool2d(F::relu(c2(F::relu(c1(x)))), F::MaxPool2dFuncOptions(2)));
    return log_softmax(f2(d2(F::relu(f1(features.flatten(1))))), 1);
  }
};
RUSH_MODULE(Cnn);

// Several steps to an iteration: a GPU works behind the host, and is waited for at the end of each, and before the
// first.
template <class Step>
void time_steps(benchmark::State& state, DeviceType device, int64_t batch, const Step& step) {
  const int steps = device == kCUDA ? 50 : 1;
  const auto take = [&](int count) {
    for (int i = 0; i < count; ++i) step();
    if (device == kCUDA) cuda::synchronize();
  };
  take(3 * steps);
  for (auto _ : state) take(steps);
  state.SetItemsProcessed(state.iterations() * steps * batch);
  state.counters["per_step"] =
      benchmark::Counter(steps, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

bool lacks(DeviceType device, benchmark::State& state) {
  const bool lacks = device == kCUDA && !cuda::is_available();
  if (lacks) state.SkipWithError("no CUDA device");
  return lacks;
}

void mnist(benchmark::State& state, DeviceType device, bool is_compiled) {
  if (lacks(device, state)) return;
  const FastestSettings settings;
  const int64_t batch = state.range(0);
  manual_seed(0);
  Cnn net;
  net->to(device);
  optim::Adadelta optimizer(net->parameters(), optim::AdadeltaOptions(1.0).capturable(is_compiled));
  const Tensor images = randn({batch, 1, 28, 28}, device);
  const Tensor digits = randint(0, 10, {batch}, TensorOptions(kInt64).device(device));
  const auto take = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = F::nll_loss(net(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  auto compiled = compile(take);
  time_steps(state, device, batch, [&] { is_compiled ? compiled(images, digits) : take(images, digits); });
}

struct GptSize {
  int64_t batch, length, layers, heads, width;
  double dropout;
  bool as_published;  // as nanoGPT is trained on a GPU: in bfloat16, with clipped gradients
};
void gpt(benchmark::State& state, DeviceType device, GptSize size, bool graphed) {
  if (lacks(device, state)) return;
  const FastestSettings settings;
  constexpr int64_t kCharacters = 65;
  manual_seed(0);
  examples::GPTConfig config{kCharacters, size.length, size.layers, size.heads, size.width};
  config.dropout = size.dropout;
  examples::GPT model(config);
  model->to(device);
  optim::AdamW optimizer(model->parameters(), optim::AdamWOptions(1e-3).capturable(graphed));
  const examples::Precision precision(size.as_published ? "bfloat16" : "float32", device);
  const TensorOptions whole = TensorOptions(kInt64).device(device);
  const Tensor tokens = randint(0, kCharacters, {size.batch, size.length}, whole);
  const Tensor next = randint(0, kCharacters, {size.batch, size.length}, whole);
  const auto take = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const auto scope = precision.scope();
      autocast::cast_weights(model->parameters());
      loss = model->loss(x, y);
    }
    loss.backward();
    if (size.as_published) {
      const Tensor norm = nn::utils::get_total_norm(nn::utils::gradients_of(model->parameters()));
      nn::utils::clip_grads_with_norm_(model->parameters(), 1, norm);
    }
    optimizer.step();
    return loss;
  };
  cuda::GraphedStep graph(take);
  time_steps(state, device, size.batch * size.length, [&] { graphed ? graph(tokens, next) : take(tokens, next); });
}

constexpr GptSize kSmall{12, 64, 4, 4, 128, 0.0, false}, kShakespeare{64, 256, 6, 6, 384, 0.2, true};

// The 124 million parameters of the smallest GPT-2, trained as examples/gpt2 does, on blocks of random tokens.
void gpt2(benchmark::State& state, bool graphed) {
  if (lacks(kCUDA, state)) return;
  const FastestSettings settings;
  manual_seed(0);
  examples::GPTConfig config;
  config.vocab_padding = 47;
  examples::PretrainingOptions options;
  options.batch_size = state.range(0);
  options.device = kCUDA;
  options.dtype = "bfloat16";
  options.graph = graphed;
  constexpr int64_t kTokens = 1 << 20;
  const Tensor tokens = randint(0, config.vocab_size, {kTokens}, kInt32);
  const auto* first = tokens.data_ptr<int32_t>();
  const std::vector<int32_t> train(first, first + kTokens), validation(first, first + 2 * config.block_size);
  examples::RunLog log;
  examples::Pretraining training(examples::GPT(config), examples::TextData(train, validation, config.block_size),
                                 options, log);
  constexpr int kSteps = 5;
  for (int i = 0; i < kSteps; ++i) training.step();
  for (auto _ : state) {
    for (int i = 0; i < kSteps; ++i) training.step();
  }
  state.SetItemsProcessed(state.iterations() * kSteps * training.tokens_in_step());
  state.counters["per_step"] =
      benchmark::Counter(kSteps, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["peak_bytes"] = static_cast<double>(allocator(kCUDA).stats().max_allocated);
}

// Images of 224 x 224, in bfloat16 and channels_last.
void resnet(benchmark::State& state, const char* arch) {
  if (lacks(kCUDA, state)) return;
  const FastestSettings settings;
  manual_seed(0);
  examples::ResNetTrainingOptions options;
  options.model = examples::ResNetConfig::of(arch);
  options.batch_size = state.range(0);
  options.channels_last = true;
  options.dtype = "bfloat16";
  options.device = kCUDA;
  examples::ResNetTraining training(options);
  time_steps(state, kCUDA, options.batch_size, [&] { training.step(); });
}

void in_milliseconds(benchmark::internal::Benchmark* one) {
  one->UseRealTime()->Unit(benchmark::kMillisecond)->MinTime(2);
}
BENCHMARK_CAPTURE(mnist, cpu, kCPU, false)->Name("training/mnist")->Arg(64)->Apply(in_milliseconds);
BENCHMARK_CAPTURE(gpt, cpu, kCPU, kSmall, false)->Name("training/gpt")->Apply(in_milliseconds);
BENCHMARK_CAPTURE(mnist, cuda, kCUDA, false)->Name("cuda_training/mnist")->Arg(64)->Arg(1024)->Apply(in_milliseconds);
BENCHMARK_CAPTURE(mnist, compiled, kCUDA, true)
    ->Name("cuda_training/mnist_compiled")
    ->Arg(64)
    ->Arg(1024)
    ->Apply(in_milliseconds);
BENCHMARK_CAPTURE(resnet, resnet18, "resnet18")->Name("cuda_training/resnet18")->Arg(256)->Apply(in_milliseconds);
BENCHMARK_CAPTURE(resnet, resnet50, "resnet50")->Name("cuda_training/resnet50")->Arg(128)->Apply(in_milliseconds);
BENCHMARK_CAPTURE(gpt, cuda, kCUDA, kShakespeare, false)->Name("cuda_training/gpt_shakespeare")->Apply(in_milliseconds);
BENCHMARK_CAPTURE(gpt, graph, kCUDA, kShakespeare, true)
    ->Name("cuda_training/gpt_shakespeare_graph")
    ->Apply(in_milliseconds);
BENCHMARK_CAPTURE(gpt2, cuda, false)->Name("cuda_training/gpt2")->Arg(32)->Apply(in_milliseconds);
BENCHMARK_CAPTURE(gpt2, graph, true)->Name("cuda_training/gpt2_graph")->Arg(32)->Apply(in_milliseconds);

}  // namespace
