// Element-wise operators on one tensor: signs, powers, exponentials, rounding, trigonometry, special functions.
#pragma once
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_tables.h"

namespace rush {

namespace ops {
#define RUSH_DECLARE_OP(name) inline constinit UnaryOp name{"aten::" #name "(Tensor self) -> Tensor"};
#define RUSH_DECLARE_BOTH(name) \
  RUSH_DECLARE_OP(name)         \
  inline constinit UnaryInplaceOp name##_{"aten::" #name "_(Tensor(a!) self) -> Tensor(a!)"};
RUSH_FORALL_FLOAT_UNARY(RUSH_DECLARE_BOTH)
RUSH_FORALL_SAME_UNARY(RUSH_DECLARE_BOTH)
RUSH_FORALL_ROUNDING(RUSH_DECLARE_BOTH)
RUSH_FORALL_PREDICATES(RUSH_DECLARE_OP)
RUSH_DECLARE_BOTH(abs)
RUSH_DECLARE_BOTH(logical_not)
RUSH_DECLARE_BOTH(round)
RUSH_DECLARE_BOTH(square)
#undef RUSH_DECLARE_BOTH
#undef RUSH_DECLARE_OP
inline constinit UnaryOp positive{"aten::positive(Tensor(a) self) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, int64_t)> round_decimals{
    "aten::round.decimals(Tensor self, *, int decimals) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, int64_t)> round_decimals_{
    "aten::round_.decimals(Tensor(a!) self, *, int decimals) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, std::optional<double>)> logit{
    "aten::logit(Tensor self, float? eps=None) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, std::optional<double>)> logit_{
    "aten::logit_(Tensor(a!) self, float? eps=None) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, std::optional<double>)> logit_backward{
    "aten::logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, std::optional<double>, std::optional<double>, std::optional<double>)>
    nan_to_num{"aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, std::optional<double>, std::optional<double>, std::optional<double>)> nan_to_num_{
    "aten::nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor(a!)"};
inline constinit Op<Tensor(int64_t, const Tensor&)> polygamma{"aten::polygamma(int n, Tensor self) -> Tensor"};
inline constinit BinaryOp sigmoid_backward{"aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor"};
inline constinit BinaryOp tanh_backward{"aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor"};
}  // namespace ops

// What each computes is in core/ops/pointwise/pointwise_tables.h.
#define RUSH_DEFINE_FUNCTION(name) \
  inline Tensor name(const Tensor& self) { return ops::name(self); }
#define RUSH_DEFINE_BOTH(name) \
  RUSH_DEFINE_FUNCTION(name)   \
  inline Tensor& name##_(Tensor& self) { return ops::name##_(self); }
RUSH_FORALL_FLOAT_UNARY(RUSH_DEFINE_BOTH)
RUSH_FORALL_SAME_UNARY(RUSH_DEFINE_BOTH)
RUSH_FORALL_ROUNDING(RUSH_DEFINE_BOTH)
RUSH_FORALL_PREDICATES(RUSH_DEFINE_FUNCTION)
// |x|; the magnitude of a complex number, which is real. Throws on bool.
RUSH_DEFINE_BOTH(abs)
// Whether each element is 0 or false; the result is bool.
RUSH_DEFINE_BOTH(logical_not)
// x * x; of bool, as int64.
RUSH_DEFINE_BOTH(square)
#undef RUSH_DEFINE_BOTH
#undef RUSH_DEFINE_FUNCTION
/// The nearest integer, halves to the even one; or the nearest multiple of 10^-decimals.
inline Tensor round(const Tensor& self) { return ops::round(self); }
inline Tensor round(const Tensor& self, int64_t decimals) { return ops::round_decimals(self, decimals); }
inline Tensor& round_(Tensor& self) { return ops::round_(self); }
inline Tensor& round_(Tensor& self, int64_t decimals) { return ops::round_decimals_(self, decimals); }
inline Tensor absolute(const Tensor& self) { return ops::abs(self); }
/// `self` itself. Throws TypeError on bool.
inline Tensor positive(const Tensor& self) { return ops::positive(self); }
/// log(x / (1 - x)), the inverse of sigmoid, of elements clamped to [eps, 1 - eps] when eps is given.
inline Tensor logit(const Tensor& self, std::optional<double> eps = std::nullopt) { return ops::logit(self, eps); }
inline Tensor& logit_(Tensor& self, std::optional<double> eps = std::nullopt) { return ops::logit_(self, eps); }
/// NaN and infinities replaced: by 0 and by the dtype's largest and smallest numbers unless given.
inline Tensor nan_to_num(const Tensor& self, std::optional<double> nan = std::nullopt,
                         std::optional<double> posinf = std::nullopt, std::optional<double> neginf = std::nullopt) {
  return ops::nan_to_num(self, nan, posinf, neginf);
}
inline Tensor& nan_to_num_(Tensor& self, std::optional<double> nan = std::nullopt,
                           std::optional<double> posinf = std::nullopt, std::optional<double> neginf = std::nullopt) {
  return ops::nan_to_num_(self, nan, posinf, neginf);
}
/// Derivative number n + 1 of lgamma; polygamma(0) is digamma. Throws ValueError when n is negative.
inline Tensor polygamma(int64_t n, const Tensor& self) { return ops::polygamma(n, self); }
/// grad * y (1 - y) and grad * (1 - y^2), y being the result of sigmoid and of tanh.
inline Tensor sigmoid_backward(const Tensor& grad_output, const Tensor& output) {
  return ops::sigmoid_backward(grad_output, output);
}
inline Tensor tanh_backward(const Tensor& grad_output, const Tensor& output) {
  return ops::tanh_backward(grad_output, output);
}

namespace kernels {
#define RUSH_DECLARE_KERNEL(name) inline constinit PointwiseKernel name{#name};
RUSH_FORALL_FLOAT_UNARY(RUSH_DECLARE_KERNEL)
RUSH_FORALL_SAME_UNARY(RUSH_DECLARE_KERNEL)
RUSH_FORALL_ROUNDING(RUSH_DECLARE_KERNEL)
RUSH_FORALL_PREDICATES(RUSH_DECLARE_KERNEL)
#undef RUSH_DECLARE_KERNEL
inline constinit PointwiseKernel abs{"abs"};  // complex operands have a real output
inline constinit PointwiseKernel logical_not{"logical_not"}, round{"round"};
inline constinit Kernel<void(TensorIterator&, int64_t)> round_decimals{"round"};
// `eps` is negative when there is nothing to clamp.
inline constinit Kernel<void(TensorIterator&, double eps)> logit{"logit"}, logit_backward{"logit_backward"};
inline constinit Kernel<void(TensorIterator&, std::optional<double>, std::optional<double>, std::optional<double>)>
    nan_to_num{"nan_to_num"};
inline constinit Kernel<void(TensorIterator&, int64_t n)> polygamma{"polygamma"};
inline constinit PointwiseKernel sigmoid_backward{"sigmoid_backward"}, tanh_backward{"tanh_backward"};
}  // namespace kernels

}  // namespace rush
