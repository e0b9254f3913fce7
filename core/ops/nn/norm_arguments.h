// What the fronts of all normalisations check and prepare alike.
#pragma once
#include "core/ops/nn/norm.h"
#include "core/ops/view/copy.h"
#include "core/print/bracketed.h"

namespace rush::detail {

// Statistics, and weights for the kernels, are float32 when the input has 16 bits, else of the input's dtype.
inline ScalarType norm_statistics_type(const Tensor& input) {
  return input.element_size() == 2 ? kFloat32 : input.scalar_type();
}

inline void check_norm_input(const char* op, const Tensor& input) {
  RUSH_CHECK_VALUE(input.defined(), op, ": the input is undefined");
  RUSH_CHECK_NOT_IMPLEMENTED(input.is_floating_point() || input.is_complex(), op, ": not implemented for ",
                             input.scalar_type());
}

// An input seen as rows of the elements that are normalised together.
struct NormRows {
  int64_t columns = 1;
  DimVector statistics;  // the shape of one number for each row: the leading sizes, then ones
};

// Throws ValueError unless these are the input's last dimensions.
inline NormRows norm_rows(const char* op, const Tensor& input, IntArrayRef normalized_shape) {
  check_norm_input(op, input);
  RUSH_CHECK_VALUE(!normalized_shape.empty(), op, ": normalized_shape is empty");
  const size_t dims = normalized_shape.size(), rank = input.sizes().size();
  RUSH_CHECK_VALUE(dims <= rank && input.sizes().slice(rank - dims) == normalized_shape, op,
                   ": Given normalized_shape=", bracketed(normalized_shape), ", expected input with shape [*, ",
                   bracketed(normalized_shape).substr(1), ", but got input of size", bracketed(input.sizes()));
  NormRows rows;
  rows.statistics = input.sizes();
  for (size_t d = rank - dims; d < rank; ++d) {
    rows.columns *= input.sizes()[d];
    rows.statistics[d] = 1;
  }
  return rows;
}

// A weight, bias or running statistic as the kernels take it; undefined when it is not given. Throws ValueError for
// another shape than `sizes`, or another device than the input's; TypeError unless floating point.
inline Tensor norm_parameter(const char* op, const char* argument, const OptionalTensor& parameter, IntArrayRef sizes,
                             const Tensor& input) {
  if (!given(parameter)) return {};
  RUSH_CHECK_VALUE(parameter->sizes() == sizes, op, ": ", argument, " has shape ", parameter->sizes(), ", expected ",
                   sizes, " for an input of shape ", input.sizes());
  RUSH_CHECK_VALUE(parameter->device() == input.device(), op, ": ", argument, " is on ", parameter->device(),
                   ", the input on ", input.device());
  RUSH_CHECK_TYPE(parameter->is_floating_point(), op, ": ", argument, " is ", parameter->scalar_type(),
                  ", expected floating point");
  const ScalarType dtype = norm_statistics_type(input);
  return native::contiguous(native::as_dtype(*parameter, dtype));
}

// Throws ValueError unless `t` has the input's shape and device, TypeError unless it has its dtype.
inline void check_like_norm_input(const char* op, const char* argument, const Tensor& t, const Tensor& input) {
  RUSH_CHECK_VALUE(t.defined(), op, ": ", argument, " is undefined");
  RUSH_CHECK_VALUE(t.sizes() == input.sizes(), op, ": ", argument, " has shape ", t.sizes(), ", the input ",
                   input.sizes());
  RUSH_CHECK_VALUE(t.device() == input.device(), op, ": ", argument, " is on ", t.device(), ", the input on ",
                   input.device());
  RUSH_CHECK_TYPE(t.scalar_type() == input.scalar_type(), op, ": ", argument, " is ", t.scalar_type(), ", the input ",
                  input.scalar_type());
}

// The gradient of the output in the input's layout. Throws as check_like_norm_input does.
inline Tensor norm_grad_output(const char* op, const Tensor& grad, const Tensor& input, MemoryFormat format) {
  check_like_norm_input(op, "grad_out", grad, input);
  return ops::contiguous(grad, format);
}

// A parameter's gradient in the dtype of the parameter, or in the input's where there is none.
inline Tensor norm_parameter_gradient(const Tensor& gradient, const OptionalTensor& parameter, const Tensor& input) {
  if (!gradient.defined()) return {};
  const ScalarType dtype = given(parameter) ? parameter->scalar_type() : input.scalar_type();
  return native::as_dtype(gradient, dtype);
}

}  // namespace rush::detail
