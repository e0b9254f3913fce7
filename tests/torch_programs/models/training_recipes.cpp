// Recipes: schedules of the learning rate, accumulated and clipped gradients, L-BFGS, tied weights, initial values,
// averaged weights, and hooks.
#include <torch/torch.h>

#include <iostream>

static torch::Tensor line(const torch::Tensor& x) { return 3 * x - 1; }

static void schedules() {
  auto weight = torch::ones({1}, torch::requires_grad());
  torch::optim::SGD sgd({weight}, 0.8);
  torch::optim::StepLR step(sgd, /*step_size=*/2, /*gamma=*/0.5);
  for (int epoch = 0; epoch < 6; ++epoch) {
    sgd.step();
    step.step();
    std::cout << sgd.param_groups()[0].options().get_lr() << " ";
  }
  std::cout << "\n";
  torch::optim::Adam adam({weight}, torch::optim::AdamOptions(0.1));
  torch::optim::ReduceLROnPlateauScheduler plateau(adam, torch::optim::ReduceLROnPlateauScheduler::SchedulerMode::min,
                                                   /*factor=*/0.1f, /*patience=*/1, /*threshold=*/1e-3,
                                                   torch::optim::ReduceLROnPlateauScheduler::ThresholdMode::rel,
                                                   /*cooldown=*/0, /*min_lr=*/{1e-3f});
  for (float loss : {1.0f, 0.9f, 0.91f, 0.92f, 0.93f, 0.5f, 0.6f, 0.6f, 0.6f, 0.6f, 0.6f}) {
    plateau.step(loss);
    std::printf("%.4f ", adam.param_groups()[0].options().get_lr());
  }
  std::printf("\n");
}

// A schedule of the program's own.
class WarmUp : public torch::optim::LRScheduler {
 public:
  WarmUp(torch::optim::Optimizer& optimizer, unsigned steps)
      : LRScheduler(optimizer), steps(steps), base(get_current_lrs()) {}

 private:
  std::vector<double> get_lrs() override {
    std::vector<double> lrs = base;
    for (auto& lr : lrs) lr *= std::min(1.0, static_cast<double>(step_count_ + 1) / steps);
    return lrs;
  }
  unsigned steps;
  std::vector<double> base;
};

static void accumulation() {
  torch::manual_seed(1);
  torch::nn::Linear net(1, 1);
  auto clone = std::dynamic_pointer_cast<torch::nn::LinearImpl>(net->clone());
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(0.1).weight_decay(0));
  WarmUp warm_up(optimizer, 4);
  auto x = torch::randn({8, 1}), y = line(x);
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    for (const auto& part : torch::arange(8).chunk(4)) {
      (torch::mse_loss(net(x.index({part})), y.index({part})) / 4).backward();
    }
    auto whole = torch::autograd::grad({torch::mse_loss(net(x), y)}, net->parameters());
    std::cout << torch::allclose(whole[0], net->weight.grad(), 1e-4, 1e-6);
    const double norm = torch::nn::utils::clip_grad_norm_(net->parameters(), 0.5, 2.0, /*error_if_nonfinite=*/true);
    warm_up.step();
    optimizer.step();
    std::printf(" norm %.3f lr %.4f weight %.4f\n", norm, optimizer.param_groups()[0].options().get_lr(),
                net->weight.item<float>());
  }
  auto flat = torch::nn::utils::parameters_to_vector(net->parameters());
  torch::nn::utils::vector_to_parameters(flat * 0 + 2, clone->parameters());
  std::printf("%.1f %.1f %d\n", clone->weight.item<float>(), clone->bias.item<float>(), static_cast<int>(flat.numel()));
  net->weight.mutable_grad().fill_(INFINITY);
  try {
    torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0, 2.0, true);
  } catch (const c10::Error& e) {
    std::printf("%d\n", static_cast<int>(std::string(e.what()).find("non-finite") != std::string::npos));
  }
}

static void rosenbrock() {
  auto p = torch::tensor({-1.2, 1.0}, torch::dtype(torch::kFloat64).requires_grad(true));
  torch::optim::LBFGS lbfgs(
      {p}, torch::optim::LBFGSOptions(1).max_iter(60).line_search_fn("strong_wolfe").tolerance_change(1e-12));
  int calls = 0;
  auto closure = [&]() -> torch::Tensor {
    lbfgs.zero_grad();
    auto loss = (1 - p[0]).pow(2) + 100 * (p[1] - p[0].pow(2)).pow(2);
    loss.backward();
    ++calls;
    return loss;
  };
  const auto first = lbfgs.step(closure);
  std::printf("%.4f %.4f %.4f %d\n", first.item<double>(), p[0].item<double>(), p[1].item<double>(), calls < 80);
}

struct TiedImpl : torch::nn::Module {
  TiedImpl()
      : embedding(register_module("embedding", torch::nn::Embedding(5, 3))),
        decoder(register_module("decoder", torch::nn::Linear(torch::nn::LinearOptions(3, 5).bias(false)))) {
    torch::nn::init::normal_(embedding->weight, 0.0, 0.02);
    decoder->weight = decoder->register_parameter("tied", embedding->weight);
  }
  torch::Tensor forward(torch::Tensor tokens) { return decoder(embedding(tokens)); }
  torch::nn::Embedding embedding;
  torch::nn::Linear decoder;
};
TORCH_MODULE(Tied);

int main() {
  schedules();
  accumulation();
  rosenbrock();
  torch::manual_seed(8);
  Tied tied;
  std::printf("same %d\n", tied->decoder->weight.is_same(tied->embedding->weight));
  int calls = 0;
  auto handle = tied->embedding->weight.register_hook([&](torch::Tensor grad) {
    ++calls;
    return grad.clamp(-0.01, 0.01);
  });
  auto x = torch::tensor({0, 1, 1, 4});
  torch::nn::functional::cross_entropy(tied(x), x).backward();
  std::printf("%.4f %d\n", tied->embedding->weight.grad().abs().max().item<float>(), calls);
  tied->embedding->weight.remove_hook(handle);
  tied->zero_grad();
  torch::nn::functional::cross_entropy(tied(x), x).backward();
  std::printf("%d %d\n", tied->embedding->weight.grad().abs().max().item<float>() > 0.01f, calls);
  return 0;
}
