// Gradients in every way that libtorch offers: backward, grad, of gradients, through custom functions and hooks.
#include "show.h"

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// x -> x^3, with a derivative written by hand.
class Cube : public torch::autograd::Function<Cube> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad_outputs) {
    const torch::Tensor x = ctx->get_saved_variables()[0];
    return {grad_outputs[0] * 3 * x * x};
  }
};

// x W^T scaled by a number, which has no gradient.
class ScaledLinear : public torch::autograd::Function<ScaledLinear> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x, torch::Tensor weight, double scale) {
    ctx->saved_data["scale"] = scale;
    ctx->save_for_backward({x, weight});
    return torch::matmul(x, weight.t()) * scale;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad_outputs) {
    const auto saved = ctx->get_saved_variables();
    const torch::Tensor grad = grad_outputs[0] * ctx->saved_data["scale"].toDouble();
    return {grad.mm(saved[1]), grad.t().mm(saved[0]), torch::Tensor()};
  }
};

static void first_steps() {
  const torch::Tensor x = wave({2, 2}, 0.4).requires_grad_();
  const torch::Tensor y = x + 2;
  const torch::Tensor out = (y * y * 3).mean();
  out.backward();
  show("d out / d x", x.grad());
  std::printf("y has a grad_fn: %d, x is a leaf: %d\n", y.grad_fn() != nullptr, x.is_leaf());

  const torch::Tensor v = torch::tensor({0.1, 1.0, 0.001}, torch::dtype(torch::kFloat64).requires_grad(true));
  torch::Tensor doubled = v * 2;
  while (doubled.norm().item<double>() < 100) doubled = doubled * 2;
  doubled.backward(torch::tensor({1.0, 0.5, -2.0}, torch::kFloat64));
  show("vector-Jacobian product", v.grad());
  v.mutable_grad().zero_();
  show("zeroed", v.grad());
}

static void gradient_penalty() {
  torch::nn::Linear model(4, 3);
  fill_parameters(*model, 0.4);
  const torch::Tensor input = wave({3, 4}, 1.0).requires_grad_(true);
  const torch::Tensor output = model(input).tanh();
  const torch::Tensor loss = torch::nn::MSELoss()(output, wave({3, 3}, 2.0));
  const auto grad_output = torch::ones_like(loss);
  const torch::Tensor gradient = torch::autograd::grad({loss}, {input}, {grad_output}, /*retain_graph=*/true,
                                                       /*create_graph=*/true)[0];
  const torch::Tensor penalty = torch::pow(gradient.norm(2, /*dim=*/1) - 1, 2).mean();
  (loss + penalty).backward();
  show("penalty", penalty);
  show("gradient of the input", input.grad());
  show("gradient of the weight", model->weight.grad());
}

static void custom_functions() {
  const torch::Tensor x = wave({3}, 0.2).requires_grad_();
  const torch::Tensor y = Cube::apply(x).sum();
  const torch::Tensor dx = torch::autograd::grad({y}, {x}, {}, torch::nullopt, /*create_graph=*/true)[0];
  show("3 x^2", dx);
  show("6 x", torch::autograd::grad({dx.sum()}, {x})[0]);

  const torch::Tensor input = wave({2, 3}, 0.6).requires_grad_();
  const torch::Tensor weight = wave({2, 3}, 1.6).requires_grad_();
  ScaledLinear::apply(input, weight, 0.5).pow(2).sum().backward();
  show("custom: input", input.grad());
  show("custom: weight", weight.grad());
}

static void hooks_and_modes() {
  const torch::Tensor x = wave({3}, 0.9).requires_grad_();
  const torch::Tensor h = x.exp();
  h.register_hook([](torch::Tensor grad) { return grad * 10; });
  h.retain_grad();
  x.register_hook([](torch::Tensor grad) { show("hook saw", grad); });
  (h * h).sum().backward();
  show("kept", h.grad());
  show("leaf", x.grad());

  {
    torch::NoGradGuard no_grad;
    std::printf("without recording: %d\n", (x * 2).requires_grad());
    torch::AutoGradMode enable(true);
    std::printf("with it again: %d\n", (x * 2).requires_grad());
  }
  std::printf("detached: %d\n", (x.detach() * 2).requires_grad());

  torch::Tensor base = torch::zeros({2, 3}, torch::kFloat64);
  base.index_put_({torch::indexing::Slice(), 1}, x.slice(0, 0, 2));
  base[0][2] = x[2];
  (base * wave({2, 3}, 0.1)).sum().backward();
  show("through writes in place", x.grad());
}

static void faults() {
  const torch::Tensor x = wave({2}, 0).requires_grad_();
  const torch::Tensor y = (x * x).sum();
  y.backward();
  int caught = 0;
  try {
    y.backward();
  } catch (const c10::Error& error) {
    caught += std::string(error.what()).size() > 0;
  }
  try {
    torch::ones({2, 3}).matmul(torch::ones({2, 3}));
  } catch (const std::exception&) {
    ++caught;
  }
  try {
    TORCH_CHECK(caught > 2, "only ", caught, " of 3");
  } catch (const c10::Error& error) {
    caught += std::string(error.what_without_backtrace()) == "only 2 of 3";
  }
  std::printf("caught %d\n", caught);
}

int main() {
  first_steps();
  gradient_penalty();
  custom_functions();
  hooks_and_modes();
  faults();
  return 0;
}
