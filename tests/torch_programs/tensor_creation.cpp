// Tensors made by factories, from values and from memory: what the note "Tensor Creation API" of PyTorch's C++
// documentation and the page "Tensor Basics" go through.
#include "show.h"

#include <array>
#include <limits>

int main() {
  torch::manual_seed(2);
  std::cout << torch::ones({2, 3}) << std::endl;
  std::cout << torch::zeros({2, 3, 4}) << std::endl;
  std::cout << torch::rand({2, 4}) << std::endl;
  std::cout << torch::randn({3, 4}) * 1000 << std::endl;
  std::cout << torch::randn({2, 3}) * 1e-7 << std::endl;
  std::cout << torch::randint(/*high=*/10, {5, 5}) << std::endl;
  std::cout << torch::arange(12).view({3, 4}) << std::endl;
  std::cout << torch::arange(1, 4, 0.5) << std::endl;
  std::cout << torch::linspace(0, 1, 5) << std::endl;
  std::cout << torch::logspace(0, 4, 5) << std::endl;
  std::cout << torch::eye(3) << std::endl;
  std::cout << torch::full({2, 2}, 7) << std::endl;
  std::cout << torch::full({2}, 2.5, torch::kFloat64) << std::endl;
  std::cout << torch::empty({0}) << std::endl;
  std::cout << torch::empty({0, 3}) << std::endl;
  std::cout << torch::tensor(3.5) << std::endl;
  // A single number has as many digits as tell it from its neighbours.
  for (const double number : {0.1, 1e15, 1e16, 1e-4, 1e-5, -0.0, 123456789.0, 1.0 / 3}) {
    std::cout << torch::tensor(number) << torch::tensor(number, torch::kFloat64) << std::endl;
  }
  std::cout << torch::tensor({1, 2, 3}) << std::endl;
  std::cout << torch::tensor({{1.5, 2.0}, {-3.25, 4.0}}) << std::endl;
  std::cout << torch::tensor({true, false}) << std::endl;
  std::cout << torch::tensor({1.0, std::nan(""), std::numeric_limits<double>::infinity()}) << std::endl;
  std::cout << torch::tensor({1e10, 1.0, 0.001}) << std::endl;
  std::cout << torch::tensor({123456, 7}) << std::endl;
  std::cout << torch::tensor({int64_t{12345678901}, int64_t{7}}) << std::endl;
  std::cout << torch::arange(60).view({2, 30}) << std::endl;
  std::cout << torch::arange(24).view({2, 3, 2, 2}) << std::endl;
  std::cout << (torch::arange(40).to(torch::kFloat32) * 100.5).view({2, 20}) << std::endl;

  // Options.
  auto options =
      torch::TensorOptions().dtype(torch::kFloat64).layout(torch::kStrided).device(torch::kCPU).requires_grad(true);
  auto tensor = torch::full({3, 4}, /*value=*/123, options);
  assert(tensor.dtype() == torch::kFloat64);
  std::cout << tensor.scalar_type() << ' ' << tensor.device() << ' ' << tensor.requires_grad() << ' ' << tensor.layout()
            << std::endl;
  std::cout << torch::ones(10, torch::kFloat32).scalar_type() << std::endl;
  std::cout << torch::ones(10, torch::dtype(torch::kInt32)).scalar_type() << std::endl;
  std::cout << torch::ones({2}, torch::requires_grad()).requires_grad() << std::endl;

  // Conversion.
  auto source_tensor = torch::randn({2, 3});
  std::cout << source_tensor.to(torch::kFloat64).scalar_type() << std::endl;
  std::cout << (source_tensor * 10).to(torch::kInt32) << std::endl;
  std::cout << source_tensor.to(torch::kHalf) << std::endl;

  // Accessors and memory of the program's own.
  torch::Tensor foo = torch::rand({12, 12});
  auto foo_a = foo.accessor<float, 2>();
  float trace = 0;
  for (int i = 0; i < foo_a.size(0); i++) trace += foo_a[i][i];
  show("trace", trace);
  float data[] = {1, 2, 3, 4, 5, 6};
  torch::Tensor f = torch::from_blob(data, {2, 3});
  f[0][1] = 20;
  std::cout << f << data[1] << std::endl;
  std::array<int64_t, 2> strides = {1, 2};
  std::cout << torch::from_blob(data, {2, 3}, strides) << std::endl;
  std::vector<int32_t> whole = {4, 5, 6};
  std::cout << torch::from_blob(whole.data(), {3}, torch::kInt32) << std::endl;

  // Numbers.
  std::cout << torch::tensor(5).item<int>() << ' ' << torch::tensor(0.5).item().toDouble() << ' ' << foo.sizes() << ' '
            << foo.numel() << ' ' << foo.dim() << ' ' << foo.strides() << std::endl;
}
