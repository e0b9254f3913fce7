// Every activation of torch::nn as a module, with its gradient, and the functions of torch::nn::functional.
#include "show.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

template <class Activation>
static void apply(const char* name, Activation activation) {
  auto x = wave({2, 6}, 0.35, 3).requires_grad_();
  auto y = activation(x);
  (y * wave(y.sizes().vec(), 0.9)).sum().backward();
  std::printf("%s:", name);
  print_number(y.sum().template item<double>());
  print_number(y.square().sum().template item<double>());
  print_number(x.grad().sum().template item<double>());
  print_number(x.grad().abs().sum().template item<double>());
  std::printf("\n");
}

int main() {
  apply("ELU", nn::ELU(nn::ELUOptions().alpha(0.7)));
  apply("SELU", nn::SELU());
  apply("CELU", nn::CELU(nn::CELUOptions().alpha(1.3)));
  apply("GELU", nn::GELU());
  apply("GELU tanh", nn::GELU(nn::GELUOptions().approximate("tanh")));
  apply("GLU", nn::GLU(1));
  apply("Hardshrink", nn::Hardshrink(0.8));
  apply("Hardtanh", nn::Hardtanh(nn::HardtanhOptions().min_val(-0.5).max_val(2)));
  apply("LeakyReLU", nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.02)));
  apply("LogSigmoid", nn::LogSigmoid());
  apply("LogSoftmax", nn::LogSoftmax(1));
  apply("Mish", nn::Mish());
  apply("ReLU", nn::ReLU());
  apply("ReLU6", nn::ReLU6());
  apply("SiLU", nn::SiLU());
  apply("Sigmoid", nn::Sigmoid());
  apply("Softmax", nn::Softmax(nn::SoftmaxOptions(0)));
  apply("Softmin", nn::Softmin(1));
  apply("Softplus", nn::Softplus(nn::SoftplusOptions().beta(2).threshold(3)));
  apply("Softshrink", nn::Softshrink(0.4));
  apply("Softsign", nn::Softsign());
  apply("Tanh", nn::Tanh());
  apply("Tanhshrink", nn::Tanhshrink());
  apply("Threshold", nn::Threshold(nn::ThresholdOptions(0.3, -1)));
  nn::PReLU prelu(nn::PReLUOptions().num_parameters(6).init(0.1));
  prelu->to(torch::kDouble);
  apply("PReLU", prelu);
  show("its slopes", prelu->weight.grad());
  torch::manual_seed(12);
  apply("RReLU", nn::RReLU(nn::RReLUOptions().lower(0.1).upper(0.3)));
  nn::RReLU evaluated;
  evaluated->eval();
  apply("RReLU evaluated", evaluated);

  const auto x = wave({2, 4}, 0.1, 2);
  show("softmax of another dtype",
       F::softmax(x.to(torch::kFloat), F::SoftmaxFuncOptions(1).dtype(torch::kFloat64)).sum(1));
  show("normalize", F::normalize(x, F::NormalizeFuncOptions().p(1).dim(0)));
  show("gelu", F::gelu(x, F::GELUFuncOptions().approximate("none")));
  show("one hot", F::one_hot(torch::tensor({0, 2, 1}), 4));
  show("gumbel", F::gumbel_softmax(x, F::GumbelSoftmaxFuncOptions().hard(true).dim(-1)).sum(-1));
  auto in_place = x.clone();
  F::relu(in_place, F::ReLUFuncOptions().inplace(true));
  F::threshold(in_place, F::ThresholdFuncOptions(0.5, 7).inplace(true));
  show("in place", in_place);
  F::hardtanh(in_place, F::HardtanhFuncOptions().min_val(0).max_val(1).inplace(true));
  show("clipped", in_place);
  in_place.sub_(0.7);
  torch::relu_(in_place);
  show("of torch itself", in_place);
  show("hardswish and hardsigmoid", torch::hardswish(x) - x * torch::hardsigmoid(x));
  auto last = x.clone();
  show("celu_", torch::celu_(last, 0.5));
  return 0;
}
