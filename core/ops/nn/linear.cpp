#include "core/ops/nn/linear.h"

#include "core/iterator/output_checks.h"
#include "core/ops/basic.h"
#include "core/ops/linalg/factors.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

// "6x4 and 3x2": the rows of an input (..., in) and the transpose of the weight.
static std::string factor_texts(const Tensor& input, const Tensor& weight) {
  const int64_t columns = input.dim() == 0 ? 1 : input.sizes().back();
  const int64_t rows = columns == 0 ? 0 : input.numel() / columns;
  return str(rows, "x", columns, " and ", product_text(weight.t().sizes()));
}

static void check_linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  RUSH_CHECK_VALUE(weight.dim() == 1 || weight.dim() == 2, "linear: expected a weight of shape (out, in) or (in), got ",
                   weight.sizes());
  RUSH_CHECK_VALUE(input.dim() >= 1 && input.sizes().back() == weight.sizes().back(),
                   "linear: mat1 and mat2 shapes cannot be multiplied (", factor_texts(input, weight), "): an input ",
                   input.sizes(), " has ", input.dim() >= 1 ? input.sizes().back() : 0, " features against ",
                   weight.sizes().back(), " of a weight ", weight.sizes());
  for (const Tensor& other : {weight, bias.value_or(weight)}) {
    RUSH_CHECK_TYPE(other.scalar_type() == input.scalar_type(),
                    "linear: mat1 and mat2 must have the same dtype, but got ", input.scalar_type(),
                    " for the input and ", other.scalar_type(), " for a parameter; convert one of them with to()");
    RUSH_CHECK_VALUE(other.device() == input.device(), "linear: devices differ: input is on ", input.device(),
                     ", a parameter is on ", other.device(), "; move one of them with to()");
  }
}

// `input` (..., in) as one matrix (1, rows, in): a view where its strides allow it.
static Tensor as_rows(const Tensor& input, int64_t rows) {
  const DimVector shape = {1, rows, input.sizes().back()};
  const auto strides = view_strides(input.sizes(), input.strides(), shape);
  const Tensor source = strides ? input : clone_contiguous(input);
  return detail::make_view(source, shape, strides ? *strides : contiguous_strides(shape), source.storage_offset());
}

static Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  check_linear(input, weight, bias);
  const bool vector = weight.dim() == 1;
  DimVector sizes(input.sizes());
  sizes.pop_back();
  const int64_t rows = checked_numel(sizes);
  const int64_t in = weight.sizes().back(), out = vector ? 1 : weight.size(0);
  if (!vector) sizes.push_back(out);
  Tensor result = detail::empty_contiguous(sizes, input.scalar_type(), input.device());
  if (bias) {
    check_expands("linear", bias->sizes(), sizes);
  }
  const Tensor transposed = detail::make_view(
      weight, {1, in, out}, {0, weight.strides().back(), vector ? 1 : weight.stride(0)}, weight.storage_offset());
  const Tensor matrix = detail::make_view(result, {1, rows, out}, {rows * out, out, 1}, 0);
  const DeviceType device = input.device().type;
  if (bias && !vector && bias->dim() == 1 && bias->size(0) == out && bias->is_contiguous()) {
    kernels::gemm_bias(device, matrix, as_rows(input, rows), transposed, *bias);
    return result;
  }
  if (bias) copy_(result, *bias, false);
  kernels::gemm(device, matrix, as_rows(input, rows), transposed, bias ? 1 : 0, 1);
  return result;
}

// As products of matrices: input1 (N, n) by the weights (n, k m), then each (k, m) by its input2 (m).
static Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                       const std::optional<Tensor>& bias) {
  RUSH_CHECK_VALUE(weight.dim() == 3 && input1.dim() >= 1 && input1.dim() == input2.dim(),
                   "bilinear: expected inputs (..., n), (..., m) and a weight (k, n, m), got shapes ", input1.sizes(),
                   ", ", input2.sizes(), " and ", weight.sizes());
  const int64_t k = weight.size(0), n = weight.size(1), m = weight.size(2);
  DimVector sizes(input1.sizes()), sizes2(input2.sizes());
  sizes.back() = sizes2.back() = k;
  RUSH_CHECK_VALUE(sizes == sizes2 && input1.size(-1) == n && input2.size(-1) == m, "bilinear: inputs ", input1.sizes(),
                   " and ", input2.sizes(), " do not fit a weight ", weight.sizes());
  const int64_t count = checked_numel(sizes.empty() ? IntArrayRef() : IntArrayRef(sizes).slice(0, sizes.size() - 1));
  const Tensor by_first = weight.permute({1, 0, 2}).reshape({n, k * m});
  const Tensor forms = input1.reshape({count, n}).mm(by_first).view({count, k, m});
  const Tensor result = forms.bmm(input2.reshape({count, m, 1})).view(sizes);
  return bias ? result.add(*bias) : result;
}

}  // namespace native

void register_linear_ops(Registry& r) {
  r.native(ops::linear, native::linear);
  r.composite(ops::bilinear, native::bilinear);
}

}  // namespace rush
