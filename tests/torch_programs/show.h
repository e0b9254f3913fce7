// What the programs of this folder share: tensors filled by formulas, and numbers printed so that the last bits, in
// which two libraries may differ, are rounded away.
#pragma once
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

// scale * sin(0.7 i + phase) for element i, float64.
inline torch::Tensor wave(const std::vector<int64_t>& shape, double phase, double scale = 1) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return (torch::arange(count, torch::kFloat64) * 0.7 + phase).sin().mul(scale).reshape(shape);
}

// Fills every parameter with a wave of its own: what the random stream would give differs between libraries.
inline void fill_parameters(torch::nn::Module& module, double scale = 0.3) {
  torch::NoGradGuard no_grad;
  module.to(torch::kFloat64);
  double phase = 0.1;
  for (auto& parameter : module.parameters()) {
    parameter.copy_(wave(parameter.sizes().vec(), phase, scale));
    phase += 1.3;
  }
}

// To five decimals; never "-0.00000".
inline void print_number(double value) { std::printf(" %.5f", std::round(value * 1e5) / 1e5 + 0.0); }

inline void show(const char* name, double value) {
  std::printf("%s:", name);
  print_number(value);
  std::printf("\n");
}

inline void show(const char* name, const torch::Tensor& tensor) {
  std::printf("%s (", name);
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    std::printf("%s%lld", i > 0 ? ", " : "", static_cast<long long>(tensor.size(i)));
  }
  std::printf("):");
  const torch::Tensor flat = tensor.detach().to(torch::kFloat64).contiguous().view({-1});
  for (int64_t i = 0; i < flat.numel(); ++i) print_number(flat[i].item<double>());
  std::printf("\n");
}
