// Chains of operators as one, for what their intermediate results cost in memory traffic. ATen has none of these.
#pragma once
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/philox.h"

namespace rush {

using OptionalTensor = std::optional<Tensor>;

namespace ops {
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, IntArrayRef,
                                                                       const OptionalTensor&, const OptionalTensor&,
                                                                       double, double, std::optional<ScalarType>)>
    add_layer_norm{
        "rush::add_layer_norm(Tensor self, Tensor other, int[] normalized_shape, Tensor? weight=None, Tensor? "
        "bias=None, float eps=1.0000000000000001e-05, float dropout_p=0., *, ScalarType? dtype=None) -> (Tensor "
        "output, Tensor sum, Tensor mean, Tensor rstd, Tensor mask)"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>(
    const Tensor&, const OptionalTensor&, const Tensor&, IntArrayRef, const OptionalTensor&, const Tensor&,
    const OptionalTensor&, const OptionalTensor&, ScalarType, const OptionalTensor&, double, bool)>
    add_layer_norm_backward{
        "rush::add_layer_norm_backward(Tensor grad_output, Tensor? grad_sum, Tensor sum, int[] normalized_shape, "
        "Tensor? mean, Tensor rstd, Tensor? weight, Tensor? bias, ScalarType other_dtype, Tensor? mask=None, float "
        "scale=1., bool column_sums=False) -> (Tensor grad_self, Tensor grad_other, Tensor grad_weight, Tensor "
        "grad_bias, Tensor grad_other_sums)"};

inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                                       const Tensor&)>
    gelu_perceptron{
        "rush::gelu_perceptron(Tensor input, Tensor weight1, Tensor bias1, Tensor weight2, Tensor bias2) -> (Tensor "
        "output, Tensor pre, Tensor hidden)"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&,
                                                                       const Tensor&, const Tensor&, const Tensor&)>
    gelu_perceptron_backward{
        "rush::gelu_perceptron_backward(Tensor grad_output, Tensor input, Tensor weight1, Tensor weight2, Tensor pre, "
        "Tensor hidden) -> (Tensor grad_input, Tensor grad_weight1, Tensor grad_bias1, Tensor grad_weight2, Tensor "
        "grad_bias2)"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&)> linear_gelu{
    "rush::linear_gelu(Tensor input, Tensor weight, Tensor bias) -> (Tensor output, Tensor pre)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&)> gelu_bias_backward_{
    "rush::gelu_bias_backward_(Tensor(a!) grad, Tensor pre) -> Tensor grad_bias"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&)> linear_parameter_gradients{
    "rush::linear_parameter_gradients(Tensor grad_output, Tensor input) -> (Tensor grad_weight, Tensor grad_bias)"};
}  // namespace ops

/// The residual stream of a transformer and its normalisation: sum = self + other and layer_norm(sum), of tensors of
/// one shape; returns (layer_norm(sum), sum). The result is in `dtype`, by default that of the sum. Under autocast on
/// CUDA it is in the 16-bit dtype, which the matrix product that follows would round it to, and the sum keeps the dtype
/// of `self`. Of `other` an element is dropped with probability `dropout_p` first, as dropout does in training, with
/// its random numbers. Throws as layer_norm and dropout do, and ValueError when the shapes differ.
inline std::tuple<Tensor, Tensor> add_layer_norm(const Tensor& self, const Tensor& other, IntArrayRef normalized_shape,
                                                 const OptionalTensor& weight = std::nullopt,
                                                 const OptionalTensor& bias = std::nullopt, double eps = 1e-5,
                                                 std::optional<ScalarType> dtype = std::nullopt, double dropout_p = 0) {
  const auto [output, sum, mean, rstd, mask] =
      ops::add_layer_norm(self, other, normalized_shape, weight, bias, eps, dropout_p, dtype);
  return {output, sum};
}

/// linear(gelu(linear(input, weight1, bias1)), weight2, bias2), GELU being its tanh approximation: (..., in) x (hidden,
/// in), (hidden), (out, hidden), (out) -> (..., out). On CUDA, GELU belongs to the call of the matrix product, and the
/// gradient of the first bias to the pass that multiplies by GELU's derivative. Throws as linear does, and ValueError
/// unless the weights have 2 dimensions.
inline Tensor gelu_perceptron(const Tensor& input, const Tensor& weight1, const Tensor& bias1, const Tensor& weight2,
                              const Tensor& bias2) {
  return std::get<0>(ops::gelu_perceptron(input, weight1, bias1, weight2, bias2));
}

