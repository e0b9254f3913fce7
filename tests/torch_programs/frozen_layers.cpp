// Fine-tuning: the body of a net stays as it is, its head is replaced and learns, at rates of several groups.
#include "show.h"

static torch::nn::Sequential make_body() {  // (N, 2, 6, 6) -> (N, 24)
  return torch::nn::Sequential({
      {"conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 4, 3).padding(1))},
      {"norm1", torch::nn::BatchNorm2d(4)},
      {"relu1", torch::nn::ReLU(torch::nn::ReLUOptions(true))},
      {"pool1", torch::nn::MaxPool2d(2)},
      {"conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 6, 2))},
      {"tanh", torch::nn::Functional(torch::tanh)},
      {"flatten", torch::nn::Flatten()},
  });
}

class NetImpl : public torch::nn::Cloneable<NetImpl> {
 public:
  explicit NetImpl(int64_t classes) : classes(classes) { reset(); }
  void reset() override {
    body = register_module("body", make_body());
    head = register_module("head", torch::nn::Linear(24, classes));
    scale = register_parameter("scale", torch::ones({1}, torch::kFloat64));
    steps = register_buffer("steps", torch::zeros({1}, torch::kInt64));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    if (is_training()) steps += 1;
    return head->forward(body->forward(x)) * scale;
  }

  int64_t classes;
  torch::nn::Sequential body{nullptr};
  torch::nn::Linear head{nullptr};
  torch::Tensor scale, steps;
};
TORCH_MODULE(Net);

static double checksum(const std::vector<torch::Tensor>& tensors) {
  double sum = 0;
  for (const auto& tensor : tensors) sum += tensor.detach().abs().sum().item<double>();
  return sum;
}

int main() {
  Net net(5);
  fill_parameters(*net);
  for (const auto& item : net->named_parameters()) {
    std::printf("%s: %lld\n", item.key().c_str(), static_cast<long long>(item.value().numel()));
  }

  for (auto& parameter : net->body->parameters()) parameter.requires_grad_(false);
  net->train();
  net->body->eval();
  net->head = torch::nn::Linear(24, 3);
  net->replace_module("head", net->head);
  fill_parameters(*net->head, 0.2);

  // The head at one rate, the scale at another; what is frozen belongs to no group.
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(net->head->parameters());
  groups.emplace_back(std::vector<torch::Tensor>{net->scale},
                      std::make_unique<torch::optim::SGDOptions>(torch::optim::SGDOptions(0.01).momentum(0.5)));
  torch::optim::SGD optimizer(groups, torch::optim::SGDOptions(0.1).momentum(0.9));

  const torch::Tensor x = wave({8, 2, 6, 6}, 0.5);
  const torch::Tensor target = torch::arange(8, torch::kInt64).remainder(3);
  const double frozen_before = checksum(net->body->parameters());
  for (int step = 1; step <= 10; ++step) {
    optimizer.zero_grad();
    torch::Tensor loss = torch::nn::functional::cross_entropy(
        net(x), target, torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(0.1));
    loss.backward();
    optimizer.step();
    if (step == 5) {
      for (auto& group : optimizer.param_groups()) {
        auto& options = static_cast<torch::optim::SGDOptions&>(group.options());
        options.lr(options.lr() * 0.5);
      }
    }
    if (step % 2 == 0) show("loss", loss);
  }
  show("rates",
       torch::tensor({optimizer.param_groups()[0].options().get_lr(), optimizer.param_groups()[1].options().get_lr()}));
  show("the body moved by", checksum(net->body->parameters()) - frozen_before);
  show("the body's conv1", net->body->parameters()[0].grad().defined() ? 1 : 0);
  show("head", checksum(net->head->parameters()));
  show("scale", net->scale);
  show("steps", net->steps);

  // A copy has parameters of its own.
  auto copy = std::dynamic_pointer_cast<NetImpl>(net->clone());
  {
    torch::NoGradGuard no_grad;
    copy->scale.mul_(2);
  }
  net->eval();
  copy->eval();
  show("output", net(x.slice(0, 0, 2)));
  show("twice", copy->forward(x.slice(0, 0, 2)) / net(x.slice(0, 0, 2)));

  // Thawed, the first layers learn too.
  net->apply([](torch::nn::Module& module) {
    if (auto* conv = module.as<torch::nn::Conv2d>()) conv->weight.requires_grad_(true);
  });
  int64_t trainable = 0;
  for (const auto& parameter : net->parameters()) trainable += parameter.requires_grad() ? parameter.numel() : 0;
  std::printf("trainable: %lld\n", static_cast<long long>(trainable));
  return 0;
}
