// Tensors, modules and optimisers go through files and come back as they were.
#include "show.h"

struct NetImpl : torch::nn::Module {
  NetImpl() {
    fc1 = register_module("fc1", torch::nn::Linear(3, 4));
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
    fc2 = register_module("fc2", torch::nn::Linear(4, 2));
  }
  torch::Tensor forward(torch::Tensor x) { return fc2(torch::relu(norm(fc1(x)))); }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Net);

static double train(Net& net, torch::optim::Optimizer& optimizer, int from, int to) {
  torch::Tensor loss;
  for (int step = from; step < to; ++step) {
    optimizer.zero_grad();
    loss = net->forward(wave({6, 3}, step)).pow(2).mean();
    loss.backward();
    optimizer.step();
  }
  return loss.item<double>();
}

int main(int, char** argv) {
  // Beside the program; removed at the end.
  const auto file = [&](const char* name) { return std::string(argv[0]) + "-" + name; };

  const torch::Tensor tensor = wave({2, 3}, 0.5);
  torch::save(tensor, file("tensor.pt"));
  torch::Tensor loaded;
  torch::load(loaded, file("tensor.pt"));
  show("tensor", loaded);

  const std::vector<torch::Tensor> list = {wave({2}, 1), torch::arange(3)};
  torch::save(list, file("list.pt"));
  std::vector<torch::Tensor> loaded_list;
  torch::load(loaded_list, file("list.pt"));
  for (const auto& each : loaded_list) show("of a list", each);

  // Training goes on after loading as if it had not stopped.
  Net net;
  fill_parameters(*net);
  torch::optim::Adam optimizer(net->parameters(), 0.05);
  show("loss", train(net, optimizer, 0, 5));
  torch::save(net, file("net.pt"));
  torch::save(optimizer, file("optimizer.pt"));
  show("on", train(net, optimizer, 5, 9));

  Net other;
  other->to(torch::kFloat64);
  torch::load(other, file("net.pt"), torch::kCPU);
  torch::optim::Adam other_optimizer(other->parameters(), 0.05);
  torch::load(other_optimizer, file("optimizer.pt"), torch::Device(torch::kCPU));
  show("again", train(other, other_optimizer, 5, 9));
  show("running mean", other->norm->running_mean);

  try {
    torch::load(other, file("absent.pt"));
  } catch (const std::exception&) {
    std::printf("no such file\n");
  }
  for (const char* name : {"tensor.pt", "list.pt", "net.pt", "optimizer.pt"}) std::remove(file(name).c_str());
  return 0;
}
