// Fronts shared by the element-wise operators: prepare the iterator, run the kernel. See Note [Fronts and kernels].
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/iterator/tensor_iterator.h"

namespace rush {

using PointwiseKernel = Kernel<void(TensorIterator&)>;
/// Kernels with numbers among their arguments.
using ScalarKernel = Kernel<void(TensorIterator&, const Scalar&)>;
using ScalarKernel2 = Kernel<void(TensorIterator&, const Scalar&, const Scalar&)>;
using ScalarKernel3 = Kernel<void(TensorIterator&, const Scalar&, const Scalar&, const Scalar&)>;

using UnaryOp = Op<Tensor(const Tensor&)>;
using UnaryInplaceOp = Op<Tensor&(Tensor&)>;
using BinaryOp = Op<Tensor(const Tensor&, const Tensor&)>;
using BinaryInplaceOp = Op<Tensor&(Tensor&, const Tensor&)>;
using ScalarOp = Op<Tensor(const Tensor&, const Scalar&)>;
using ScalarInplaceOp = Op<Tensor&(Tensor&, const Scalar&)>;

namespace native {

// Arguments after the tensors go to the kernel as they are.
template <auto& kernel, Promotion promotion, class... Rest>
Tensor unary(const Tensor& self, Rest... rest) {
  auto it = TensorIterator::pointwise(kernel.name(), Tensor(), {&self}, promotion);
  kernel(it.device_type(), it, rest...);
  return it.take_output();
}

template <auto& kernel, Promotion promotion, class... Rest>
Tensor& unary_(Tensor& self, Rest... rest) {
  auto it = TensorIterator::pointwise(kernel.name(), self, {&self}, promotion);
  kernel(it.device_type(), it, rest...);
  it.finish();
  return self;
}

template <auto& kernel, Promotion promotion, class... Rest>
Tensor binary(const Tensor& self, const Tensor& other, Rest... rest) {
  auto it = TensorIterator::pointwise(kernel.name(), Tensor(), {&self, &other}, promotion);
  kernel(it.device_type(), it, rest...);
  return it.take_output();
}

template <auto& kernel, Promotion promotion, class... Rest>
Tensor& binary_(Tensor& self, const Tensor& other, Rest... rest) {
  auto it = TensorIterator::pointwise(kernel.name(), self, {&self, &other}, promotion);
  kernel(it.device_type(), it, rest...);
  it.finish();
  return self;
}

// Overloads on a number: the operator on tensors, given the number as a 0-dimensional tensor.
template <auto& op>
Tensor with_scalar(const Tensor& self, const Scalar& other) {
  return op(self, detail::wrapped_number(other, self));
}
template <auto& op>
Tensor& with_scalar_(Tensor& self, const Scalar& other) {
  return op(self, detail::wrapped_number(other, self));
}
template <auto& op>
Tensor scalar_with(const Scalar& self, const Tensor& other) {
  return op(detail::wrapped_number(self, other), other);
}

// Another name of an operator.
template <auto& op, class... Args>
auto same_as(Args... args) -> decltype(op(args...)) {
  return op(args...);
}

}  // namespace native

// A tensor's methods for an operator on two tensors and for its in-place form; the same for a number too.
#define RUSH_BINARY_METHODS(name)                                                    \
  Tensor Tensor::name(const Tensor& other) const { return ops::name(*this, other); } \
  Tensor& Tensor::name##_(const Tensor& other) const { return ops::name##_(self(), other); }
#define RUSH_BINARY_AND_SCALAR_METHODS(name)                                                                        \
  RUSH_BINARY_METHODS(name)                                                                                         \
  Tensor Tensor::name(const Scalar& other) const { return ops::name(*this, detail::wrapped_number(other, *this)); } \
  Tensor& Tensor::name##_(const Scalar& other) const {                                                              \
    return ops::name##_(self(), detail::wrapped_number(other, *this));                                              \
  }

}  // namespace rush
