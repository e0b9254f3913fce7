// Checks derivatives against finite differences: the whole Jacobian, element by element, or one projection of it.
#pragma once
#include <functional>

#include "autograd/node.h"

namespace rush::autograd {

/// How derivatives are compared.
struct GradcheckOptions {
  double eps = 1e-6;   // step of the central difference
  double atol = 1e-5;  // |analytic - numeric| <= atol + rtol * |numeric|
  double rtol = 1e-3;
  /// Whether `fn` computes the same of inputs that lie in memory in another way, and its derivative of gradients that
  /// do, or that are one number, expanded. Off for functions, like view and as_strided, whose meaning depends on
  /// strides.
  bool any_layout = true;
  /// Compares u J v, for a fixed u over an output and v over an input of weights between 0 and 1, where without it
  /// every element of the Jacobian J is: two calls of `fn` per input and a backward pass per output, of any size. The
  /// tolerance grows as in PyTorch, to atol * sum(u) * sum(v), so that a mistake in few elements of many may be missed.
  bool fast_mode = false;
};

using TensorFunction = std::function<Tensors(const Tensors&)>;

/// Compares the gradients of `fn` with respect to the inputs that require one with central differences, then once more
/// with transposed inputs and gradients of the outputs that skip memory. Inputs are float64 or complex128, of which
/// real and imaginary parts count as numbers of their own, and of any strides, but no two elements of one may share
/// memory; sparse ones require no gradient. Outputs of integer dtypes are passed over. Returns true, or throws Error
/// naming the output, the input, the number (where it is not in fast mode) and both values. torch.autograd.gradcheck.
bool gradcheck(const TensorFunction& fn, const Tensors& inputs, const GradcheckOptions& options = {});

/// The same for the gradients' own gradients: gradcheck of (inputs, grad_outputs) -> gradients of the inputs, at random
/// grad_outputs. torch.autograd.gradgradcheck.
bool gradgradcheck(const TensorFunction& fn, const Tensors& inputs, const GradcheckOptions& options = {});

/// Sees every function that is checked, before it is: `order` is 1 in gradcheck, 2 in gradgradcheck, which is also a
/// gradcheck of the function's gradients. The project's tests find out by it which derivatives none of them checks.
using GradcheckObserver = void (*)(const TensorFunction& fn, const Tensors& inputs, int order);
inline constinit GradcheckObserver gradcheck_observer = nullptr;

}  // namespace rush::autograd
