#include "core/ops/nn/fused.h"

#include "core/ops/basic.h"
#include "core/ops/nn/dropout.h"
#include "core/ops/nn/linear.h"
#include "core/ops/nn/norm.h"
#include "core/ops/nn/norm_arguments.h"
#include "core/ops/pointwise/activation.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

namespace {

void assign(const Tensor& target, const Tensor& source) {
  Tensor to = target;
  copy_(to, source, false);
}

// An element-wise kernel's results, in a tensor that is there.
template <auto& kernel, class... Rest>
void into(const Tensor& out, std::initializer_list<const Tensor*> inputs, Rest... rest) {
  auto it = TensorIterator::pointwise(kernel.name(), out, inputs, Promotion::Common);
  kernel(it.device_type(), it, rest...);
  it.finish();
}

}  // namespace

void store_column_sums(const Tensor& sums, const Tensor& t) {
  if (!sums.defined() || sums.numel() == 0) return;
  const Tensor row = detail::make_view(sums, {1, sums.numel()}, {sums.numel(), 1}, sums.storage_offset());
  kernels::sum(t.device().type, row, t.view({-1, sums.numel()}), {0});
}

Tensor batch_of_one(const Tensor& matrix, bool transposed) {
  const int64_t i = transposed ? 1 : 0, j = 1 - i;
  return detail::make_view(matrix, {1, matrix.sizes()[i], matrix.sizes()[j]},
                           {matrix.numel(), matrix.strides()[i], matrix.strides()[j]}, matrix.storage_offset());
}

// ---- add_layer_norm ----

void add_layer_norm_by_parts(const Tensor& output, const Tensor& sum, const Tensor& mean, const Tensor& rstd,
                             const Tensor& mask, const Tensor& self, const Tensor& other, const Tensor& weight,
                             const Tensor& bias, int64_t columns, double eps, double keep,
                             const PhiloxState& reserved) {
  Tensor added = other;
  if (mask.defined()) {
    added = detail::empty_contiguous(other.sizes(), other.scalar_type(), other.device());
    kernels::dropout(sum.device().type, added, mask, other, keep, reserved);
  }
  into<kernels::add>(sum, {&self, &added}, 1);
  const bool rounds = output.scalar_type() != sum.scalar_type();
  const Tensor normalised = rounds ? detail::empty_contiguous(sum.sizes(), sum.scalar_type(), sum.device()) : output;
  kernels::layer_norm(sum.device().type, normalised, mean, rstd, sum, weight, bias, columns, eps);
  if (rounds) assign(output, normalised);
}

void add_layer_norm_backward_by_parts(const Tensor& grad_self, const Tensor& grad_other, const Tensor& grad_weight,
                                      const Tensor& grad_bias, const Tensor& grad_sums, const Tensor& grad_output,
                                      const Tensor& grad_sum, const Tensor& sum, const Tensor& mean, const Tensor& rstd,
                                      const Tensor& weight, const Tensor& mask, int64_t columns, double scale) {
  kernels::layer_norm_backward(sum.device().type, grad_self, grad_weight, grad_bias,
                               as_dtype(grad_output, sum.scalar_type()), sum, mean, rstd, weight, columns);
  if (grad_sum.defined()) grad_self.add_(grad_sum);
  if (!grad_other.defined()) return;
  assign(grad_other, grad_self);
  if (mask.defined()) assign(grad_other, rush::native_dropout_backward(grad_other, mask, scale));
  store_column_sums(grad_sums, grad_other);
}

