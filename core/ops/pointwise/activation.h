// Activation functions. Those with a backward of their own have it as an operator, one fused kernel, as in ATen.
#pragma once
#include "core/ops/pointwise/pointwise.h"

namespace rush {

namespace ops {
inline constinit UnaryOp relu{"aten::relu(Tensor self) -> Tensor"};
inline constinit UnaryInplaceOp relu_{"aten::relu_(Tensor(a!) self) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, const Scalar&)> threshold{
    "aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Scalar&, const Scalar&)> threshold_{
    "aten::threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&)> threshold_backward{
    "aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor"};

inline constinit Op<Tensor(const Tensor&, std::string_view)> gelu{
    "aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor"};
inline constinit Op<Tensor&(Tensor&, std::string_view)> gelu_{
    "aten::gelu_(Tensor(a!) self, *, str approximate=\"none\") -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, std::string_view)> gelu_backward{
    "aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor"};
inline constinit UnaryOp silu{"aten::silu(Tensor self) -> Tensor"};
inline constinit UnaryInplaceOp silu_{"aten::silu_(Tensor(a!) self) -> Tensor(a!)"};
inline constinit BinaryOp silu_backward{"aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor"};
inline constinit UnaryOp mish{"aten::mish(Tensor self) -> Tensor"};
inline constinit UnaryInplaceOp mish_{"aten::mish_(Tensor(a!) self) -> Tensor(a!)"};
inline constinit BinaryOp mish_backward{"aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor"};

inline constinit ScalarOp leaky_relu{"aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor"};
inline constinit ScalarInplaceOp leaky_relu_{
    "aten::leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&, bool)> leaky_relu_backward{
    "aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, const Scalar&, const Scalar&)> elu{
    "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Scalar&, const Scalar&, const Scalar&)> elu_{
    "aten::elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, const Scalar&, const Scalar&, bool, const Tensor&)>
    elu_backward{
        "aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor "
        "self_or_result) -> Tensor"};
inline constinit UnaryOp selu{"aten::selu(Tensor self) -> Tensor"};
inline constinit UnaryInplaceOp selu_{"aten::selu_(Tensor(a!) self) -> Tensor(a!)"};
inline constinit ScalarOp celu{"aten::celu(Tensor self, Scalar alpha=1.) -> Tensor"};
inline constinit ScalarInplaceOp celu_{"aten::celu_(Tensor(a!) self, Scalar alpha=1.) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, const Scalar&)> softplus{
    "aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&, const Scalar&)> softplus_backward{
    "aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor"};
inline constinit UnaryOp log_sigmoid{"aten::log_sigmoid(Tensor self) -> Tensor"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&)> log_sigmoid_forward{
    "aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&)> log_sigmoid_backward{
    "aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor"};

inline constinit Op<Tensor(const Tensor&, const Scalar&, const Scalar&)> hardtanh{
    "aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Scalar&, const Scalar&)> hardtanh_{
    "aten::hardtanh_(Tensor(a!) self, Scalar min_val=-1, Scalar max_val=1) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&, const Scalar&)> hardtanh_backward{
    "aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor"};
inline constinit UnaryOp relu6{"aten::relu6(Tensor self) -> Tensor"};
inline constinit UnaryInplaceOp relu6_{"aten::relu6_(Tensor(a!) self) -> Tensor(a!)"};
inline constinit UnaryOp hardswish{"aten::hardswish(Tensor self) -> Tensor"};
inline constinit UnaryInplaceOp hardswish_{"aten::hardswish_(Tensor(a!) self) -> Tensor(a!)"};
inline constinit BinaryOp hardswish_backward{"aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor"};
inline constinit UnaryOp hardsigmoid{"aten::hardsigmoid(Tensor self) -> Tensor"};
inline constinit UnaryInplaceOp hardsigmoid_{"aten::hardsigmoid_(Tensor(a!) self) -> Tensor(a!)"};
inline constinit BinaryOp hardsigmoid_backward{"aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor"};
inline constinit ScalarOp hardshrink{"aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&)> hardshrink_backward{
    "aten::hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor"};
inline constinit ScalarOp softshrink{"aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&)> softshrink_backward{
    "aten::softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor"};

inline constinit Op<Tensor(const Tensor&, int64_t)> glu{"aten::glu(Tensor self, int dim=-1) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, int64_t)> glu_backward{
    "aten::glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor"};
inline constinit BinaryOp prelu{"aten::prelu(Tensor self, Tensor weight) -> Tensor"};
inline constinit BinaryOp _prelu_kernel{"aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&)> _prelu_kernel_backward{
    "aten::_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)"};
}  // namespace ops

// max(x, 0).
inline Tensor relu(const Tensor& self) { return ops::relu(self); }
inline Tensor& relu_(Tensor& self) { return ops::relu_(self); }
// x above the threshold, `value` elsewhere.
inline Tensor threshold(const Tensor& self, const Scalar& threshold, const Scalar& value) {
  return ops::threshold(self, threshold, value);
}
inline Tensor& threshold_(Tensor& self, const Scalar& threshold, const Scalar& value) {
  return ops::threshold_(self, threshold, value);
}
// x Phi(x), Phi being the normal distribution's cumulative function; with approximate = "tanh" the approximation
// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.
inline Tensor gelu(const Tensor& self, std::string_view approximate = "none") { return ops::gelu(self, approximate); }
inline Tensor& gelu_(Tensor& self, std::string_view approximate = "none") { return ops::gelu_(self, approximate); }
// x sigmoid(x), also called swish.
inline Tensor silu(const Tensor& self) { return ops::silu(self); }
inline Tensor& silu_(Tensor& self) { return ops::silu_(self); }
// x tanh(softplus(x)). Misra, Mish: A Self Regularized Non-Monotonic Activation Function, 2019.
inline Tensor mish(const Tensor& self) { return ops::mish(self); }
inline Tensor& mish_(Tensor& self) { return ops::mish_(self); }
// x above 0, negative_slope * x below.
inline Tensor leaky_relu(const Tensor& self, const Scalar& negative_slope = 0.01) {
  return ops::leaky_relu(self, negative_slope);
}
inline Tensor& leaky_relu_(Tensor& self, const Scalar& negative_slope = 0.01) {
  return ops::leaky_relu_(self, negative_slope);
}
// scale * x above 0, scale * alpha * (exp(input_scale * x) - 1) below. Clevert, Unterthiner, Hochreiter, 2015.
inline Tensor elu(const Tensor& self, const Scalar& alpha = 1, const Scalar& scale = 1, const Scalar& input_scale = 1) {
  return ops::elu(self, alpha, scale, input_scale);
}
inline Tensor& elu_(Tensor& self, const Scalar& alpha = 1, const Scalar& scale = 1, const Scalar& input_scale = 1) {
  return ops::elu_(self, alpha, scale, input_scale);
}
// elu with the alpha and scale that keep mean 0 and variance 1. Klambauer et al., Self-Normalizing Neural Networks.
inline Tensor selu(const Tensor& self) { return ops::selu(self); }
inline Tensor& selu_(Tensor& self) { return ops::selu_(self); }
// max(0, x) + min(0, alpha (exp(x / alpha) - 1)). Throws ValueError when alpha is 0.
inline Tensor celu(const Tensor& self, const Scalar& alpha = 1.0) { return ops::celu(self, alpha); }
inline Tensor& celu_(Tensor& self, const Scalar& alpha = 1.0) { return ops::celu_(self, alpha); }
// log(1 + exp(beta x)) / beta, and x itself where beta x is above the threshold.
inline Tensor softplus(const Tensor& self, const Scalar& beta = 1, const Scalar& threshold = 20) {
  return ops::softplus(self, beta, threshold);
}
// log(sigmoid(x)).
inline Tensor log_sigmoid(const Tensor& self) { return ops::log_sigmoid(self); }
// x held within [min_val, max_val]. Throws ValueError when they are the wrong way round.
inline Tensor hardtanh(const Tensor& self, const Scalar& min_val = -1, const Scalar& max_val = 1) {
  return ops::hardtanh(self, min_val, max_val);
}
inline Tensor& hardtanh_(Tensor& self, const Scalar& min_val = -1, const Scalar& max_val = 1) {
  return ops::hardtanh_(self, min_val, max_val);
}
// x held within [0, 6].
inline Tensor relu6(const Tensor& self) { return ops::relu6(self); }
inline Tensor& relu6_(Tensor& self) { return ops::relu6_(self); }
// x hardsigmoid(x). Howard et al., Searching for MobileNetV3, 2019.
inline Tensor hardswish(const Tensor& self) { return ops::hardswish(self); }
inline Tensor& hardswish_(Tensor& self) { return ops::hardswish_(self); }
// x / 6 + 1/2 held within [0, 1].
inline Tensor hardsigmoid(const Tensor& self) { return ops::hardsigmoid(self); }
inline Tensor& hardsigmoid_(Tensor& self) { return ops::hardsigmoid_(self); }
// x outside [-lambd, lambd], 0 inside; softshrink moves what is outside towards 0 by lambd, and throws ValueError when
// it is negative.
inline Tensor hardshrink(const Tensor& self, const Scalar& lambd = 0.5) { return ops::hardshrink(self, lambd); }
inline Tensor softshrink(const Tensor& self, const Scalar& lambd = 0.5) { return ops::softshrink(self, lambd); }
// The first half of dimension `dim` times the sigmoid of the second. Throws ValueError when its size is odd.
inline Tensor glu(const Tensor& self, int64_t dim = -1) { return ops::glu(self, dim); }
// x above 0, weight * x below, with one weight, or one for each channel (dimension 1).
inline Tensor prelu(const Tensor& self, const Tensor& weight) { return ops::prelu(self, weight); }
// Randomised leaky_relu. Out of training the slope is the mean of lower and upper; throws NotImplementedError in
// training.
Tensor rrelu(const Tensor& self, const Scalar& lower = 1.0 / 8, const Scalar& upper = 1.0 / 3, bool training = false);

// Operands of the kernels of a backward: the output's gradient, then the input (or, where said, the output).
namespace kernels {
inline constinit PointwiseKernel relu{"relu"};
inline constinit ScalarKernel2 threshold{"threshold"};
inline constinit ScalarKernel threshold_backward{"threshold_backward"};
inline constinit PointwiseKernel gelu{"gelu"}, gelu_tanh{"gelu"}, silu{"silu"}, mish{"mish"};
inline constinit PointwiseKernel gelu_backward{"gelu_backward"}, gelu_tanh_backward{"gelu_backward"};
inline constinit PointwiseKernel silu_backward{"silu_backward"}, mish_backward{"mish_backward"};
inline constinit ScalarKernel leaky_relu{"leaky_relu"}, leaky_relu_backward{"leaky_relu_backward"};
inline constinit ScalarKernel3 elu{"elu"}, elu_backward{"elu_backward"};
inline constinit ScalarKernel3 elu_backward_from_result{"elu_backward"};
inline constinit ScalarKernel2 softplus{"softplus"}, softplus_backward{"softplus_backward"};
inline constinit PointwiseKernel log_sigmoid{"log_sigmoid"}, log_sigmoid_backward{"log_sigmoid_backward"};
inline constinit ScalarKernel2 hardtanh_backward{"hardtanh_backward"};
inline constinit PointwiseKernel hardswish{"hardswish"}, hardswish_backward{"hardswish_backward"};
inline constinit PointwiseKernel hardsigmoid{"hardsigmoid"}, hardsigmoid_backward{"hardsigmoid_backward"};
inline constinit ScalarKernel hardshrink{"hardshrink"}, softshrink{"softshrink"};
inline constinit ScalarKernel shrink_backward{"shrink_backward"};  // of both: the gradient where |x| > lambd
inline constinit PointwiseKernel glu{"glu"};                       // both halves
inline constinit PointwiseKernel glu_backward_a{"glu_backward"}, glu_backward_b{"glu_backward"};  // gradient, halves
inline constinit PointwiseKernel prelu{"prelu"};
inline constinit PointwiseKernel prelu_backward_self{"prelu_backward"}, prelu_backward_weight{"prelu_backward"};
}  // namespace kernels

namespace native {
// The fronts that are templates. The others are in activation.cpp.
template <class R>
void register_activation_fronts(R& r) {
  r.native(ops::relu, unary<kernels::relu, Promotion::None>);
  r.native(ops::relu_, unary_<kernels::relu, Promotion::None>);
  r.native(ops::threshold, unary<kernels::threshold, Promotion::None>);
  r.native(ops::threshold_, unary_<kernels::threshold, Promotion::None>);
  r.native(ops::threshold_backward, binary<kernels::threshold_backward, Promotion::Common>);
#define RUSH_REGISTER(name)                                       \
  r.native(ops::name, unary<kernels::name, Promotion::None>);     \
  r.native(ops::name##_, unary_<kernels::name, Promotion::None>); \
  r.native(ops::name##_backward, binary<kernels::name##_backward, Promotion::Common>);
  RUSH_REGISTER(silu)
  RUSH_REGISTER(mish)
  RUSH_REGISTER(hardswish)
  RUSH_REGISTER(hardsigmoid)
#undef RUSH_REGISTER
  r.native(ops::leaky_relu, unary<kernels::leaky_relu, Promotion::None>);
  r.native(ops::leaky_relu_, unary_<kernels::leaky_relu, Promotion::None>);
  r.native(ops::elu, unary<kernels::elu, Promotion::None>);
  r.native(ops::elu_, unary_<kernels::elu, Promotion::None>);
  r.native(ops::softplus, unary<kernels::softplus, Promotion::None>);
  r.native(ops::softplus_backward, binary<kernels::softplus_backward, Promotion::Common>);
  r.native(ops::hardtanh_backward, binary<kernels::hardtanh_backward, Promotion::Common>);
  r.native(ops::hardshrink, unary<kernels::hardshrink, Promotion::None>);
  r.native(ops::hardshrink_backward, binary<kernels::shrink_backward, Promotion::Common>);
  r.native(ops::softshrink_backward, binary<kernels::shrink_backward, Promotion::Common>);
  r.native(ops::_prelu_kernel, binary<kernels::prelu, Promotion::Common>);
}
}  // namespace native

}  // namespace rush
