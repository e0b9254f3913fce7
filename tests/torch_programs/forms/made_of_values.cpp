// Modules, options and containers made of plain values, and small types read back.
#include <torch/torch.h>

#include <iostream>

#include "../show.h"

namespace nn = torch::nn;

static void modules_of_values() {
  const std::vector<int64_t> size{3, 2};
  std::cout << nn::MaxPool2d(size) << "\n" << nn::AvgPool2d(size) << "\n" << nn::MaxUnpool2d(size) << "\n";
  std::cout << nn::Unfold(torch::IntArrayRef(size)) << "\n" << nn::ZeroPad2d(1) << "\n";
  const torch::Tensor x = wave({3}, 0.2), y = wave({3}, 2.2);
  show("huber", nn::HuberLoss(torch::kNone)(x, y));
  show("smooth", nn::SmoothL1Loss(torch::kSum)(x, y));
  show("divergence", nn::KLDivLoss(torch::kBatchMean)(x, y.abs()));
  show("smooth with beta", nn::functional::smooth_l1_loss(x, y, torch::kMean, 0.5));
  show("mse", nn::functional::mse_loss(x, y, torch::kSum));
  std::vector<nn::TripletMarginWithDistanceLossOptions::reduction_t> reductions{torch::kSum, torch::kMean};
  for (const auto& reduction : reductions) {
    const auto options = nn::TripletMarginWithDistanceLossOptions().reduction(reduction);
    show("triplet", nn::TripletMarginWithDistanceLoss(options)(x.unsqueeze(0), y.unsqueeze(0), -y.unsqueeze(0)));
  }
  torch::Tensor unit = torch::empty({0}, torch::kFloat64);
  nn::functional::normalize(x, nn::functional::NormalizeFuncOptions().dim(0).out(unit));
  show("normalized", unit);
}

static void containers_of_values() {
  nn::Sequential net;
  net->push_back("first", std::make_shared<nn::ReLUImpl>());
  net->push_back(std::make_shared<nn::TanhImpl>());
  for (const auto& child : net->named_children()) std::cout << child.key() << " " << child.value()->name() << "\n";
  torch::OrderedDict<std::string, std::pair<int, int>> pairs;
  pairs.insert("a", {1, 2});
  std::cout << pairs["a"].second << "\n";
}

static void small_types() {
  using torch::optim::AdamOptions;
  std::cout << (AdamOptions(1e-3) == AdamOptions()) << (AdamOptions(1e-3) == AdamOptions().amsgrad(true))
            << (torch::optim::SGDOptions(0.1) == torch::optim::SGDOptions(0.1)) << "\n";
  const c10::Scalar number(2.5);
  std::cout << number.toFloat() << number.toInt() << number.toComplexDouble().real() << "\n";
  const std::vector<int64_t> sizes{4, 5};
  std::cout << torch::IntArrayRef(sizes).at(1) << at::OptionalIntArrayRef(sizes).value().size() << "\n";
  try {
    torch::IntArrayRef(sizes).at(2);
    std::cout << "read\n";
  } catch (const std::exception&) {
    std::cout << "out of range\n";
  }
  std::cout << c10::Join(", ", sizes) << " " << c10::Join("/", std::vector<std::string>{}) << "\n";
  const torch::Device::Type type = torch::kCPU;
  std::cout << torch::zeros({1}, torch::TensorOptions().device(type, 0)).device() << "\n";
  const torch::Device device{torch::kCPU, torch::zeros({1}).get_device()};  // a narrowing integer would not compile
  std::cout << device << static_cast<int>(torch::TensorOptions().device_index()) << "\n";
}

int main() {
  modules_of_values();
  containers_of_values();
  small_types();
  return 0;
}
