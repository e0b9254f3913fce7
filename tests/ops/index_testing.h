// What the tests of indexing share: easy tensors, their values, and the check of a derivative.
#pragma once
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/gradcheck.h"
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

inline void check_gradients(const autograd::TensorFunction& fn, const Tensors& inputs) {
  check_gradient(fn, inputs);
  CHECK(autograd::gradgradcheck(fn, inputs, gradcheck_options()));
}

// For a function whose meaning depends on its inputs' strides.
inline void check_gradients_as_laid_out(const autograd::TensorFunction& fn, const Tensors& inputs) {
  CHECK(autograd::gradcheck(fn, inputs, gradcheck_options(false)));
  CHECK(autograd::gradgradcheck(fn, inputs, gradcheck_options(false)));
}

}  // namespace rush::testing
