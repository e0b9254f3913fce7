// Whether an operator and its gradient are the same on a GPU as on the CPU.
#pragma once
#include "tests/cuda/gpu.h"
#include "tests/cuda/same_as_cpu.h"

namespace rush::testing {

// Calls fn(x...) on both devices, compares the results and, where `differentiable`, the gradients of all inputs that
// are floating point, for the result times numbers that differ.
template <class Fn>
void check_on_both(const std::vector<Tensor>& inputs, const Fn& fn, double tolerance, bool differentiable = true) {
  std::vector<Tensor> results, gradients[2];
  for (int gpu = 0; gpu < 2; ++gpu) {
    std::vector<Tensor> local;
    for (const Tensor& input : inputs) {
      Tensor t = input.detach();
      if (gpu) t = t.to(kGpu);
      if (differentiable && is_floating_point(t.scalar_type())) t = t.detach().requires_grad_(true);
      local.push_back(t);
    }
    const Tensor result = fn(local);
    results.push_back(result.detach());
    if (!differentiable || result.numel() == 0) continue;
    const Tensor weights = linspace(0.5, 1.5, result.numel()).to(result.scalar_type()).view(result.sizes());
    (result * weights.to(result.device())).sum().backward();
    for (const Tensor& t : local) {
      if (t.requires_grad()) gradients[gpu].push_back(t.grad());
    }
  }
  check_same(results[1].contiguous(), results[0].contiguous(), tolerance);
  REQUIRE(gradients[0].size() == gradients[1].size());
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    INFO("gradient ", i);
    check_same(gradients[1][i].contiguous(), gradients[0][i].contiguous(), tolerance);
  }
}

}  // namespace rush::testing
