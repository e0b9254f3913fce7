// Fronts of layer, RMS and group norm, and the likeness measures. Batch norm has a file of its own.
#include "core/ops/nn/norm.h"

#include <limits>

#include "core/ops/basic.h"
#include "core/ops/nn/norm_arguments.h"
#include "core/ops/register.h"

namespace rush {

namespace {

void check_statistics(const char* op, const char* argument, const Tensor& t, IntArrayRef sizes, ScalarType dtype) {
  RUSH_CHECK_VALUE(t.numel() == checked_numel(sizes), op, ": ", argument, " has shape ", t.sizes(), ", expected ",
                   sizes);
  RUSH_CHECK_TYPE(t.scalar_type() == dtype, op, ": ", argument, " is ", t.scalar_type(), ", expected ", dtype);
}

using detail::norm_parameter;
using detail::norm_parameter_gradient;
using detail::norm_statistics_type;

}  // namespace

namespace native {

static NormResult native_layer_norm(const Tensor& input, IntArrayRef normalized_shape, const OptionalTensor& weight,
                                    const OptionalTensor& bias, double eps) {
  const char* op = "layer_norm";
  const detail::NormRows rows = detail::norm_rows(op, input, normalized_shape);
  const ScalarType math = norm_statistics_type(input);
  const Tensor w = norm_parameter(op, "weight", weight, normalized_shape, input);
  const Tensor b = norm_parameter(op, "bias", bias, normalized_shape, input);
  const Tensor x = native::contiguous(input);
  const Tensor out = detail::empty_contiguous(x.sizes(), x.scalar_type(), x.device());
  const Tensor mean = detail::empty_contiguous(rows.statistics, math, x.device());
  const Tensor rstd = detail::empty_contiguous(rows.statistics, math, x.device());
  kernels::layer_norm(x.device().type, out, mean, rstd, x, w, b, rows.columns, eps);
  return {out, mean, rstd};
}

// RMS norm is layer norm without a mean and a bias.
static NormResult rows_backward(const char* op, const Tensor& grad, const Tensor& input, IntArrayRef normalized_shape,
                                const Tensor* mean, const Tensor& rstd, const OptionalTensor& weight,
                                const OptionalTensor& bias, std::array<bool, 3> mask) {
  const detail::NormRows rows = detail::norm_rows(op, input, normalized_shape);
  const ScalarType math = norm_statistics_type(input);
  if (mean) check_statistics(op, "mean", *mean, rows.statistics, math);
  check_statistics(op, "rstd", rstd, rows.statistics, math);
  const Tensor w = norm_parameter(op, "weight", weight, normalized_shape, input);
  const Tensor g = detail::norm_grad_output(op, grad, input, MemoryFormat::Contiguous);
  const Tensor x = native::contiguous(input);
  const Tensor dx = mask[0] ? detail::empty_contiguous(x.sizes(), x.scalar_type(), x.device()) : Tensor();
  const Tensor dw = mask[1] ? detail::empty_contiguous(normalized_shape, math, x.device()) : Tensor();
  const Tensor db = mask[2] ? detail::empty_contiguous(normalized_shape, math, x.device()) : Tensor();
  kernels::layer_norm_backward(x.device().type, dx, dw, db, g, x, mean ? native::contiguous(*mean) : Tensor(),
                               native::contiguous(rstd), w, rows.columns);
  return {dx, norm_parameter_gradient(dw, weight, input), norm_parameter_gradient(db, bias, input)};
}

static NormResult native_layer_norm_backward(const Tensor& grad, const Tensor& input, IntArrayRef normalized_shape,
                                             const Tensor& mean, const Tensor& rstd, const OptionalTensor& weight,
                                             const OptionalTensor& bias, std::array<bool, 3> mask) {
  return rows_backward("layer_norm_backward", grad, input, normalized_shape, &mean, rstd, weight, bias, mask);
}

static Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape, const OptionalTensor& weight,
                         const OptionalTensor& bias, double eps, bool /*cudnn_enable*/) {
  return std::get<0>(ops::native_layer_norm(input, normalized_shape, weight, bias, eps));
}

static std::tuple<Tensor, Tensor> fused_rms_norm(const Tensor& input, IntArrayRef normalized_shape,
                                                 const OptionalTensor& weight, std::optional<double> eps) {
  const char* op = "rms_norm";
  const detail::NormRows rows = detail::norm_rows(op, input, normalized_shape);
  const Tensor w = norm_parameter(op, "weight", weight, normalized_shape, input);
  const Tensor x = native::contiguous(input);
  const Tensor out = detail::empty_contiguous(x.sizes(), x.scalar_type(), x.device());
  const Tensor rstd = detail::empty_contiguous(rows.statistics, norm_statistics_type(input), x.device());
  kernels::layer_norm(x.device().type, out, Tensor(), rstd, x, w, Tensor(), rows.columns,
                      detail::rms_norm_eps(input.scalar_type(), eps));
  return {out, rstd};
}

static std::tuple<Tensor, Tensor> fused_rms_norm_backward(const Tensor& grad, const Tensor& input,
                                                          IntArrayRef normalized_shape, const Tensor& rstd,
                                                          const OptionalTensor& weight, std::array<bool, 2> mask) {
  const auto [dx, dw, db] = rows_backward("rms_norm_backward", grad, input, normalized_shape, nullptr, rstd, weight,
                                          std::nullopt, {mask[0], mask[1], false});
  return {dx, dw};
}

static Tensor rms_norm(const Tensor& input, IntArrayRef normalized_shape, const OptionalTensor& weight,
                       std::optional<double> eps) {
  if (!input.is_complex()) return std::get<0>(ops::_fused_rms_norm(input, normalized_shape, weight, eps));
  // The formula is PyTorch's: of complex numbers it averages the squares, not the squared magnitudes.
  const detail::NormRows rows = detail::norm_rows("rms_norm", input, normalized_shape);
  DimVector dims;
  for (size_t d = 1; d <= normalized_shape.size(); ++d) dims.push_back(-static_cast<int64_t>(d));
  const Tensor squares = ops::sum_dim(input * input, IntArrayRef(dims), true, std::nullopt) / rows.columns;
  const Tensor out = input * (squares + detail::rms_norm_eps(input.scalar_type(), eps)).rsqrt();
  return weight ? out * *weight : out;
}

static kernels::GroupLayout group_layout(const char* op, const Tensor& input, int64_t N, int64_t C, int64_t HxW,
                                         int64_t groups) {
  detail::check_norm_input(op, input);
  RUSH_CHECK_VALUE(groups > 0 && C % groups == 0, op, ": ", C, " channels cannot be divided into ", groups, " groups");
  RUSH_CHECK_VALUE(N >= 0 && C >= 0 && HxW >= 0 && input.numel() == checked_numel({N, C, HxW}) &&
                       checked_numel({C, HxW}) >= 0,  // throws where a sample's size overflows
                   op, ": an input of shape ", input.sizes(), " does not hold ", N, " samples of ", C, " channels of ",
                   HxW, " elements");
  // Channels without elements may be any number.
  return {N, groups, HxW == 0 ? 0 : C / groups, HxW};
}

static NormResult native_group_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                    int64_t N, int64_t C, int64_t HxW, int64_t groups, double eps) {
  const char* op = "group_norm";
  const kernels::GroupLayout layout = group_layout(op, input, N, C, HxW, groups);
  const Tensor w = norm_parameter(op, "weight", weight, C, input);
  const Tensor b = norm_parameter(op, "bias", bias, C, input);
  const Tensor x = native::contiguous(input);
  const Tensor out = detail::empty_contiguous(x.sizes(), x.scalar_type(), x.device());
  const Tensor mean = detail::empty_contiguous({N, groups}, norm_statistics_type(x), x.device());
  const Tensor rstd = detail::empty_contiguous({N, groups}, norm_statistics_type(x), x.device());
  kernels::group_norm(x.device().type, out, mean, rstd, x, w, b, eps, layout);
  return {out, mean, rstd};
}

