// Modules side by side: parallel_apply, data_parallel on a list of devices, and what both refuse.
#include <torch/nn/parallel/data_parallel.h>
#include <torch/torch.h>

#include <iostream>

namespace nn = torch::nn;

struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    body = register_module("body", nn::Sequential(nn::Linear(3, 4), nn::Tanh()));
    head = register_module("head", nn::Linear(4, 2));
  }
  torch::Tensor forward(torch::Tensor x) { return head(body->forward(x)); }
  nn::Sequential body{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(Net);

int main() {
  torch::manual_seed(3);
  Net net;
  const auto x = torch::randn({4, 3});
  const auto alone = nn::parallel::data_parallel(net, x, std::vector<torch::Device>{torch::kCPU});
  std::cout << torch::equal(alone, net(x)) << alone.sizes() << "\n";

  std::vector<nn::Linear> layers = {nn::Linear(3, 2), nn::Linear(3, 2)};
  const auto outputs = nn::parallel::parallel_apply(layers, {x, 2 * x});
  std::cout << outputs.size() << torch::allclose(outputs[1], layers[1](2 * x)) << "\n";
  (outputs[0].sum() + outputs[1].square().sum()).backward();
  std::cout << torch::allclose(layers[0]->weight.grad()[0], x.sum(0)) << layers[1]->bias.grad().defined() << "\n";

  // Copies pass their gradients on.
  const std::vector<torch::Device> devices = {torch::kCPU, torch::kCPU};
  auto copies = nn::parallel::replicate(net, devices);
  std::cout << copies.size() << copies[0]->head->weight.is_leaf() << net->head->weight.is_leaf()
            << torch::equal(copies[1]->head->weight, net->head->weight) << "\n";
  const auto parts = x.chunk(2);
  const auto both = nn::parallel::parallel_apply(copies, {parts[0], parts[1]}, devices);
  torch::cat(both).square().sum().backward();
  const auto gradient = net->head->weight.grad().clone();
  net->zero_grad();
  net(x).square().sum().backward();
  std::cout << torch::allclose(gradient, net->head->weight.grad(), 1e-4, 1e-6) << "\n";

  for (int wrong = 0; wrong < 3; ++wrong) {
    try {
      if (wrong == 0) nn::parallel::parallel_apply(layers, {x});
      if (wrong == 1) nn::parallel::parallel_apply(layers, {x, x}, std::vector<torch::Device>{torch::kCPU});
      if (wrong == 2) nn::parallel::parallel_apply(layers, {x, torch::ones({2, 7})});
      std::cout << "nothing thrown\n";
    } catch (const c10::Error& e) {
      const std::string text = e.what();
      std::cout << "refused" << (text.find("as many inputs") != std::string::npos)
                << (text.find("as many devices") != std::string::npos) << "\n";
    }
  }
  return 0;
}
