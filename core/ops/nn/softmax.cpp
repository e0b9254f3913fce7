#include "core/ops/nn/softmax.h"

#include "core/ops/reduce/reduce.h"
#include "core/ops/register.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"

namespace rush {

namespace native {

template <bool log>
static Tensor softmax_data(const Tensor& self, int64_t dim, bool half_to_float) {
  const char* op = log ? "log_softmax" : "softmax";
  dim = wrap_dim(dim, self.dim(), op);
  RUSH_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), op, ": expected a floating tensor, got ", self.scalar_type());
  const Tensor input = contiguous(half_to_float ? to_dtype(self, kFloat32) : self);
  const Tensor output = detail::empty_contiguous(input.sizes(), input.scalar_type(), input.device());
  kernels::softmax(input.device().type, output, input, AlongDim(input.sizes(), dim), log);
  return output;
}

template <bool log>
static Tensor softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim, ScalarType input_dtype) {
  const char* op = log ? "_log_softmax_backward_data" : "_softmax_backward_data";
  dim = wrap_dim(dim, output.dim(), op);
  RUSH_CHECK_VALUE(grad.sizes() == output.sizes(), op, ": the gradient has shape ", grad.sizes(), ", the output ",
                   output.sizes());
  RUSH_CHECK_TYPE(grad.scalar_type() == output.scalar_type(), op, ": the gradient is ", grad.scalar_type(),
                  ", the output ", output.scalar_type());
  RUSH_CHECK_TYPE(
      input_dtype == grad.scalar_type() || (grad.scalar_type() == kFloat32 && element_size(input_dtype) == 2), op,
      ": the input cannot have been ", input_dtype, " where the gradient is ", grad.scalar_type());
  const Tensor result = detail::empty_contiguous(output.sizes(), output.scalar_type(), output.device());
  kernels::softmax_backward(output.device().type, result, contiguous(grad), contiguous(output),
                            AlongDim(output.sizes(), dim), log);
  return input_dtype == result.scalar_type() ? result : to_dtype(result, input_dtype);
}

template <auto& of_data>
static Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return of_data(dtype ? self.to(*dtype) : self, dim, false);
}

// `self` row-major, with the dimensions of the reduction last.
static Tensor reduced_last(const Tensor& self, const Reduction& reduction) {
  DimVector order = other_dims(self, reduction.dims);
  for (int64_t d : reduction.dims) order.push_back(d);
  detail::Geometry geometry = geometry_of(self);
  geometry.permute(order);
  return contiguous(view_of(self, geometry));
}

static Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim) {
  const Reduction reduction("logsumexp", self, dim, keepdim);
  const bool integral = is_integral(self.scalar_type(), true);
  const Tensor values = integral ? to_dtype(self, get_default_dtype()) : self;
  const Tensor output = reduction.allocate(self, values.scalar_type());
  if (reduction.dims.size() == 1) {
    kernels::logsumexp(self.device().type, output, contiguous(values), AlongDim(self.sizes(), reduction.dims[0]));
  } else {
    int64_t each = 1;
    for (int64_t d : reduction.dims) each *= self.sizes()[d];
    const AlongDim shape(output.numel(), each, 1);
    kernels::logsumexp(self.device().type, output, reduced_last(values, reduction), shape);
  }
  return reduction.finish(output);
}

}  // namespace native

void register_softmax_ops(Registry& r) {
  r.composite(ops::softmax, native::softmax<ops::_softmax>);
  r.composite(ops::log_softmax, native::softmax<ops::_log_softmax>);
  r.native(ops::_softmax, native::softmax_data<false>);
  r.native(ops::_log_softmax, native::softmax_data<true>);
  r.native(ops::_softmax_backward_data, native::softmax_backward<false>);
  r.native(ops::_log_softmax_backward_data, native::softmax_backward<true>);
  r.native(ops::logsumexp, native::logsumexp);
}

Tensor Tensor::softmax(int64_t dim, std::optional<ScalarType> dtype) const { return ops::softmax(*this, dim, dtype); }
Tensor Tensor::log_softmax(int64_t dim, std::optional<ScalarType> dtype) const {
  return ops::log_softmax(*this, dim, dtype);
}
Tensor Tensor::logsumexp(IntArrayRef dim, bool keepdim) const { return ops::logsumexp(*this, dim, keepdim); }

}  // namespace rush
