// Pinned memory: host memory that a GPU copies from and to by itself, while the host goes on.
#pragma once
#include "core/dispatch/op.h"
#include "core/tensor.h"

namespace rush {

namespace ops {
inline constinit Op<bool(const Tensor&, std::optional<Device>)> is_pinned{
    "aten::is_pinned(Tensor self, Device? device=None) -> bool"};
inline constinit Op<Tensor(const Tensor&, std::optional<Device>)> pin_memory{
    "aten::pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)"};
}  // namespace ops

/// Whether a CPU tensor's memory is pinned; false without a GPU.
bool is_pinned(const Tensor& self);
/// The tensor itself when it is pinned, else a copy that is. Throws ValueError unless it lies on the CPU, and
/// NotImplementedError or CudaError without a GPU.
Tensor pin_memory(const Tensor& self);

namespace detail {
// Uninitialised pinned memory.
Tensor empty_pinned(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype);
}  // namespace detail

}  // namespace rush
