// What the tests of indexing share: easy tensors, their values, and the check of a derivative.
#pragma once
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/debug/gradcheck.h"
#include "rushlight.h"
#include "tests/compute_sanitizer.h"

namespace rush::testing {

using Doubles = std::vector<double>;
using Longs = std::vector<int64_t>;

// 0, 1, 2, ... in this shape.
inline Tensor counting(IntArrayRef sizes, ScalarType dtype = kFloat64) {
  const Tensor flat = zeros(checked_numel(sizes), kFloat64);
  for (int64_t i = 0; i < flat.numel(); ++i) flat.data_ptr<double>()[i] = static_cast<double>(i);
  return flat.to(dtype).view(sizes);
}

inline Doubles values(const Tensor& t) {
  const Tensor dense = t.to(kFloat64).contiguous();
  return Doubles(dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel());
}

// The largest absolute value, found on the host.
inline double largest(const Tensor& t) { return t.cpu().abs().max().item<double>(); }

// Some smooth values with a gradient.
inline Tensor leaf(IntArrayRef sizes, double phase = 0) {
  const Tensor t = zeros(sizes, kFloat64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_ptr<double>()[i] = std::sin(1.7 * static_cast<double>(i) + phase);
  return t.requires_grad_();
}

// Smooth values, complex where the dtype is.
inline Tensor smooth(IntArrayRef sizes, ScalarType dtype = kFloat64, double phase = 0) {
  const Tensor real = leaf(sizes, phase).detach();
  if (!is_complex(dtype)) return real.to(dtype);
  return (real.to(kComplex128) + leaf(sizes, phase + 1).detach() * Scalar(complex<double>(0, 1))).to(dtype);
}

inline Tensor complex_leaf(IntArrayRef sizes, double phase = 0) {
  return smooth(sizes, kComplex128, phase).requires_grad_();
}

inline autograd::GradcheckOptions gradcheck_options(bool any_layout = true) {
  autograd::GradcheckOptions options;
  options.any_layout = any_layout;
  options.fast_mode = under_compute_sanitizer();
  return options;
}

inline void check_gradient(const autograd::TensorFunction& fn, const Tensors& inputs) {
  CHECK(autograd::gradcheck(fn, inputs, gradcheck_options()));
}

// Second derivatives; under compute-sanitizer they are computed, for it to see the kernels, and not compared.
inline void check_second_gradient(const autograd::TensorFunction& fn, const Tensors& inputs, bool any_layout = true) {
  if (!under_compute_sanitizer()) {
    CHECK(autograd::gradgradcheck(fn, inputs, gradcheck_options(any_layout)));
    return;
  }
  const auto differentiable = [](const Tensors& tensors) {
    Tensors kept;
    for (const Tensor& t : tensors) {
      if (t.defined() && t.requires_grad()) kept.push_back(t.to_dense());
    }
    return kept;
  };
  const auto weights_of = [](const Tensors& tensors) {
    Tensors weights;
    for (const Tensor& t : tensors) weights.push_back(ones_like(t.detach()).requires_grad_());
    return weights;
  };
  const Tensors outputs = differentiable(fn(inputs)), weights = weights_of(outputs), wanted = differentiable(inputs);
  const Tensors grads = differentiable(autograd::grad(outputs, wanted, weights, true, true, true));
  if (grads.empty()) return;
  Tensors all = wanted;
  all.insert(all.end(), weights.begin(), weights.end());
  CHECK(autograd::grad(grads, all, weights_of(grads), false, false, true).size() == all.size());
}

inline void check_gradients(const autograd::TensorFunction& fn, const Tensors& inputs) {
  check_gradient(fn, inputs);
  check_second_gradient(fn, inputs);
}

// For a function whose meaning depends on its inputs' strides.
inline void check_gradients_as_laid_out(const autograd::TensorFunction& fn, const Tensors& inputs) {
  CHECK(autograd::gradcheck(fn, inputs, gradcheck_options(false)));
  check_second_gradient(fn, inputs, false);
}

}  // namespace rush::testing
