// A library of layers that lives in torch::nn itself, as some projects write theirs: namespaces of libtorch reopened,
// TORCH_MODULE inside them, functions and options beside libtorch's, and specialisations for types of the program's
// own.
#include <torch/torch.h>

#include <iostream>

namespace torch {
namespace nn {

struct SwishOptions {
  SwishOptions(double beta = 1.0) : beta_(beta) {}
  TORCH_ARG(double, beta);
  TORCH_ARG(bool, learn) = false;
};

namespace functional {
inline Tensor swish(const Tensor& input, const SwishOptions& options = {}) {
  return input * torch::sigmoid(input * options.beta());
}
}  // namespace functional

class SwishImpl : public Cloneable<SwishImpl> {
 public:
  explicit SwishImpl(const SwishOptions& options_ = {}) : options(options_) { reset(); }
  void reset() override {
    beta = torch::full({1}, options.beta());
    if (options.learn()) register_parameter("beta", beta);
  }
  Tensor forward(const Tensor& input) {
    return options.learn() ? input * torch::sigmoid(input * beta) : functional::swish(input, options);
  }
  void pretty_print(std::ostream& stream) const override {
    stream << "torch::nn::Swish(beta=" << options.beta() << ")";
  }
  SwishOptions options;
  Tensor beta;
};
TORCH_MODULE(Swish);

struct ResidualImpl : Module {
  explicit ResidualImpl(int64_t width)
      : body(Linear(width, width), Swish(), Linear(LinearOptions(width, width).bias(false))) {
    register_module("body", body);
  }
  Tensor forward(const Tensor& x) { return x + body->forward(x); }
  Sequential body;
};
TORCH_MODULE(Residual);

namespace init {
inline Tensor counting_(Tensor tensor) {
  NoGradGuard guard;
  return tensor.copy_(torch::arange(tensor.numel(), tensor.options()).view_as(tensor) /
                      static_cast<double>(tensor.numel()));
}
}  // namespace init

}  // namespace nn

namespace optim {
// Sign descent.
struct SignOptions : public OptimizerCloneableOptions<SignOptions> {
  SignOptions(double lr) : lr_(lr) {}
  TORCH_ARG(double, lr);

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { lr_ = lr; }
};
class Sign : public Optimizer {
 public:
  explicit Sign(std::vector<Tensor> params, SignOptions defaults)
      : Optimizer({OptimizerParamGroup(std::move(params))}, std::make_unique<SignOptions>(defaults)) {}
  Tensor step(LossClosure closure = nullptr) override {
    NoGradGuard no_grad;
    Tensor loss;
    if (closure != nullptr) {
      at::AutoGradMode enable_grad(true);
      loss = closure();
    }
    for (auto& group : param_groups_) {
      auto& options = static_cast<SignOptions&>(group.options());
      for (auto& p : group.params()) {
        if (p.grad().defined()) p.add_(p.grad().sign(), -options.lr());
      }
    }
    return loss;
  }
};
}  // namespace optim

namespace data {
namespace transforms {
struct Halve : public TensorTransform<> {
  Tensor operator()(Tensor input) override { return input / 2; }
};
}  // namespace transforms
namespace datasets {
struct Ramp : Dataset<Ramp> {
  Example<> get(size_t index) override {
    return {torch::full({2}, static_cast<double>(index)), torch::tensor(static_cast<int64_t>(index))};
  }
  torch::optional<size_t> size() const override { return 4; }
};
}  // namespace datasets
}  // namespace data
}  // namespace torch

namespace at {
inline Tensor twice(const Tensor& t) { return t + t; }
}  // namespace at

namespace c10 {
inline std::string describe(const Device& device) { return "on " + device.str(); }
}  // namespace c10

using namespace torch;

int main() {
  torch::manual_seed(6);
  nn::Sequential net(nn::Linear(2, 4), nn::Swish(nn::SwishOptions(1.5)), nn::Residual(4), torch::nn::Linear(4, 1));
  std::cout << net << "\n";
  for (auto& p : net->parameters()) nn::init::counting_(p);
  nn::init::zeros_(net->parameters().back());
  std::cout << net->forward(torch::ones({1, 2})) << "\n";
  std::cout << nn::functional::swish(torch::ones({1})) << torch::nn::functional::relu(-torch::ones({1})) << "\n";
  optim::Sign sign(net->parameters(), 0.01);
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.1));
  for (int i = 0; i < 3; ++i) {
    auto loss = sign.step([&] {
      sign.zero_grad();
      auto l = torch::mse_loss(net->forward(torch::ones({1, 2})), torch::zeros({1, 1}));
      l.backward();
      return l;
    });
    std::printf("%.3f\n", loss.item<float>());
  }
  auto loader = torch::data::make_data_loader(
      data::datasets::Ramp().map(data::transforms::Halve()).map(data::transforms::Stack<>()), 2);
  for (const auto& batch : *loader) std::cout << batch.data << batch.target << "\n";
  std::cout << at::twice(torch::ones({1})) << c10::describe(kCPU) << "\n";
  auto copy = std::dynamic_pointer_cast<nn::SwishImpl>(nn::Swish(nn::SwishOptions(2).learn(true))->clone());
  std::cout << copy->parameters().size() << copy->options.beta() << "\n";
  auto x = autograd::grad({torch::ones({1}, requires_grad()) * 2}, {torch::ones({1}, requires_grad())}, {}, false,
                          false, true);
  std::cout << x[0].defined() << indexing::Slice(1, 3) << special::expit(torch::zeros({1})).item<float>() << "\n";
  return 0;
}
