#include "tests/memory/training_programs.h"

#include "examples/gpt/gpt.h"
#include "examples/mnist/net.h"
#include "examples/resnet/training.h"
#include "rushlight.h"

namespace training_programs {

using namespace rush;

namespace {

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

}  // namespace

void train_gpt(Device device, const Gpt& g) {
  examples::GPT net(examples::GPTConfig{g.vocabulary, g.block, g.layers, g.heads, g.width});
  net->checkpoint_blocks(g.checkpointed);
  net->to(device);
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-3));
  const Tensor tokens = zeros({g.batch, g.block}, TensorOptions(kLong).device(device));
  take_two_steps(net, optimizer, device, g.lower, [&](examples::GPT& gpt) { return gpt->loss(tokens, tokens); });
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

void train_resnet(Device device, const ResNet& resnet) {
  examples::ResNetTrainingOptions options;
  options.model = examples::ResNetConfig::of(resnet.model);
  options.batch_size = resnet.batch;
  options.image_size = resnet.image;
  options.channels_last = resnet.channels_last;
  options.device = device;
  examples::ResNetTraining training(options);
  training.step();
  training.step();
}

}  // namespace training_programs
