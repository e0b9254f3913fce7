// Fronts shared by the element-wise operators: prepare the iterator, run the kernel. See Note [Fronts and kernels].
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/iterator/tensor_iterator.h"

namespace rush {

using PointwiseKernel = Kernel<void(TensorIterator&)>;

namespace native {

template <PointwiseKernel& kernel, Promotion promotion>
Tensor unary(const Tensor& self) {
  auto it = TensorIterator::pointwise(kernel.name(), Tensor(), {&self}, promotion);
  kernel(it.device_type(), it);
  return it.take_output();
}

template <PointwiseKernel& kernel, Promotion promotion>
Tensor& unary_(Tensor& self) {
  auto it = TensorIterator::pointwise(kernel.name(), self, {&self}, promotion);
  kernel(it.device_type(), it);
  it.finish();
  return self;
}

template <PointwiseKernel& kernel, Promotion promotion>
Tensor binary(const Tensor& self, const Tensor& other) {
  auto it = TensorIterator::pointwise(kernel.name(), Tensor(), {&self, &other}, promotion);
  kernel(it.device_type(), it);
  return it.take_output();
}

template <PointwiseKernel& kernel, Promotion promotion>
Tensor& binary_(Tensor& self, const Tensor& other) {
  auto it = TensorIterator::pointwise(kernel.name(), self, {&self, &other}, promotion);
  kernel(it.device_type(), it);
  it.finish();
  return self;
}

}  // namespace native
}  // namespace rush
