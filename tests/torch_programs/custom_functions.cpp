// "Using custom autograd function in C++" and the reference of torch::autograd::Function: functions of several inputs
// and outputs, of numbers and optional tensors, in place, and differentiated twice.
#include <torch/torch.h>

#include <iostream>

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Inherit from Function
class LinearFunction : public Function<LinearFunction> {
 public:
  // Note that both forward and backward are static functions
  // bias is an optional argument
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor input, torch::Tensor weight,
                               torch::Tensor bias = torch::Tensor()) {
    ctx->save_for_backward({input, weight, bias});
    auto output = input.mm(weight.t());
    if (bias.defined()) {
      output += bias.unsqueeze(0).expand_as(output);
    }
    return output;
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    auto saved = ctx->get_saved_variables();
    auto input = saved[0];
    auto weight = saved[1];
    auto bias = saved[2];
    auto grad_output = grad_outputs[0];
    auto grad_input = grad_output.mm(weight);
    auto grad_weight = grad_output.t().mm(input);
    auto grad_bias = torch::Tensor();
    if (bias.defined()) {
      grad_bias = grad_output.sum(0);
    }
    return {grad_input, grad_weight, grad_bias};
  }
};

class MulConstant : public Function<MulConstant> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor tensor, double constant) {
    // ctx is a context object that can be used to stash information for backward computation
    ctx->saved_data["constant"] = constant;
    return tensor * constant;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    // We return as many input gradients as there were arguments. Gradients of non-tensor arguments must be
    // `torch::Tensor()`.
    return {grad_outputs[0] * ctx->saved_data["constant"].toDouble(), torch::Tensor()};
  }
};

// x^3, whose backward is differentiable by itself.
struct Cube : public Function<Cube> {
  static Variable forward(AutogradContext* ctx, const Variable& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Variable x = ctx->get_saved_variables().at(0);
    return {grads[0] * 3 * x * x};
  }
};

// Doubles in place.
struct Double_ : public Function<Double_> {
  static Variable forward(AutogradContext* ctx, Variable x) {
    {
      torch::NoGradGuard no_grad;
      x.mul_(2);
    }
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0] * 2}; }
};

// Two outputs: values, and indices that have no gradient.
struct SortedRows : public Function<SortedRows> {
  static variable_list forward(AutogradContext* ctx, Variable x) {
    auto [values, indices] = x.sort(1, /*descending=*/true);
    ctx->save_for_backward({indices});
    ctx->mark_non_differentiable({indices});
    ctx->saved_data["sizes"] = x.sizes().vec();
    return {values, indices};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    std::cout << "gradients " << grads.size() << ", of indices defined " << grads[1].defined() << ", needed "
              << ctx->needs_input_grad(0) << "\n";
    auto indices = ctx->get_saved_variables()[0];
    return {torch::zeros(ctx->saved_data["sizes"].toIntVector()).scatter_(1, indices, grads[0])};
  }
};

// Which gradients arrive where an output goes unused.
struct Pair : public Function<Pair> {
  static variable_list forward(AutogradContext* ctx, const Variable& x, bool materialize) {
    ctx->set_materialize_grads(materialize);
    return {x + 1, x * 2};
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    std::cout << "defined " << grads[0].defined() << grads[1].defined() << "\n";
    return {grads[0].defined() ? grads[0] : grads[1], Variable()};
  }
};

int main() {
  auto x = torch::arange(6, torch::kFloat).view({2, 3}).requires_grad_();
  auto weight = (torch::arange(12, torch::kFloat) * 0.25).view({4, 3}).requires_grad_();
  auto bias = torch::ones({4}, torch::requires_grad());
  auto y = LinearFunction::apply(x, weight, bias);
  y.sum().backward();
  std::cout << y << "\n"
            << y.grad_fn()->name() << "\n"
            << x.grad() << "\n"
            << weight.grad() << "\n"
            << bias.grad() << "\n";
  std::cout << LinearFunction::apply(x, weight, torch::zeros({4})).sum().item<float>() << "\n";

  auto z = torch::ones({2}).requires_grad_();
  MulConstant::apply(z, 5.5).sum().backward();
  std::cout << z.grad() << "\n";

  auto u = torch::tensor({1.0, 2.0, -3.0}, torch::dtype(torch::kFloat64).requires_grad(true));
  auto first = torch::autograd::grad({Cube::apply(u).sum()}, {u}, {}, true, true)[0];
  auto second = torch::autograd::grad({first.sum()}, {u}, {}, true, true)[0];
  auto third = torch::autograd::grad({second.sum()}, {u})[0];
  std::cout << first << "\n" << second << "\n" << third << "\n";

  auto leaf = torch::ones({3}, torch::requires_grad());
  auto doubled = leaf * 1;
  auto same = Double_::apply(doubled);
  std::cout << same.is_same(doubled) << doubled._version() << " " << doubled.grad_fn()->name().substr(0, 13) << "\n";
  doubled.sum().backward();
  std::cout << leaf.grad() << "\n";

  auto rows = torch::tensor({{3.f, 1.f, 2.f}, {4.f, 6.f, 5.f}}, torch::requires_grad());
  auto sorted = SortedRows::apply(rows);
  std::cout << sorted[0].requires_grad() << sorted[1].requires_grad() << sorted[1] << "\n";
  (sorted[0] * torch::tensor({1.f, 10.f, 100.f})).sum().backward();
  std::cout << rows.grad() << "\n";

  for (bool materialize : {true, false}) {
    auto input = torch::ones({2}, torch::requires_grad());
    Pair::apply(input, materialize)[1].sum().backward();
    std::cout << input.grad() << "\n";
  }
  return 0;
}