/// The first half of gelu_perceptron: (gelu(pre), pre), pre = linear(input, weight, bias). A compiled function calls it
/// for these two operators. It has no derivative. Throws as gelu_perceptron does.
inline std::tuple<Tensor, Tensor> linear_gelu(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return ops::linear_gelu(input, weight, bias);
}
/// Its gradient: multiplies the gradient of gelu(pre) by GELU's derivative, in place, and returns the bias's, the sum
/// of the rows. `grad` is contiguous. Throws ValueError or TypeError where the two differ in shape, dtype or device.
inline Tensor gelu_bias_backward_(const Tensor& grad, const Tensor& pre) { return ops::gelu_bias_backward_(grad, pre); }

namespace kernels {
// Rows of `columns` elements, row-major. `sum` and `self` are of one dtype, `output` and `other` of that or, beside
// float32, of a 16-bit one. Statistics and parameters are float32 for 16-bit sums; weight and bias may be undefined.
// Unless `mask` is undefined, dropout comes before the sum: see kernels::dropout.
inline constinit Kernel<void(const Tensor& output, const Tensor& sum, const Tensor& mean, const Tensor& rstd,
                             const Tensor& mask, const Tensor& self, const Tensor& other, const Tensor& weight,
                             const Tensor& bias, int64_t columns, double eps, double keep, const PhiloxState& reserved)>
    add_layer_norm{"add_layer_norm"};
// The gradient of other is that of self, times mask * scale where there is a mask; grad_other is undefined where there
// is none and the dtypes are the same, too. grad_sums (columns), of grad_other's dtype, may be undefined: the sums of
// the rows of grad_other, which is not then. grad_sum may be undefined, and grad_weight and grad_bias, which are in the
// dtype of the statistics; and mean, in RMS norm.
inline constinit Kernel<void(const Tensor& grad_self, const Tensor& grad_other, const Tensor& grad_weight,
                             const Tensor& grad_bias, const Tensor& grad_sums, const Tensor& grad_output,
                             const Tensor& grad_sum, const Tensor& sum, const Tensor& mean, const Tensor& rstd,
                             const Tensor& weight, const Tensor& mask, int64_t columns, double scale)>
    add_layer_norm_backward{"add_layer_norm_backward"};

// Matrices (rows, columns) of one dtype.
// out = gelu(pre), pre = input weight^T + bias: (N, in) x (out, in) + (out) -> (N, out).
inline constinit Kernel<void(const Tensor& out, const Tensor& pre, const Tensor& input, const Tensor& weight,
                             const Tensor& bias)>
    linear_gelu{"gelu_perceptron"};
// grad *= gelu'(pre) in place, and sums (columns) = the sum of the rows of grad.
inline constinit Kernel<void(const Tensor& grad, const Tensor& pre, const Tensor& sums)> gelu_bias_backward{
    "gelu_perceptron_backward"};
// grad_weight (out, in) = grad^T input, grad_bias (out) = the sum of the rows of grad.
inline constinit Kernel<void(const Tensor& grad_weight, const Tensor& grad_bias, const Tensor& grad,
                             const Tensor& input)>
    linear_parameter_gradients{"linear_parameter_gradients"};
}  // namespace kernels

namespace native {
// The kernels above made of those of other operators: what a device does that has no better way.
void add_layer_norm_by_parts(const Tensor& output, const Tensor& sum, const Tensor& mean, const Tensor& rstd,
                             const Tensor& mask, const Tensor& self, const Tensor& other, const Tensor& weight,
                             const Tensor& bias, int64_t columns, double eps, double keep, const PhiloxState& reserved);
void add_layer_norm_backward_by_parts(const Tensor& grad_self, const Tensor& grad_other, const Tensor& grad_weight,
                                      const Tensor& grad_bias, const Tensor& grad_sums, const Tensor& grad_output,
                                      const Tensor& grad_sum, const Tensor& sum, const Tensor& mean, const Tensor& rstd,
                                      const Tensor& weight, const Tensor& mask, int64_t columns, double scale);
// The sums of the columns of t (..., columns).
void store_column_sums(const Tensor& sums, const Tensor& t);
void linear_gelu_by_parts(const Tensor& out, const Tensor& pre, const Tensor& input, const Tensor& weight,
                          const Tensor& bias);
void gelu_bias_backward_by_parts(const Tensor& grad, const Tensor& pre, const Tensor& sums);
void linear_parameter_gradients_by_parts(const Tensor& grad_weight, const Tensor& grad_bias, const Tensor& grad,
                                         const Tensor& input);
// A matrix (n, m), or its transpose, as the kernels of matrix products take it: (1, n, m). A view.
Tensor batch_of_one(const Tensor& matrix, bool transposed = false);
}  // namespace native

}  // namespace rush
