// What the derivatives of element-wise operators have in common.
#pragma once
#include "autograd/derive.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/complex.h"

namespace rush {

// The gradient of a holomorphic function is g * conj(f'(x)); for real tensors this costs nothing.
inline Tensor conj_of(const Tensor& t) { return t.is_complex() ? t.conj() : t; }

// Formulas in the input x, and in the result y, of an operator on one tensor.
struct FromInput : Node {
  Saved self;
  RUSH_SAVED(self)
  void save(const Tensor& x) { self = x; }
};
struct FromResult : Node {
  Saved result;
  RUSH_SAVED(result)
  void save_output(const Tensor& y) { result = Saved::output(y, this); }
};

// RUSH_BY_INPUT(SinBackward) { return g * conj_of(x.cos()); } is the derivative that has this formula in the gradient g
// and the input x. RUSH_BY_RESULT's formula is in g and the result y.
#define RUSH_BY_INPUT(Name)                                                          \
  struct Name final : FromInput {                                                    \
    static Tensor formula(const Tensor& g, const Tensor& x);                         \
    Tensors apply(const Tensors& g) override { return {formula(g[0], self.get())}; } \
  };                                                                                 \
  Tensor Name::formula(const Tensor& g, const Tensor& x)
#define RUSH_BY_RESULT(Name)                                                           \
  struct Name final : FromResult {                                                     \
    static Tensor formula(const Tensor& g, const Tensor& y);                           \
    Tensors apply(const Tensors& g) override { return {formula(g[0], result.get())}; } \
  };                                                                                   \
  Tensor Name::formula(const Tensor& g, const Tensor& y)

// Of an operator f(x, parameters...) whose derivative is the operator backward(g, x, parameters...).
template <auto& backward, class... Parameters>
struct ParametersBackward : Node {
  Saved self;
  std::tuple<Parameters...> parameters;
  RUSH_SAVED(self)
  auto saved_arguments() { return std::tuple_cat(std::tie(self), saved_each(parameters)); }
  Tensors apply(const Tensors& g) override {
    return {std::apply([&](const auto&... p) { return backward(g[0], self.get(), p...); }, parameters)};
  }
};

// Formulas in both arguments of an operator on two tensors.
struct FromInputs : Node {
  Saved self, other;
  RUSH_SAVED(self, other)
  void save(const Tensor& a, const Tensor& b) {
    self = a;
    other = b;
  }
};

// A piecewise constant function: ceil, sign, ... Its gradients are zero.
struct StepBackward final : Node {
  Tensors apply(const Tensors& g) override { return Tensors(next_edges().size(), zeros_like(g[0])); }
};

}  // namespace rush
