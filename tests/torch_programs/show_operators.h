// What programs that print the results of operators share.
#pragma once
#include "show.h"

inline void show(const char* name, const std::vector<torch::Tensor>& tensors) {
  std::printf("%s: %zu tensors\n", name, tensors.size());
  for (const torch::Tensor& tensor : tensors) show(" ", tensor);
}

inline void show_type(const char* name, const torch::Tensor& tensor) {
  std::printf("%s is %s\n", name, c10::toString(tensor.scalar_type()));
}

// The gradient of a sum weighted by a wave, with respect to `input`.
inline void show_gradient(const torch::Tensor& output, const torch::Tensor& input) {
  torch::Tensor weights = wave(output.sizes().vec(), 0.9);
  show("  gradient", torch::autograd::grad({output}, {input}, {weights})[0]);
}

inline torch::Tensor leaf(const std::vector<int64_t>& shape, double phase = 0.1) {
  return wave(shape, phase).requires_grad_();
}