static NormResult native_group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& mean,
                                             const Tensor& rstd, const OptionalTensor& weight, int64_t N, int64_t C,
                                             int64_t HxW, int64_t groups, std::array<bool, 3> mask) {
  const char* op = "group_norm_backward";
  const kernels::GroupLayout layout = group_layout(op, input, N, C, HxW, groups);
  const ScalarType math = norm_statistics_type(input);
  check_statistics(op, "mean", mean, {N, groups}, math);
  check_statistics(op, "rstd", rstd, {N, groups}, math);
  const Tensor w = norm_parameter(op, "weight", weight, C, input);
  const Tensor g = detail::norm_grad_output(op, grad, input, MemoryFormat::Contiguous);
  const Tensor x = native::contiguous(input);
  const Tensor dx = mask[0] ? detail::empty_contiguous(x.sizes(), x.scalar_type(), x.device()) : Tensor();
  const Tensor dw = mask[1] ? detail::empty_contiguous(C, math, x.device()) : Tensor();
  const Tensor db = mask[2] ? detail::empty_contiguous(C, math, x.device()) : Tensor();
  if (x.numel() > 0) {
    kernels::group_norm_backward(x.device().type, dx, dw, db, g, x, native::contiguous(mean), native::contiguous(rstd),
                                 w, layout);
  } else {
    for (const Tensor& sum : {dw, db}) {
      if (sum.defined()) sum.zero_();
    }
  }
  return {dx, norm_parameter_gradient(dw, weight, input), norm_parameter_gradient(db, OptionalTensor(), input)};
}

