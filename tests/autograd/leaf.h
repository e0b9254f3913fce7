// What tests of backward passes share: tensors that these end at, and their gradients as numbers.
#pragma once
#include <initializer_list>
#include <vector>

#include "rushlight.h"

namespace rush::testing {

// A tensor of these values in double precision that requires a gradient.
inline Tensor leaf_of(std::initializer_list<double> values) {
  return tensor(ArrayRef<double>(values), kFloat64).requires_grad_();
}

// A tensor of normally distributed values that requires a gradient.
inline Tensor random_leaf(IntArrayRef sizes, ScalarType dtype = kFloat32) {
  return randn(sizes, TensorOptions(dtype)).requires_grad_();
}

// Three ones that require a gradient.
inline Tensor leaf_of_ones() { return ones({3}, requires_grad()); }

// The tensor's elements in row-major order.
inline std::vector<double> list(const Tensor& t) {
  std::vector<double> values;
  const Tensor flat = t.detach().contiguous().view({-1});
  for (int64_t i = 0; i < flat.numel(); ++i) values.push_back(flat[i].item<double>());
  return values;
}

}  // namespace rush::testing
