// Copies: clone, contiguous, to, copy_.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/iterator/tensor_iterator.h"
#include "core/tensor.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor&(Tensor&, const Tensor&, bool)> copy_{
    "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)", {Tag::AnyDevice}};
inline constinit Op<Tensor(const Tensor&, std::optional<MemoryFormat>)> clone{
    "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, MemoryFormat)> contiguous{
    "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, std::optional<ScalarType>, std::optional<Layout>, std::optional<Device>,
                           std::optional<bool>, bool, std::optional<MemoryFormat>)>
    _to_copy{
        "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
        "pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
        {Tag::AnyDevice}};
inline constinit Op<Tensor(const Tensor&, ScalarType, bool, bool, std::optional<MemoryFormat>)> to_dtype{
    "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
    "memory_format=None) -> Tensor(a)",
    {Tag::AnyDevice}};
inline constinit Op<Tensor(const Tensor&, Device, ScalarType, bool, bool, std::optional<MemoryFormat>)> to_device{
    "aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)",
    {Tag::AnyDevice}};
inline constinit Op<Tensor(const Tensor&, const Tensor&, bool, bool, std::optional<MemoryFormat>)> to_other{
    "aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? "
    "memory_format=None) -> Tensor(a)",
    {Tag::AnyDevice}};
inline constinit Op<Tensor(const Tensor&, std::optional<ScalarType>, std::optional<Layout>, std::optional<Device>,
                           std::optional<bool>, bool, bool, std::optional<MemoryFormat>)>
    to_dtype_layout{
        "aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> "
        "Tensor(a)",
        {Tag::AnyDevice}};
}  // namespace ops

/// A copy with its own memory. Preserve (the default) keeps the strides of a dense tensor, otherwise row-major.
inline Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format = std::nullopt) {
  return ops::clone(self, memory_format);
}

namespace native {
// For code below autograd: no dispatch, no graph.
Tensor& copy_(Tensor& self, const Tensor& src, bool non_blocking);
Tensor to_dtype(const Tensor& self, ScalarType dtype);
// `self` itself when it has that dtype already.
inline Tensor as_dtype(const Tensor& self, ScalarType dtype) {
  return self.scalar_type() == dtype ? self : to_dtype(self, dtype);
}
// The same for a value to be written into tensors of `dtype`: a number that an integer dtype does not hold is refused.
Tensor number_as(const Tensor& value, ScalarType dtype);
Tensor clone_contiguous(const Tensor& self);
// A tensor like `self`, whose elements are still to be written.
Tensor empty_for_copy(const Tensor& self, ScalarType dtype, Device device, MemoryFormat format);
// The functional form of an in-place operator: on a copy.
template <auto inplace, class... Args>
Tensor on_copy(const Tensor& self, Args... args) {
  Tensor out = clone_contiguous(self);
  return inplace(out, args...);
}
// `self` itself when it is already row-major.
Tensor contiguous(const Tensor& self);
}  // namespace native

namespace kernels {
// Operand 0 is written with operand 1, converted between their dtypes.
inline constinit Kernel<void(TensorIterator&)> copy{"copy_"};
// The same for tensors on different devices; the second broadcasts to the first. Called with the type of the device
// that is not the CPU.
inline constinit Kernel<void(const Tensor& self, const Tensor& src, bool non_blocking)> copy_between{"copy_"};
}  // namespace kernels

}  // namespace rush
