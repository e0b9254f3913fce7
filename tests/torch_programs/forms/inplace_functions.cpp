// Functions that change their first argument, and libtorch's old names for automatic mixed precision.
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <cmath>
#include <iostream>

int main() {
  auto x = torch::arange(-3., 4.).view({1, 7});
  torch::clamp_min_(x, -2);
  torch::clamp_max_(x, torch::full({7}, 2.5));
  std::cout << x << "\n" << torch::clip_(x, -1, 1) << "\n" << torch::clamp_(x, torch::zeros({7}), torch::ones({7}));
  std::cout << "\n" << torch::clip(x, torch::full({7}, 0.5)) << "\n" << torch::fill_(x, 2.5) << "\n";
  std::cout << torch::fill_(x, torch::tensor(0.25)) << "\n" << torch::logit_(x) << "\n";
  x = torch::tensor({NAN, INFINITY, 1.f});
  std::cout << torch::nan_to_num_(x, 7, 8) << "\n"
            << torch::xlogy_(x, 2) << torch::xlogy_(x, torch::zeros({3})) << "\n";
  x = torch::ones({2});
  std::cout << torch::addmv_(x, torch::ones({2, 3}), torch::ones({3}), 2, 0.5) << "\n";
  auto n = torch::tensor({12, 18});
  std::cout << torch::gcd_(n, torch::tensor({8, 27})) << torch::lcm_(n, torch::tensor({6, 6})) << "\n";
  x = torch::arange(6.);
  std::cout << torch::as_strided_(x, {2, 2}, {3, 1}, 1) << "\n";
  auto y = x.clone().requires_grad_() * 2;
  std::cout << y.requires_grad() << torch::detach_(y).requires_grad() << "\n";

  std::cout << at::autocast::is_cpu_enabled() << at::autocast::is_enabled() << "\n";
  at::autocast::set_cpu_enabled(true);
  at::autocast::set_autocast_cpu_dtype(torch::kBFloat16);
  const auto half = torch::ones({2, 2}).mm(torch::ones({2, 2}));
  at::autocast::clear_cache();
  at::autocast::set_cpu_enabled(false);
  std::cout << half.dtype() << at::autocast::get_autocast_cpu_dtype()
            << torch::ones({2, 2}).mm(torch::ones({2, 2})).dtype();
  at::autocast::set_enabled(true);
  at::autocast::set_autocast_gpu_dtype(torch::kBFloat16);
  std::cout << at::autocast::is_enabled() << at::autocast::get_autocast_gpu_dtype() << "\n";
  at::autocast::set_enabled(false);
}
