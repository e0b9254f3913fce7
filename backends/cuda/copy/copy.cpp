// Copies: between host and device, between devices, and on one device.
#include "backends/cuda/kernels/view/copy.h"

#include "backends/cuda/check.h"
#include "backends/cuda/copy/peer.h"
#include "backends/cuda/device_assert.h"
#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/memory/pinned_allocator.h"
#include "backends/cuda/register.h"
#include "backends/cuda/stream/current_stream.h"
#include "core/device/backend.h"
#include "core/device/guard.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

// Whether both have the same sizes, no gaps, and the same order of elements in memory.
bool have_one_layout(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.is_non_overlapping_and_dense() && b.is_non_overlapping_and_dense() &&
         (a.strides() == b.strides() || (a.is_contiguous() && b.is_contiguous()));
}

bool is_pinned_storage(const Tensor& host) {
  return host.storage()->allocator() == &pinned_allocator() || is_pinned(host.data_ptr());
}

// ---- copies of bytes: both tensors have the same layout and dtype ----

void host_to_device(const Tensor& to, const Tensor& from, bool non_blocking) {
  const DeviceGuard guard(to.device());
  const cudaStream_t stream = current_stream();
  if (!non_blocking || !is_pinned_storage(from))
    check_not_capturing("a copy from the host, unless from pinned memory with non_blocking,");
  check_takes_part(to.device().index, stream, "a copy");
  RUSH_CUDA_CHECK(cudaMemcpyAsync(to.data_ptr(), from.data_ptr(), static_cast<size_t>(from.nbytes()),
                                  cudaMemcpyHostToDevice, stream));
  // From pageable memory, the call returns when the driver has copied the bytes to its buffer: the source may change.
  if (!is_pinned_storage(from)) return;
  if (non_blocking) {
    record_pinned_use(*from.storage(), {to.device(), stream});
  } else {
    synchronize_current_stream();
    throw_device_errors(to.device().index);
  }
}

void device_to_host(const Tensor& to, const Tensor& from, bool non_blocking) {
  const DeviceGuard guard(from.device());
  const cudaStream_t stream = current_stream();
  if (!non_blocking || !is_pinned_storage(to))
    check_not_capturing("a copy to the host, unless to pinned memory with non_blocking,");
  check_takes_part(from.device().index, stream, "a copy");
  RUSH_CUDA_CHECK(cudaMemcpyAsync(to.data_ptr(), from.data_ptr(), static_cast<size_t>(from.nbytes()),
                                  cudaMemcpyDeviceToHost, stream));
  if (non_blocking && is_pinned_storage(to)) {
    record_pinned_use(*to.storage(), {from.device(), stream});
    return;
  }
  synchronize_current_stream();
  throw_device_errors(from.device().index);
}

// The copy runs on the source's stream, after the work that is queued on the destination's stream and before its next
// work.
void device_to_device(const Tensor& to, const Tensor& from) {
  const Stream source{from.device(), current_stream(from.device().index)};
  const Stream destination{to.device(), current_stream(to.device().index)};
  enable_peer_access(from.device().index, to.device().index);
  wait_stream(source, destination);
  {
    const DeviceGuard guard(from.device());
    RUSH_CUDA_CHECK(cudaMemcpyPeerAsync(to.data_ptr(), to.device().index, from.data_ptr(), from.device().index,
                                        static_cast<size_t>(from.nbytes()), static_cast<cudaStream_t>(source.handle)));
  }
  wait_stream(destination, source);
}

void transfer(const Tensor& to, const Tensor& from, bool non_blocking) {
  if (from.numel() == 0) return;
  if (to.is_cpu()) {
    device_to_host(to, from, non_blocking);
  } else if (from.is_cpu()) {
    host_to_device(to, from, non_blocking);
  } else {
    device_to_device(to, from);
  }
}

// ---- kernels::copy_between ----

// Row-major and of `dtype`, on its own device.
Tensor prepared(const Tensor& from, ScalarType dtype) {
  const DeviceGuard guard(from.device());
  return from.scalar_type() == dtype ? native::contiguous(from) : native::contiguous(native::to_dtype(from, dtype));
}

// `from` broadcasts to `to`. The numbers that cross between the devices have the narrower dtype and are row-major; the
// destination's device broadcasts them, and widens them if necessary.
void copy_between(const Tensor& to, const Tensor& from, bool non_blocking) {
  if (to.scalar_type() == from.scalar_type() && have_one_layout(to, from)) return transfer(to, from, non_blocking);
  const bool narrows = to.element_size() < from.element_size();
  const ScalarType crossing = narrows ? to.scalar_type() : from.scalar_type();
  const Tensor source = prepared(from, crossing);
  if (to.scalar_type() == crossing && have_one_layout(to, source)) return transfer(to, source, non_blocking);
  const DeviceGuard guard(to.device());
  const Tensor arrived = detail::empty_contiguous(source.sizes(), crossing, to.device());
  transfer(arrived, source, non_blocking && to.is_cuda());
  Tensor target = to;
  native::copy_(target, arrived, false);
}

// ---- kernels::copy: both on one device ----

bool is_one_run(const TensorIterator& it) {
  const int64_t size = element_size(it.dtype(0));
  return it.dtype(0) == it.dtype(1) && it.is_flat() && it.operand(1).tensor.is_cuda() &&
         (it.numel() == 1 || (it.operand(0).strides[0] == size && it.operand(1).strides[0] == size));
}

void copy(TensorIterator& it) {
  if (it.numel() == 0) return;
  if (!is_one_run(it)) return copy_strided(it);
  const auto nbytes = static_cast<size_t>(it.numel() * element_size(it.dtype(0)));
  RUSH_CUDA_CHECK(
      cudaMemcpyAsync(it.operand(0).data, it.operand(1).data, nbytes, cudaMemcpyDeviceToDevice, current_stream()));
}

}  // namespace

void register_copy() {
  kernels::copy.set(kCUDA, copy);
  kernels::copy_between.set(kCUDA, copy_between);
}

}  // namespace rush::cuda
