// Checks of tensors that are arguments, as kernels written for libtorch make them. Each throws Error, which names the
// argument and the function, unless what its name says holds; those of several tensors pass undefined ones over.
#pragma once
#include <cstdint>

#include "ATen/core/Tensor.h"

namespace at {

/// A tensor with its name and its position among the arguments, from 1 on; 0 stands for no position. The tensor must
/// outlive it.
struct TensorArg {
  const Tensor& tensor;
  const char* name;
  int pos;

  TensorArg(const Tensor& tensor, const char* name, int pos) : tensor(tensor), name(name), pos(pos) {}
  TensorArg(Tensor&& tensor, const char* name, int pos) = delete;
  const Tensor* operator->() const { return &tensor; }
  const Tensor& operator*() const { return tensor; }
};
using TensorGeometryArg = TensorArg;
/// "argument #1 'input'"
std::ostream& operator<<(std::ostream& out, const TensorArg& argument);

/// The function that checks.
using CheckedFrom = const char*;

void checkDim(CheckedFrom from, const Tensor& tensor, const char* name, int pos, int64_t dim);
void checkDim(CheckedFrom from, const TensorArg& t, int64_t dim);
/// From `start` to `end` - 1 dimensions.
void checkDimRange(CheckedFrom from, const TensorArg& t, int64_t start, int64_t end);
void checkSameDim(CheckedFrom from, const TensorArg& a, const TensorArg& b);
void checkContiguous(CheckedFrom from, const TensorArg& t);
void checkAllContiguous(CheckedFrom from, ArrayRef<TensorArg> tensors);
void checkSize(CheckedFrom from, const TensorArg& t, IntArrayRef sizes);
void checkSize(CheckedFrom from, const TensorArg& t, int64_t dim, int64_t size);
void checkNumel(CheckedFrom from, const TensorArg& t, int64_t numel);
void checkSameNumel(CheckedFrom from, const TensorArg& a, const TensorArg& b);
void checkAllSameNumel(CheckedFrom from, ArrayRef<TensorArg> tensors);
void checkScalarType(CheckedFrom from, const TensorArg& t, ScalarType type);
void checkScalarTypes(CheckedFrom from, const TensorArg& t, ArrayRef<ScalarType> types);
void checkSameGPU(CheckedFrom from, const TensorArg& a, const TensorArg& b);
void checkAllSameGPU(CheckedFrom from, ArrayRef<TensorArg> tensors);
/// The same dtype on the same type of device.
void checkSameType(CheckedFrom from, const TensorArg& a, const TensorArg& b);
void checkAllSameType(CheckedFrom from, ArrayRef<TensorArg> tensors);
void checkSameSize(CheckedFrom from, const TensorArg& a, const TensorArg& b);
void checkAllSameSize(CheckedFrom from, ArrayRef<TensorArg> tensors);
void checkDefined(CheckedFrom from, const TensorArg& t);
void checkAllDefined(CheckedFrom from, ArrayRef<TensorArg> tensors);
void checkDeviceType(CheckedFrom from, ArrayRef<Tensor> tensors, DeviceType type);
void checkLayout(CheckedFrom from, const Tensor& t, Layout layout);
void checkLayout(CheckedFrom from, ArrayRef<Tensor> tensors, Layout layout);

/// The address of the elements, null of an undefined tensor.
void* maybe_data_ptr(const Tensor& tensor);
void* maybe_data_ptr(const TensorArg& argument);

/// Throws Error unless the tensor has `dim` dimensions, and `size` elements in its dimension `dim_size`.
void check_dim_size(const Tensor& tensor, int64_t dim, int64_t dim_size, int64_t size);

}  // namespace at
