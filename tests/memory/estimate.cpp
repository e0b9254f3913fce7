// What rush::estimate_memory predicts, beside what the CPU's allocator counts for the same program.
#include "core/memory/estimate.h"

#include <doctest/doctest.h>

#include "examples/gpt/gpt.h"
#include "examples/gpt2/pretraining.h"
#include "examples/mnist/net.h"
#include "examples/resnet/training.h"
#include "rushlight.h"

namespace {

using namespace rush;

struct Training {
  const char* name;
  std::function<void(Device)> two_steps;
};

// With a model, its optimiser and a function of the loss.
template <class Net, class Loss>
void take_two_steps(Net& net, optim::Optimizer& optimizer, Device device, std::optional<ScalarType> lower,
                    const Loss& loss_of) {
  for (int step = 0; step < 2; ++step) {
    Tensor loss;
    {
      const autocast::Autocast precision(device.type, lower, lower.has_value());
      loss = loss_of(net);
    }
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
}

void train_gpt(Device device, int64_t width, int64_t layers, std::optional<ScalarType> lower, int64_t checkpointed) {
  examples::GPT net(examples::GPTConfig{512, 128, layers, 4, width});
  net->checkpoint_blocks(checkpointed);
  net->to(device);
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-3));
  const Tensor tokens = zeros({8, 128}, TensorOptions(kLong).device(device));
  take_two_steps(net, optimizer, device, lower, [&](examples::GPT& gpt) { return gpt->loss(tokens, tokens); });
}

void train_mnist(Device device) {
  examples::Net net;
  net->to(device);
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-3));
  const Tensor images = zeros({128, 1, 28, 28}, device), targets = zeros({128}, TensorOptions(kLong).device(device));
  take_two_steps(net, optimizer, device, std::nullopt,
                 [&](examples::Net& n) { return nn::functional::cross_entropy(n(images), targets); });
}

void train_lstm(Device device) {
  nn::LSTM net(nn::LSTMOptions(128, 256).num_layers(2));
  net->to(device);
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  const Tensor input = zeros({64, 32, 128}, device);
  take_two_steps(net, optimizer, device, std::nullopt,
                 [&](nn::LSTM& lstm) { return std::get<0>(lstm->forward(input)).square().mean(); });
}

void train_gcn(Device device) {
  nn::Linear first(512, 256), second(256, 16);
  nn::Sequential net(first, second);
  net->to(device);
  optim::Adam optimizer(net->parameters(), 1e-2);
  const Tensor adjacency = zeros({1024, 1024}, device), features = zeros({1024, 512}, device);
  const Tensor labels = zeros({1024}, TensorOptions(kLong).device(device));
  take_two_steps(net, optimizer, device, std::nullopt, [&](nn::Sequential&) {
    const Tensor hidden = adjacency.mm(first(features)).relu();
    return nn::functional::cross_entropy(adjacency.mm(second(hidden)), labels);
  });
}

void train_resnet(Device device, bool channels_last) {
  examples::ResNetTrainingOptions options;
  options.model = examples::ResNetConfig::of("resnet18");
  options.batch_size = 8;
  options.image_size = 64;
  options.channels_last = channels_last;
  options.device = device;
  examples::ResNetTraining training(options);
  training.step();
  training.step();
}

int64_t measured_peak(const std::function<void(Device)>& program) {
  cpu::empty_cache();
  cpu::reset_peak_memory_stats();
  const int64_t before = cpu::memory_allocated();
  program(kCPU);
  return cpu::max_memory_allocated() - before;
}

TEST_CASE("estimate_memory: within 1 % of what the CPU's allocator counts") {
  const Training trainings[] = {
      {"GPT, 2 blocks of 128", [](Device d) { train_gpt(d, 128, 2, {}, 0); }},
      {"GPT, 4 blocks of 192", [](Device d) { train_gpt(d, 192, 4, {}, 0); }},
      {"GPT, 4 blocks of 192, in bfloat16", [](Device d) { train_gpt(d, 192, 4, kBFloat16, 0); }},
      {"GPT, 4 blocks of 192, 2 checkpointed", [](Device d) { train_gpt(d, 192, 4, {}, 2); }},
      {"GPT, 4 blocks of 192, all checkpointed", [](Device d) { train_gpt(d, 192, 4, {}, 4); }},
      {"GPT, 4 blocks of 192, in bfloat16, all checkpointed", [](Device d) { train_gpt(d, 192, 4, kBFloat16, 4); }},
      {"MNIST's net", train_mnist},
      {"LSTM", train_lstm},
      {"GCN", train_gcn},
      {"ResNet-18", [](Device d) { train_resnet(d, false); }},
      {"ResNet-18, channels last", [](Device d) { train_resnet(d, true); }},
  };
  for (const Training& training : trainings) {
    const MemoryEstimate estimate = estimate_memory([&] { training.two_steps(kMeta); });
    const int64_t measured = measured_peak(training.two_steps);
    const double ratio = static_cast<double>(estimate.peak) / static_cast<double>(measured);
    MESSAGE(training.name, ": ", estimate.peak, " predicted, ", measured, " measured: ", ratio);
    CHECK_MESSAGE(std::abs(ratio - 1) <= 0.01, training.name);
    CHECK(estimate.at_peak.sum() == estimate.peak);
    CHECK(estimate.at_end == 0);
  }
}

TEST_CASE("estimate_memory: checkpointing leaves activations out") {
  const auto activations = [](int64_t checkpointed) {
    const MemoryEstimate estimate = estimate_memory([&] { train_gpt(kMeta, 192, 4, {}, checkpointed); }, kCUDA);
    return estimate.at_peak[MemoryUse::Activation];
  };
  CHECK(activations(4) < activations(0) / 2);
}

TEST_CASE("estimate_memory: as a GPU's allocator rounds, and leaves everything as it was") {
  const auto program = [] { const Tensor a = zeros({3}), b = zeros({200}); };
  CHECK(estimate_memory(program).peak == 12 + 800);
  CHECK(estimate_memory(program, kCUDA).peak == 512 + 1024);
  CHECK(get_default_device() == Device(kCPU));
  CHECK_FALSE(autocast::is_autocast_available(kMeta));
  const Tensor before = zeros({100}, kMeta);
  CHECK(estimate_memory([&] { const Tensor copy = before.clone(); }).peak == 400);
}

TEST_CASE("estimate_memory: what goes wrong") {
  CHECK_THROWS_AS(estimate_memory([] { zeros({1}).item<float>(); }), Error);
  CHECK(get_default_device() == Device(kCPU));
  CHECK_THROWS_WITH_AS(estimate_memory([] { estimate_memory([] {}); }),
                       "estimate_memory: another estimate is being made", Error);
  CHECK(estimate_memory([] { zeros({1}); }).peak == 4);  // after an error, too
}

TEST_CASE("estimate_memory: the largest size that fits") {
  const auto program = [](int64_t n) { const Tensor x = zeros({n, 256}); };
  CHECK(largest_that_fits(program, 10 * 1024, 1000) == 10);
  CHECK(largest_that_fits(program, 10 * 1024, 7) == 7);
  CHECK(largest_that_fits(program, 1023, 1000) == 0);
  CHECK(largest_that_fits(program, 1024 * 1024, 1000) == 1000);
  CHECK_THROWS_AS(largest_that_fits(program, 1024, 0), ValueError);
  CHECK(memory_for_tensors(kCPU) > 0);
  CHECK(memory_for_tensors(kCPU) <= cpu::memory_limit());
}

}  // namespace