namespace {

// Whether the kernels read and write the second addend and the normalised sum in a dtype of their own.
bool is_lowered(ScalarType sum, ScalarType other, ScalarType normalised) {
  return sum == kFloat32 && other == normalised && (other == kBFloat16 || other == kFloat16);
}

// What dropout leaves of x: by the kernel that makes the sum, where that draws the words of `reserved`, or at once. The
// numbers of mt19937 go by the order of x in memory.
struct RowDropout {
  RowDropout(const char* op, const Tensor& x, double p) : input(x) {
    RUSH_CHECK_VALUE(p >= 0 && p <= 1, op, ": dropout probability has to be between 0 and 1, but got ", p);
    if (p == 0 || x.numel() == 0) return;
    if (p == 1 || mt19937_of({}, x.device())) {
      std::tie(input, made) = rush::native_dropout(x, p, true);
      return;
    }
    keep = 1 - p;
    drawn = made = detail::empty_contiguous(x.sizes(), kBool, x.device());
    reserved = reserve_words({}, x.device(), op);
  }
  Tensor input, made, drawn;  // the masks: of either way, and of the kernel's
  double keep = 1;
  PhiloxState reserved{};
};

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> add_layer_norm(const Tensor& self, const Tensor& other,
                                                                  IntArrayRef shape, const OptionalTensor& weight,
                                                                  const OptionalTensor& bias, double eps,
                                                                  double dropout_p, std::optional<ScalarType> dtype) {
  const char* op = "add_layer_norm";
  RUSH_CHECK_VALUE(self.sizes() == other.sizes(), op, ": shapes differ: ", self.sizes(), " and ", other.sizes());
  RUSH_CHECK_VALUE(self.device() == other.device(), op, ": devices differ: ", self.device(), " and ", other.device());
  for (const Tensor* t : {&self, &other}) {
    RUSH_CHECK_NOT_IMPLEMENTED(t->is_floating_point(), op, ": not implemented for ", t->scalar_type());
  }
  const ScalarType type = promote_types(self.scalar_type(), other.scalar_type()), result = dtype.value_or(type);
  RUSH_CHECK_TYPE(is_floating_point(result), op, ": the result cannot be ", result);
  const ScalarType low = is_lowered(type, other.scalar_type(), result) ? result : type;
  const Tensor a = contiguous(as_dtype(self, type)), b = as_dtype(other, low);
  const detail::NormRows rows = detail::norm_rows(op, a, shape);
  const Tensor w = detail::norm_parameter(op, "weight", weight, shape, a);
  const Tensor bias_row = detail::norm_parameter(op, "bias", bias, shape, a);
  const ScalarType math = detail::norm_statistics_type(a);
  const Tensor out = detail::empty_contiguous(a.sizes(), low, a.device());
  const Tensor sum = detail::empty_contiguous(a.sizes(), type, a.device());
  const Tensor mean = detail::empty_contiguous(rows.statistics, math, a.device());
  const Tensor rstd = detail::empty_contiguous(rows.statistics, math, a.device());
  const RowDropout dropout(op, b, dropout_p);
  kernels::add_layer_norm(a.device().type, out, sum, mean, rstd, dropout.drawn, a, contiguous(dropout.input), w,
                          bias_row, rows.columns, eps, dropout.keep, dropout.reserved);
  return {as_dtype(out, result), sum, mean, rstd, dropout.made};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> add_layer_norm_backward(
    const Tensor& grad_output, const OptionalTensor& grad_sum, const Tensor& sum, IntArrayRef shape,
    const OptionalTensor& mean, const Tensor& rstd, const OptionalTensor& weight, const OptionalTensor& bias,
    ScalarType other_dtype, const OptionalTensor& mask, double scale, bool column_sums) {
  const char* op = "add_layer_norm_backward";
  const ScalarType type = sum.scalar_type(), math = detail::norm_statistics_type(sum);
  const detail::NormRows rows = detail::norm_rows(op, sum, shape);
  RUSH_CHECK_VALUE(grad_output.sizes() == sum.sizes() && (!given(grad_sum) || grad_sum->sizes() == sum.sizes()), op,
                   ": the gradients do not have the sum's shape ", sum.sizes());
  const auto is_statistic = [&](const Tensor& t) {
    return t.numel() == checked_numel(rows.statistics) && t.scalar_type() == math;
  };
  RUSH_CHECK_VALUE((!given(mean) || is_statistic(*mean)) && is_statistic(rstd), op,
                   ": mean and rstd are not those of the forward pass");
  RUSH_CHECK_TYPE(grad_output.is_floating_point() && is_floating_point(other_dtype), op, ": wrong dtypes: grad_output ",
                  grad_output.scalar_type(), ", other ", other_dtype);
  const auto is_mask = [&](const Tensor& t) {
    return t.sizes() == sum.sizes() && t.scalar_type() == kBool && t.device() == sum.device();
  };
  RUSH_CHECK_VALUE(!given(mask) || is_mask(*mask), op, ": the mask is not the forward pass's");
  const bool is_low = is_lowered(type, other_dtype, other_dtype);
  const ScalarType low = is_low ? other_dtype : type;
  const Tensor g = contiguous(grad_output.scalar_type() == low ? grad_output : as_dtype(grad_output, type));
  const Tensor x = contiguous(sum), centres = given(mean) ? contiguous(*mean) : Tensor();
  const Tensor through = given(grad_sum) ? contiguous(as_dtype(*grad_sum, type)) : Tensor();
  const Tensor w = detail::norm_parameter(op, "weight", weight, shape, x);
  const Tensor dx = detail::empty_contiguous(x.sizes(), type, x.device());
  const bool is_apart = is_low || given(mask) || column_sums;
  const Tensor by_other = is_apart ? detail::empty_contiguous(x.sizes(), low, x.device()) : Tensor();
  const Tensor sums = column_sums ? detail::empty_contiguous(rows.columns, low, x.device()) : Tensor();
  const Tensor dw = given(weight) ? detail::empty_contiguous(shape, math, x.device()) : Tensor();
  const Tensor db = given(bias) ? detail::empty_contiguous(shape, math, x.device()) : Tensor();
  kernels::add_layer_norm_backward(x.device().type, dx, by_other, dw, db, sums, g, through, x, centres,
                                   contiguous(rstd), w, given(mask) ? contiguous(*mask) : Tensor(), rows.columns,
                                   scale);
  return {dx, as_dtype(is_apart ? by_other : dx, other_dtype), detail::norm_parameter_gradient(dw, weight, x),
          detail::norm_parameter_gradient(db, bias, x), sums};
}

}  // namespace

// ---- gelu_perceptron ----

void linear_gelu_by_parts(const Tensor& out, const Tensor& pre, const Tensor& input, const Tensor& weight,
                          const Tensor& bias) {
  kernels::gemm_bias(pre.device().type, batch_of_one(pre), batch_of_one(input), batch_of_one(weight, true), bias);
  into<kernels::gelu_tanh>(out, {&pre});
}

void gelu_bias_backward_by_parts(const Tensor& grad, const Tensor& pre, const Tensor& sums) {
  Tensor product = grad;
  binary_<kernels::gelu_tanh_backward, Promotion::Common>(product, pre);
  store_column_sums(sums, product);
}

void linear_parameter_gradients_by_parts(const Tensor& grad_weight, const Tensor& grad_bias, const Tensor& grad,
                                         const Tensor& input) {
  kernels::gemm(grad.device().type, batch_of_one(grad_weight), batch_of_one(grad, true), batch_of_one(input), 0, 1);
  store_column_sums(grad_bias, grad);
}

namespace {

// (..., n) as a matrix (rows, n), row-major.
Tensor as_matrix(const Tensor& t) {
  const int64_t columns = t.sizes().back();
  const int64_t rows = checked_numel(t.sizes().slice(0, t.sizes().size() - 1));
  const Tensor dense = contiguous(t);
  return detail::make_view(dense, {rows, columns}, {columns, 1}, dense.storage_offset());
}

std::tuple<Tensor, Tensor> linear_parameter_gradients(const Tensor& grad, const Tensor& input) {
  const char* op = "linear_parameter_gradients";
  RUSH_CHECK_VALUE(grad.dim() == 2 && input.dim() == 2 && grad.size(0) == input.size(0), op,
                   ": expected matrices of as many rows, got shapes ", grad.sizes(), " and ", input.sizes());
  RUSH_CHECK_TYPE(grad.scalar_type() == input.scalar_type(), op, ": dtypes differ: ", grad.scalar_type(), " and ",
                  input.scalar_type());
  RUSH_CHECK_VALUE(grad.device() == input.device(), op, ": devices differ: ", grad.device(), " and ", input.device());
  const Tensor grad_weight = detail::empty_contiguous({grad.size(1), input.size(1)}, grad.scalar_type(), grad.device());
  const Tensor grad_bias = detail::empty_contiguous({grad.size(1)}, grad.scalar_type(), grad.device());
  kernels::linear_parameter_gradients(grad.device().type, grad_weight, grad_bias, grad, input);
  return {grad_weight, grad_bias};
}

void check_parameters(const char* op, const Tensor& input, std::initializer_list<const Tensor*> parameters) {
  for (const Tensor* parameter : parameters) {
    RUSH_CHECK_TYPE(parameter->scalar_type() == input.scalar_type(), op, ": dtypes differ: input is ",
                    input.scalar_type(), ", a parameter is ", parameter->scalar_type());
    RUSH_CHECK_VALUE(parameter->device() == input.device(), op, ": devices differ: input is on ", input.device(),
                     ", a parameter is on ", parameter->device());
  }
}

void check_linear_gelu(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  RUSH_CHECK_NOT_IMPLEMENTED(input.is_floating_point(), op, ": not implemented for ", input.scalar_type());
  RUSH_CHECK_VALUE(weight.dim() == 2 && input.dim() >= 1 && input.sizes().back() == weight.size(1) &&
                       bias.sizes() == IntArrayRef(weight.size(0)),
                   op, ": shapes do not fit: ", input.sizes(), ", ", weight.sizes(), " and ", bias.sizes());
  check_parameters(op, input, {&weight, &bias});
}

std::tuple<Tensor, Tensor> linear_gelu(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check_linear_gelu("linear_gelu", input, weight, bias);
  DimVector sizes(input.sizes());
  sizes.back() = weight.size(0);
  const Tensor pre = detail::empty_contiguous(sizes, input.scalar_type(), input.device());
  const Tensor output = detail::empty_contiguous(sizes, input.scalar_type(), input.device());
  kernels::linear_gelu(input.device().type, as_matrix(output), as_matrix(pre), as_matrix(input), weight,
                       contiguous(bias));
  return {output, pre};
}

Tensor gelu_bias_backward_(const Tensor& grad, const Tensor& pre) {
  const char* op = "gelu_bias_backward_";
  RUSH_CHECK_VALUE(grad.dim() >= 1 && grad.sizes() == pre.sizes(), op, ": shapes do not fit: ", grad.sizes(), " and ",
                   pre.sizes());
  RUSH_CHECK_VALUE(grad.is_contiguous(), op, ": expected a contiguous gradient, got strides ", grad.strides());
  RUSH_CHECK_TYPE(grad.is_floating_point() && grad.scalar_type() == pre.scalar_type(), op,
                  ": dtypes differ: ", grad.scalar_type(), " and ", pre.scalar_type());
  RUSH_CHECK_VALUE(grad.device() == pre.device(), op, ": devices differ: ", grad.device(), " and ", pre.device());
  const Tensor sums = detail::empty_contiguous({grad.sizes().back()}, grad.scalar_type(), grad.device());
  kernels::gelu_bias_backward(grad.device().type, as_matrix(grad), as_matrix(pre), sums);
  grad.bump_version();
  return sums;
}

std::tuple<Tensor, Tensor, Tensor> gelu_perceptron(const Tensor& input, const Tensor& weight1, const Tensor& bias1,
                                                   const Tensor& weight2, const Tensor& bias2) {
  const char* op = "gelu_perceptron";
  RUSH_CHECK_NOT_IMPLEMENTED(input.is_floating_point(), op, ": not implemented for ", input.scalar_type());
  RUSH_CHECK_VALUE(weight1.dim() == 2 && weight2.dim() == 2 && input.dim() >= 1 &&
                       input.sizes().back() == weight1.size(1) && weight2.size(1) == weight1.size(0),
                   op, ": an input of shape ", input.sizes(), " and weights of shapes ", weight1.sizes(), " and ",
                   weight2.sizes(), " do not fit");
  RUSH_CHECK_VALUE(bias1.sizes() == IntArrayRef(weight1.size(0)) && bias2.sizes() == IntArrayRef(weight2.size(0)), op,
                   ": biases of shapes ", bias1.sizes(), " and ", bias2.sizes(), " do not fit weights of shapes ",
                   weight1.sizes(), " and ", weight2.sizes());
  check_parameters(op, input, {&weight1, &bias1, &weight2, &bias2});
  const Tensor rows = as_matrix(input);
  const DimVector sizes = {rows.size(0), weight1.size(0)};
  const Tensor pre = detail::empty_contiguous(sizes, input.scalar_type(), input.device());
  const Tensor hidden = detail::empty_contiguous(sizes, input.scalar_type(), input.device());
  kernels::linear_gelu(input.device().type, hidden, pre, rows, weight1, contiguous(bias1));
  DimVector output_sizes(input.sizes());
  output_sizes.back() = weight2.size(0);
  return {linear(hidden, weight2, bias2).view(output_sizes), pre, hidden};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gelu_perceptron_backward(const Tensor& grad, const Tensor& input,
                                                                            const Tensor& weight1,
                                                                            const Tensor& weight2, const Tensor& pre,
                                                                            const Tensor& hidden) {
  const char* op = "gelu_perceptron_backward";
  RUSH_CHECK_VALUE(weight1.dim() == 2 && weight2.dim() == 2 && input.dim() >= 1 && grad.dim() == input.dim() &&
                       input.sizes().back() == weight1.size(1) && grad.sizes().back() == weight2.size(0) &&
                       weight2.size(1) == weight1.size(0),
                   op, ": shapes do not fit: ", grad.sizes(), ", ", input.sizes(), ", ", weight1.sizes(), " and ",
                   weight2.sizes());
  const Tensor g = as_matrix(grad), rows = as_matrix(input);
  const DimVector sizes = {rows.size(0), weight1.size(0)};
  RUSH_CHECK_VALUE(g.size(0) == rows.size(0) && pre.sizes() == IntArrayRef(sizes) &&
                       hidden.sizes() == IntArrayRef(sizes) && pre.is_contiguous(),
                   op, ": pre and hidden are not those of the forward pass");
  for (const Tensor* t : {&grad, &weight1, &weight2, &pre, &hidden}) {
    RUSH_CHECK_TYPE(t->scalar_type() == input.scalar_type(), op, ": dtypes differ: ", t->scalar_type(), " and ",
                    input.scalar_type());
    RUSH_CHECK_VALUE(t->device() == input.device(), op, ": devices differ: ", t->device(), " and ", input.device());
  }
  // GELU's derivative has a pass of its own: so has cuBLASLt's epilogue for it, which takes three times as long.
  const Tensor grad_pre = g.mm(weight2);
  const Tensor grad_bias1 = detail::empty_contiguous({weight1.size(0)}, input.scalar_type(), input.device());
  kernels::gelu_bias_backward(input.device().type, grad_pre, pre, grad_bias1);
  const Tensor grad_weight1 = grad_pre.t().mm(rows);
  const auto [grad_weight2, grad_bias2] = linear_parameter_gradients(g, hidden);
  return {grad_pre.mm(weight1).view(input.sizes()), grad_weight1, grad_bias1, grad_weight2, grad_bias2};
}

}  // namespace
}  // namespace native

void register_fused_ops(Registry& r) {
  r.native(ops::add_layer_norm, native::add_layer_norm);
  r.native(ops::add_layer_norm_backward, native::add_layer_norm_backward);
  r.native(ops::gelu_perceptron, native::gelu_perceptron);
  r.native(ops::gelu_perceptron_backward, native::gelu_perceptron_backward);
  r.native(ops::linear_gelu, native::linear_gelu);
  r.native(ops::gelu_bias_backward_, native::gelu_bias_backward_);
  r.native(ops::linear_parameter_gradients, native::linear_parameter_gradients);
}

}  // namespace rush
