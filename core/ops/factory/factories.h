// Factories: tensors made from sizes, numbers and memory.
#pragma once
#include <memory>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/iterator/tensor_iterator.h"
#include "core/ops/factory/tensor_data.h"

namespace rush {

// The options that every factory's schema ends with.
#define RUSH_FACTORY_ARGS std::optional<ScalarType>, std::optional<Layout>, std::optional<Device>, std::optional<bool>
#define RUSH_FACTORY_SCHEMA "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

namespace native {
// One by one.
using MaybeDtype = std::optional<ScalarType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybePin = std::optional<bool>;
using MaybeFormat = std::optional<MemoryFormat>;
}  // namespace native

using SizeFactoryOp = Op<Tensor(IntArrayRef, RUSH_FACTORY_ARGS)>;
using LikeFactoryOp = Op<Tensor(const Tensor&, RUSH_FACTORY_ARGS, std::optional<MemoryFormat>)>;
using NewFactoryOp = Op<Tensor(const Tensor&, IntArrayRef, RUSH_FACTORY_ARGS)>;

namespace ops {
inline constinit Op<Tensor(IntArrayRef, RUSH_FACTORY_ARGS, std::optional<MemoryFormat>)> empty{
    "aten::empty.memory_format(SymInt[] size, *, " RUSH_FACTORY_SCHEMA ", MemoryFormat? memory_format=None) -> Tensor"};
inline constinit Op<Tensor(IntArrayRef, IntArrayRef, RUSH_FACTORY_ARGS)> empty_strided{
    "aten::empty_strided(SymInt[] size, SymInt[] stride, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(IntArrayRef, const Scalar&, RUSH_FACTORY_ARGS)> full{
    "aten::full(SymInt[] size, Scalar fill_value, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit SizeFactoryOp zeros{"aten::zeros(SymInt[] size, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit SizeFactoryOp ones{"aten::ones(SymInt[] size, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(const Scalar&, RUSH_FACTORY_ARGS)> scalar_tensor{
    "aten::scalar_tensor(Scalar s, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit LikeFactoryOp empty_like{"aten::empty_like(Tensor self, *, " RUSH_FACTORY_SCHEMA
                                          ", MemoryFormat? memory_format=None) -> Tensor"};
inline constinit LikeFactoryOp zeros_like{"aten::zeros_like(Tensor self, *, " RUSH_FACTORY_SCHEMA
                                          ", MemoryFormat? memory_format=None) -> Tensor"};
inline constinit LikeFactoryOp ones_like{"aten::ones_like(Tensor self, *, " RUSH_FACTORY_SCHEMA
                                         ", MemoryFormat? memory_format=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, RUSH_FACTORY_ARGS, std::optional<MemoryFormat>)> full_like{
    "aten::full_like(Tensor self, Scalar fill_value, *, " RUSH_FACTORY_SCHEMA
    ", MemoryFormat? memory_format=None) -> Tensor"};
inline constinit NewFactoryOp new_empty{"aten::new_empty(Tensor self, SymInt[] size, *, " RUSH_FACTORY_SCHEMA
                                        ") -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef, RUSH_FACTORY_ARGS)> new_empty_strided{
    "aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit NewFactoryOp new_zeros{"aten::new_zeros(Tensor self, SymInt[] size, *, " RUSH_FACTORY_SCHEMA
                                        ") -> Tensor"};
inline constinit NewFactoryOp new_ones{"aten::new_ones(Tensor self, SymInt[] size, *, " RUSH_FACTORY_SCHEMA
                                       ") -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, const Scalar&, RUSH_FACTORY_ARGS)> new_full{
    "aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&)> fill{"aten::fill.Scalar(Tensor self, Scalar value) -> Tensor",
                                                               {Tag::AnyDevice}};
inline constinit Op<Tensor(const Tensor&, const Tensor&)> fill_Tensor{
    "aten::fill.Tensor(Tensor self, Tensor value) -> Tensor", {Tag::AnyDevice}};
inline constinit Op<Tensor&(Tensor&, const Scalar&)> fill_{
    "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)", {Tag::AnyDevice}};
inline constinit Op<Tensor&(Tensor&, const Tensor&)> fill_Tensor_{
    "aten::fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)", {Tag::AnyDevice}};
inline constinit Op<Tensor&(Tensor&)> zero_{"aten::zero_(Tensor(a!) self) -> Tensor(a!)"};
}  // namespace ops

/// Uninitialised, or all 0 or 1. Throws ValueError on negative or too large sizes.
Tensor empty(IntArrayRef size, const TensorOptions& options = {});
Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& options = {});
Tensor zeros(IntArrayRef size, const TensorOptions& options = {});
Tensor ones(IntArrayRef size, const TensorOptions& options = {});
/// Every element `fill_value`; without a dtype in the options, that of the value.
Tensor full(IntArrayRef size, const Scalar& fill_value, const TensorOptions& options = {});
/// Sizes, dtype, device and memory layout of `self`, unless the options say otherwise.
Tensor empty_like(const Tensor& self, const TensorOptions& options = {});
Tensor zeros_like(const Tensor& self, const TensorOptions& options = {});
Tensor ones_like(const Tensor& self, const TensorOptions& options = {});
Tensor full_like(const Tensor& self, const Scalar& fill_value, const TensorOptions& options = {});
/// A 0-dimensional tensor of the default dtype unless the options say otherwise.
Tensor scalar_tensor(const Scalar& value, const TensorOptions& options = {});

/// A tensor over the caller's memory, row-major or with strides, from `storage_offset` elements behind `data` on;
/// `deleter(data)` runs when it is no longer needed. A deleter is a function or anything that can be called.
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, void (*deleter)(void*), const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, void (*deleter)(void*),
                 const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset, void (*deleter)(void*),
                 const TensorOptions& options = {});

namespace detail {
// The memory's owner is told by `deleter(context)`.
Tensor over_memory(void* data, IntArrayRef sizes, OptionalIntArrayRef strides, int64_t storage_offset,
                   void (*deleter)(void*), void* context, const TensorOptions& options);

// A deleter with a state of its own.
template <class Deleter>
struct OwnedDeleter {
  Deleter deleter;
  void* data;
  static void run(void* context) {
    auto* self = static_cast<OwnedDeleter*>(context);
    self->deleter(self->data);
    delete self;
  }
};
template <class T>
concept StatefulDeleter = std::invocable<T&, void*> && !std::convertible_to<T, void (*)(void*)>;

template <class Deleter>
Tensor over_owned_memory(void* data, IntArrayRef sizes, OptionalIntArrayRef strides, int64_t storage_offset,
                         Deleter deleter, const TensorOptions& options) {
  std::unique_ptr<OwnedDeleter<Deleter>> owned(new OwnedDeleter<Deleter>{std::move(deleter), data});
  const Tensor tensor =
      over_memory(data, sizes, strides, storage_offset, &OwnedDeleter<Deleter>::run, owned.get(), options);
  owned.release();  // the storage's from now on
  return tensor;
}
}  // namespace detail

template <detail::StatefulDeleter Deleter>
Tensor from_blob(void* data, IntArrayRef sizes, Deleter deleter, const TensorOptions& options = {}) {
  return detail::over_owned_memory(data, sizes, std::nullopt, 0, std::move(deleter), options);
}
template <detail::StatefulDeleter Deleter>
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, Deleter deleter,
                 const TensorOptions& options = {}) {
  return detail::over_owned_memory(data, sizes, strides, 0, std::move(deleter), options);
}
template <detail::StatefulDeleter Deleter>
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset, Deleter deleter,
                 const TensorOptions& options = {}) {
  return detail::over_owned_memory(data, sizes, strides, storage_offset, std::move(deleter), options);
}

namespace detail {
// Applies requires_grad of the options, which is no argument of the operators.
Tensor finish_factory(Tensor tensor, const TensorOptions& options);
// What a factory's operator makes of these arguments and the options, and, where its schema ends with one, the options'
// memory format.
template <class FactoryOp, class... Args>
Tensor call_factory(const FactoryOp& op, const TensorOptions& o, const Args&... args) {
  return finish_factory(op(args..., o.dtype_opt(), o.layout_opt(), o.device_opt(), o.pinned_memory_opt()), o);
}
template <class FactoryOp, class... Args>
Tensor call_format_factory(const FactoryOp& op, const TensorOptions& o, const Args&... args) {
  return finish_factory(
      op(args..., o.dtype_opt(), o.layout_opt(), o.device_opt(), o.pinned_memory_opt(), o.memory_format_opt()), o);
}
}  // namespace detail

/// A tensor of these elements: a number, or a list, perhaps nested: tensor({{1, 2}, {3, 4}}). Unless the options say
/// otherwise, int makes int64, float and double the default dtype, and every other type itself. Throws ValueError when
/// the lists on one level differ in length.
Tensor tensor(const TensorData& data, const TensorOptions& options = {});

/// A new tensor like `self` with every element `value`.
inline Tensor fill(const Tensor& self, const Scalar& value) { return ops::fill(self, value); }
inline Tensor fill(const Tensor& self, const Tensor& value) { return ops::fill_Tensor(self, value); }
inline Tensor& fill_(Tensor& self, const Scalar& value) { return ops::fill_(self, value); }
inline Tensor& fill_(Tensor& self, const Tensor& value) { return ops::fill_Tensor_(self, value); }

namespace kernels {
inline constinit Kernel<void(TensorIterator&, const Scalar&)> fill{"fill_"};
}  // namespace kernels

}  // namespace rush