static Tensor group_norm(const Tensor& input, int64_t num_groups, const OptionalTensor& weight,
                         const OptionalTensor& bias, double eps, bool /*cudnn_enabled*/) {
  RUSH_CHECK_VALUE(input.dim() >= 2, "group_norm: expected a tensor of at least 2 dimensions, got shape ",
                   input.sizes());
  const int64_t positions = checked_numel(input.sizes().slice(2));
  return std::get<0>(
      ops::native_group_norm(input, weight, bias, input.size(0), input.size(1), positions, num_groups, eps));
}

static Tensor norm_except_dim(const Tensor& v, int64_t pow, int64_t dim) {
  if (dim == -1) return v.norm(pow);
  const DimVector others = other_dims(v, wrap_dim(dim, v.dim(), "norm_except_dim"));
  return others.empty() ? v.abs() : v.norm(pow, others, true);
}

static Tensor _weight_norm(const Tensor& v, const Tensor& g, int64_t dim) {
  return v * (g / ops::norm_except_dim(v, 2, dim));
}

// The norm over `dim`, at least eps. Its gradient is the norm's even below eps, as PyTorch defines it.
static Tensor norm_at_least(const Tensor& x, int64_t dim, double eps) {
  const Tensor norm = x.norm(2, dim, true);
  return norm + (norm.clamp_min(eps) - norm).detach();
}

static Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const ScalarType dtype = result_type(x1, x2);
  RUSH_CHECK_TYPE(is_floating_point(dtype), "cosine_similarity: expected floating point, got ", dtype);
  const DimVector shape = broadcast_shapes(x1.sizes(), x2.sizes(), "cosine_similarity");  // along which `dim` counts
  const Tensor a = x1.to(dtype).expand(shape), b = x2.to(dtype).expand(shape);
  return (a / norm_at_least(a, dim, eps) * (b / norm_at_least(b, dim, eps))).sum(dim);
}

static Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  const int64_t innermost = std::max(x1.dim(), x2.dim()) - 1;
  return (x1 - x2 + eps).norm(p, innermost, keepdim);
}

}  // namespace native

double detail::rms_norm_eps(ScalarType input, std::optional<double> given) {
  const bool wide = to_real(input) == kFloat64;
  return given.value_or(wide ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon());
}

void register_norm_ops(Registry& r) {
  r.native(ops::native_layer_norm, native::native_layer_norm);
  r.native(ops::native_layer_norm_backward, native::native_layer_norm_backward);
  r.composite(ops::layer_norm, native::layer_norm);
  r.native(ops::_fused_rms_norm, native::fused_rms_norm);
  r.native(ops::_fused_rms_norm_backward, native::fused_rms_norm_backward);
  r.composite(ops::rms_norm, native::rms_norm);
  r.native(ops::native_group_norm, native::native_group_norm);
  r.native(ops::native_group_norm_backward, native::native_group_norm_backward);
  r.composite(ops::group_norm, native::group_norm);
  r.composite(ops::norm_except_dim, native::norm_except_dim);
  r.composite(ops::_weight_norm, native::_weight_norm);
  r.composite(ops::cosine_similarity, native::cosine_similarity);
  r.composite(ops::pairwise_distance, native::pairwise_distance);
}

}  // namespace rush
