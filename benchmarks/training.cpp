// One training step of small nets on the CPU: forward, backward, optimiser. The nets and the batches are those of
// PyTorch's example for MNIST and of nanoGPT's smallest configuration.
#include <benchmark/benchmark.h>

#include "examples/gpt/gpt.h"
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

void mnist(benchmark::State& state) {
  const int64_t batch = state.range(0);
  manual_seed(0);
  Cnn net;
  optim::Adadelta optimizer(net->parameters(), optim::AdadeltaOptions(1.0));
  const Tensor images = randn({batch, 1, 28, 28}), digits = randint(0, 10, {batch}, kInt64);
  for (auto _ : state) {
    optimizer.zero_grad();
    F::nll_loss(net(images), digits).backward();
    optimizer.step();
  }
  state.SetItemsProcessed(state.iterations() * batch);
}

void gpt(benchmark::State& state) {
  constexpr int64_t kBatch = 12, kLength = 64, kCharacters = 65;
  manual_seed(0);
  examples::GPT model(examples::GPTConfig{kCharacters, kLength, /*n_layer=*/4, /*n_head=*/4, /*n_embd=*/128});
  optim::AdamW optimizer(model->parameters(), optim::AdamWOptions(1e-3));
  const Tensor tokens = randint(0, kCharacters, {kBatch, kLength}, kInt64);
  const Tensor next = randint(0, kCharacters, {kBatch, kLength}, kInt64);
  for (auto _ : state) {
    optimizer.zero_grad();
    model->loss(tokens, next).backward();
    optimizer.step();
  }
  state.SetItemsProcessed(state.iterations() * kBatch * kLength);
}

BENCHMARK(mnist)->Name("training/mnist")->Arg(64)->UseRealTime()->Unit(benchmark::kMillisecond)->MinTime(2);
BENCHMARK(gpt)->Name("training/gpt")->UseRealTime()->Unit(benchmark::kMillisecond)->MinTime(2);

}  // namespace
