// Transfer learning: a pretrained body without its last layers becomes the body of another net, partly frozen; learning
// rates for each of its parts.
#include <torch/torch.h>

#include <iomanip>
#include <iostream>

namespace zoo {

struct BasicBlockImpl : torch::nn::Module {
  BasicBlockImpl(int64_t planes, int64_t out_planes, int64_t stride = 1)
      : conv1(torch::nn::Conv2dOptions(planes, out_planes, 3).stride(stride).padding(1).bias(false)),
        bn1(out_planes),
        conv2(torch::nn::Conv2dOptions(out_planes, out_planes, 3).padding(1).bias(false)),
        bn2(out_planes) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    if (stride != 1 || planes != out_planes) {
      downsample = torch::nn::Sequential(
          torch::nn::Conv2d(torch::nn::Conv2dOptions(planes, out_planes, 1).stride(stride).bias(false)),
          torch::nn::BatchNorm2d(out_planes));
      register_module("downsample", downsample);
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    auto out = bn1->forward(conv1->forward(x)).relu_();
    out = bn2->forward(conv2->forward(out));
    out += downsample.is_empty() ? x : downsample->forward(x);
    return torch::relu(out);
  }
  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d bn2;
  torch::nn::Sequential downsample{nullptr};
};
TORCH_MODULE(BasicBlock);

}  // namespace zoo

static torch::nn::Sequential make_pretrained() {
  torch::nn::Sequential net;
  net->push_back("stem", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3).padding(1)));
  net->push_back("layer1", zoo::BasicBlock(4, 4));
  net->push_back("layer2", zoo::BasicBlock(4, 8, 2));
  net->push_back("pool", torch::nn::AdaptiveAvgPool2d(1));
  net->push_back("flatten", torch::nn::Flatten(torch::nn::FlattenOptions().start_dim(1)));
  net->push_back("fc", torch::nn::Linear(8, 10));
  return net;
}

static void train(torch::nn::Sequential& net, torch::optim::Optimizer& optimizer, int64_t classes, int steps) {
  for (int step = 0; step < steps; ++step) {
    auto target = torch::randint(classes, {6}, torch::kLong);
    auto images = torch::randn({6, 3, 8, 8}) * 0.2 + target.to(torch::kFloat).view({6, 1, 1, 1});
    optimizer.zero_grad();
    auto output = net->forward(images);
    auto loss = torch::nn::functional::cross_entropy(output, target);
    loss.backward();
    optimizer.step();
    if (step % 2 == 1) std::cout << "loss " << std::fixed << std::setprecision(3) << loss.item<float>() << "\n";
  }
}

int main() {
  torch::manual_seed(17);
  auto pretrained = make_pretrained();
  torch::optim::SGD sgd(pretrained->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9).nesterov(true));
  train(pretrained, sgd, 10, 4);

  // Everything but the last layer, then a new head.
  torch::nn::Sequential net;
  auto children = pretrained->named_children();
  for (const auto& item : children) {
    if (item.key() != "fc")
      net->push_back(
          item.key(),
          torch::nn::AnyModule(
              item.key() == "stem"
                  ? torch::nn::AnyModule(std::dynamic_pointer_cast<torch::nn::Conv2dImpl>(item.value()))
              : item.key() == "pool"
                  ? torch::nn::AnyModule(std::dynamic_pointer_cast<torch::nn::AdaptiveAvgPool2dImpl>(item.value()))
              : item.key() == "flatten"
                  ? torch::nn::AnyModule(std::dynamic_pointer_cast<torch::nn::FlattenImpl>(item.value()))
                  : torch::nn::AnyModule(std::dynamic_pointer_cast<zoo::BasicBlockImpl>(item.value()))));
  }
  net->push_back("dropout", torch::nn::Dropout(0.25));
  net->push_back("head", torch::nn::Linear(torch::nn::LinearOptions(8, 3)));
  std::cout << net << "\n";

  for (auto& p : net[0]->parameters()) p.requires_grad_(false);
  for (auto& pair : net->named_parameters()) {
    if (pair.key().rfind("layer1.", 0) == 0) pair.value().set_requires_grad(false);
  }
  for (const auto& pair : net->named_parameters()) {
    std::cout << std::left << std::setw(28) << pair.key() << std::right << std::setw(5) << pair.value().numel()
              << (pair.value().requires_grad() ? " learns" : " frozen") << "\n";
  }

  std::vector<torch::Tensor> body, head;
  for (const auto& pair : net->named_parameters()) {
    if (!pair->requires_grad()) continue;
    (pair.key().find("head") == 0 ? head : body).push_back(*pair);
  }
  std::vector<torch::optim::OptimizerParamGroup> groups{
      torch::optim::OptimizerParamGroup(body, std::make_unique<torch::optim::AdamWOptions>(1e-3)),
      torch::optim::OptimizerParamGroup(head, std::make_unique<torch::optim::AdamWOptions>(1e-2))};
  torch::optim::AdamW adam(groups, torch::optim::AdamWOptions().weight_decay(0.1));
  auto frozen = net[1]->named_parameters()["conv1.weight"].clone();
  net->train();
  train(net, adam, 3, 6);
  std::cout << torch::equal(frozen, net[1]->named_parameters()["conv1.weight"]) << " "
            << net->at<zoo::BasicBlockImpl>(2).bn1->num_batches_tracked.item<int64_t>() << "\n";
  net->eval();
  std::cout << torch::softmax(net->forward(torch::ones({2, 3, 8, 8})), 1).sum(1) << "\n"
            << net->forward(torch::ones({1, 3, 8, 8})).argmax(1) << "\n";
  return 0;
}
