// Optimisers: groups with options of their own, changing rates, schedulers, closures; losses from libtorch's random
// stream.
#include "show.h"

template <class Optimizer, class Options>
static void run(const char* name, Options options, int steps = 8) {
  torch::manual_seed(9);
  torch::nn::Sequential net(torch::nn::Linear(4, 8), torch::nn::Tanh(), torch::nn::Linear(8, 1));
  Optimizer optimizer(net->parameters(), options);
  const torch::Tensor x = torch::randn({16, 4}), y = x.sum(1, true).sin();
  double last = 0;
  for (int i = 0; i < steps; ++i) {
    auto closure = [&] {
      optimizer.zero_grad();
      torch::Tensor loss = torch::mse_loss(net->forward(x), y);
      loss.backward();
      return loss;
    };
    last = optimizer.step(closure).template item<double>();
  }
  show(name, last);
}

int main() {
  using namespace torch::optim;
  run<SGD>("SGD", SGDOptions(0.1));
  run<SGD>("SGD with momentum", SGDOptions(0.1).momentum(0.9).weight_decay(1e-3).nesterov(true));
  run<Adam>("Adam", AdamOptions(0.05));
  run<Adam>("Adam, amsgrad", AdamOptions(0.05).betas({0.8, 0.99}).amsgrad(true).weight_decay(0.01));
  run<AdamW>("AdamW", AdamWOptions(0.05).weight_decay(0.1));
  run<RMSprop>("RMSprop", RMSpropOptions(0.01).centered(true).momentum(0.5));
  run<Adagrad>("Adagrad", AdagradOptions(0.1).lr_decay(0.01));
  run<LBFGS>("LBFGS", LBFGSOptions(0.5).max_iter(4), 3);

  torch::manual_seed(3);
  torch::nn::Linear first(3, 3), second(3, 1);
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(first->parameters());
  groups.emplace_back(second->parameters(), std::make_unique<SGDOptions>(SGDOptions(0.5).momentum(0.1)));
  SGD optimizer(groups, SGDOptions(0.1));
  optimizer.add_param_group(OptimizerParamGroup(std::vector<torch::Tensor>{torch::ones({2}, torch::requires_grad())}));
  for (auto& group : optimizer.param_groups()) {
    const auto& options = static_cast<SGDOptions&>(group.options());
    std::printf("%zu tensors, rate %.2f, momentum %.2f\n", group.params().size(), options.lr(), options.momentum());
  }
  for (int i = 0; i < 4; ++i) {
    optimizer.zero_grad();
    second(torch::relu(first(torch::ones({1, 3})))).sum().backward();
    optimizer.step();
    for (auto& group : optimizer.param_groups()) group.options().set_lr(group.options().get_lr() * 0.5);
    std::printf("%.4f %.4f\n", optimizer.param_groups()[0].options().get_lr(),
                optimizer.param_groups()[1].options().get_lr());
  }
  for (auto& group : optimizer.param_groups()) group.options().set_lr(0.01);
  show("weights", second->weight);
  ReduceLROnPlateauScheduler plateau(optimizer, ReduceLROnPlateauScheduler::min, /*factor=*/0.1f, /*patience=*/1);
  for (const float metric : {1.0f, 1.0f, 1.0f, 1.0f}) plateau.step(metric);
  std::printf("%.5f\n", optimizer.param_groups()[0].options().get_lr());
  show("clipped from", torch::nn::utils::clip_grad_norm_(first->parameters(), 0.01));
  auto parameters = torch::nn::utils::parameters_to_vector(first->parameters());
  std::cout << parameters.sizes() << std::endl;
}
