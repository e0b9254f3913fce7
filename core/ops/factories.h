// Factories: tensors made from sizes, numbers and memory.
#pragma once
#include <initializer_list>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/iterator/tensor_iterator.h"

namespace rush {

// The options that every factory's schema ends with.
#define RUSH_FACTORY_ARGS std::optional<ScalarType>, std::optional<Layout>, std::optional<Device>, std::optional<bool>
#define RUSH_FACTORY_SCHEMA "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

namespace ops {
inline constinit Op<Tensor(IntArrayRef, RUSH_FACTORY_ARGS, std::optional<MemoryFormat>)> empty{
    "aten::empty.memory_format(SymInt[] size, *, " RUSH_FACTORY_SCHEMA ", MemoryFormat? memory_format=None) -> Tensor"};
inline constinit Op<Tensor(IntArrayRef, IntArrayRef, RUSH_FACTORY_ARGS)> empty_strided{
    "aten::empty_strided(SymInt[] size, SymInt[] stride, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(IntArrayRef, const Scalar&, RUSH_FACTORY_ARGS)> full{
    "aten::full(SymInt[] size, Scalar fill_value, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(const Tensor&, RUSH_FACTORY_ARGS, std::optional<MemoryFormat>)> empty_like{
    "aten::empty_like(Tensor self, *, " RUSH_FACTORY_SCHEMA ", MemoryFormat? memory_format=None) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Scalar&)> fill_{
    "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)"};
inline constinit Op<Tensor&(Tensor&)> zero_{"aten::zero_(Tensor(a!) self) -> Tensor(a!)"};
}  // namespace ops

// Uninitialised. Throws ValueError on negative or too large sizes.
Tensor empty(IntArrayRef size, const TensorOptions& options = {});
Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& options = {});
Tensor zeros(IntArrayRef size, const TensorOptions& options = {});
Tensor ones(IntArrayRef size, const TensorOptions& options = {});
// Every element `fill_value`; without a dtype in the options, that of the value.
Tensor full(IntArrayRef size, const Scalar& fill_value, const TensorOptions& options = {});
// Sizes, dtype, device and memory layout of `self`, unless the options say otherwise.
Tensor empty_like(const Tensor& self, const TensorOptions& options = {});
Tensor zeros_like(const Tensor& self, const TensorOptions& options = {});
Tensor ones_like(const Tensor& self, const TensorOptions& options = {});
Tensor full_like(const Tensor& self, const Scalar& fill_value, const TensorOptions& options = {});
// A 0-dimensional tensor of the default dtype unless the options say otherwise.
Tensor scalar_tensor(const Scalar& value, const TensorOptions& options = {});

// A tensor over the caller's memory, row-major or with strides; `deleter(data)` runs when it is no longer needed.
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, void (*deleter)(void*), const TensorOptions& options = {});

namespace detail {
// Applies requires_grad of the options, which is no argument of the operators.
Tensor finish_factory(Tensor tensor, const TensorOptions& options);
}  // namespace detail

// A one-dimensional tensor with these elements: of their type, floating point in the default dtype.
Tensor tensor(ArrayRef<double> values, const TensorOptions& options = {});
Tensor tensor(ArrayRef<float> values, const TensorOptions& options = {});
Tensor tensor(ArrayRef<int64_t> values, const TensorOptions& options = {});
Tensor tensor(ArrayRef<int> values, const TensorOptions& options = {});
Tensor tensor(ArrayRef<uint8_t> values, const TensorOptions& options = {});
Tensor tensor(std::initializer_list<double> values, const TensorOptions& options = {});
Tensor tensor(std::initializer_list<float> values, const TensorOptions& options = {});
Tensor tensor(std::initializer_list<int64_t> values, const TensorOptions& options = {});
Tensor tensor(std::initializer_list<int> values, const TensorOptions& options = {});
Tensor tensor(std::initializer_list<bool> values, const TensorOptions& options = {});
// A 0-dimensional one.
Tensor tensor(const Scalar& value, const TensorOptions& options = {});

namespace kernels {
inline constinit Kernel<void(TensorIterator&, const Scalar&)> fill{"fill_"};
}  // namespace kernels

}  // namespace rush
