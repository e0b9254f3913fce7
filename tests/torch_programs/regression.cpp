// A polynomial is fitted by one optimiser after another, with a schedule and with a closure.
#include <functional>
#include <memory>

#include "show.h"

namespace F = torch::nn::functional;

static torch::Tensor features(const torch::Tensor& x) { return torch::stack({x, x.pow(2), x.pow(3)}, 1); }

// The true weights are 0.9, -1.2, 0.5 and the bias 0.3.
static torch::Tensor truth(const torch::Tensor& x) {
  const torch::Tensor weight = torch::tensor({0.9, -1.2, 0.5}, torch::kFloat64);
  return features(x).mv(weight).unsqueeze(1) + 0.3;
}

static void fit(const char* name,
                const std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)>& make) {
  torch::nn::Linear model(3, 1);
  fill_parameters(*model);
  const std::unique_ptr<torch::optim::Optimizer> optimizer = make(model->parameters());
  torch::Tensor loss;
  for (int step = 0; step < 40; ++step) {
    const torch::Tensor x = wave({16}, step * 0.37);
    optimizer->zero_grad();
    loss = F::mse_loss(model(features(x)), truth(x));
    loss.backward();
    optimizer->step();
  }
  show(name, loss);
  show("  weight", model->weight);
  show("  bias", model->bias);
}

int main() {
  using Params = std::vector<torch::Tensor>;
  fit("SGD", [](Params p) {
    return std::make_unique<torch::optim::SGD>(
        p, torch::optim::SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(1e-3));
  });
  fit("Adam", [](Params p) { return std::make_unique<torch::optim::Adam>(p, torch::optim::AdamOptions(0.05)); });
  fit("AMSGrad", [](Params p) {
    return std::make_unique<torch::optim::Adam>(p, torch::optim::AdamOptions(0.05).amsgrad(true).eps(1e-6));
  });
  fit("AdamW", [](Params p) {
    return std::make_unique<torch::optim::AdamW>(p, torch::optim::AdamWOptions(0.05).weight_decay(0.02));
  });
  fit("RMSprop", [](Params p) {
    return std::make_unique<torch::optim::RMSprop>(p, torch::optim::RMSpropOptions(0.02).alpha(0.9).centered(true));
  });
  fit("Adagrad", [](Params p) {
    return std::make_unique<torch::optim::Adagrad>(p, torch::optim::AdagradOptions(0.2).lr_decay(0.01));
  });

  // L-BFGS evaluates the loss as often as it likes.
  torch::nn::Linear model(3, 1);
  fill_parameters(*model);
  const torch::Tensor x = wave({16}, 0);
  torch::optim::LBFGS lbfgs(model->parameters(), torch::optim::LBFGSOptions(1).max_iter(6).history_size(4));
  for (int step = 0; step < 3; ++step) {
    const torch::Tensor loss = lbfgs.step([&] {
      lbfgs.zero_grad();
      torch::Tensor value = torch::mse_loss(model->forward(features(x)), truth(x));
      value.backward();
      return value;
    });
    show("L-BFGS", loss);
  }
  show("  weight", model->weight);

  // A robust loss, gradients that are clipped, and a rate that the program itself lowers.
  torch::nn::Linear scheduled(torch::nn::LinearOptions(3, 1).bias(false));
  fill_parameters(*scheduled);
  torch::optim::SGD sgd(scheduled->parameters(), 0.2);
  torch::nn::SmoothL1Loss criterion(torch::nn::SmoothL1LossOptions().reduction(torch::kSum));
  for (int step = 1; step <= 12; ++step) {
    sgd.zero_grad();
    torch::Tensor loss = criterion(scheduled(features(x)), truth(x)) / 16;
    loss.backward();
    torch::nn::utils::clip_grad_norm_(scheduled->parameters(), 0.5);
    sgd.step();
    for (auto& group : sgd.param_groups()) group.options().set_lr(group.options().get_lr() * 0.9);
    if (step % 3 == 0) show("clipped", loss);
  }
  show("  rate", static_cast<torch::optim::SGDOptions&>(sgd.param_groups()[0].options()).lr());
  show("  weight", scheduled->weight);
  return 0;
}
