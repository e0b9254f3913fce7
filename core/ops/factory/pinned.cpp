#include "core/ops/factory/pinned.h"

#include "core/device/backend.h"
#include "core/ops/register.h"
#include "core/ops/sparse/sparse_parts.h"
#include "core/ops/view/copy.h"

namespace rush {

// Throws what a backend without a device says of it, and NotImplementedError without such a backend.
static Allocator* pinned_allocator() {
  if (Backend* backend = pinning_backend()) return backend->pinned_allocator();
  for (int type = 0; type < kNumDeviceTypes; ++type) {
    Backend* backend = backend_or_null(static_cast<DeviceType>(type));
    if (backend && backend->pinned_allocator()) backend->require_device();
  }
  RUSH_THROW(NotImplementedError, "pin_memory: there is no device that reads the memory of the host by itself");
}

Tensor detail::empty_pinned(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype) {
  checked_numel(sizes);
  int64_t nbytes = 0;
  RUSH_CHECK_VALUE(!__builtin_mul_overflow(storage_extent(sizes, strides, 0), element_size(dtype), &nbytes),
                   "a tensor of sizes ", sizes, " is larger than the address space");
  Allocator* source = pinned_allocator();
  auto impl = make_intrusive<TensorImpl>(make_intrusive<StorageImpl>(static_cast<size_t>(nbytes), Device(), source),
                                         dtype, Device());
  impl->set_geometry(sizes, strides, 0);
  return Tensor(std::move(impl));
}

namespace native {

static bool is_pinned(const Tensor& self, std::optional<Device> /*device*/) {
  if (!self.is_cpu() || self.numel() == 0) return false;
  Backend* backend = pinning_backend();
  return backend && backend->is_pinned(self.data_ptr());
}

static Tensor pin_memory(const Tensor& self, std::optional<Device> device) {
  RUSH_CHECK_VALUE(self.is_cpu(), "pin_memory: expected a CPU tensor, got one on ", self.device());
  if (native::is_pinned(self, device)) return self;
  const bool dense = self.is_non_overlapping_and_dense();
  const DimVector strides = dense ? DimVector(self.strides()) : contiguous_strides(self.sizes());
  Tensor pinned = detail::empty_pinned(self.sizes(), strides, self.scalar_type());
  return pinned.copy_(self);
}

}  // namespace native

void register_pinned_ops(Registry& r) {
  r.composite(ops::is_pinned, native::is_pinned);
  r.composite(ops::pin_memory, native::pin_memory);
}

bool is_pinned(const Tensor& self) { return ops::is_pinned(self, std::nullopt); }
Tensor pin_memory(const Tensor& self) { return ops::pin_memory(self, std::nullopt); }
bool Tensor::is_pinned() const { return rush::is_pinned(*this); }
Tensor Tensor::pin_memory() const { return rush::pin_memory(*this); }

void Tensor::record_stream(const Stream& stream) const {
  RUSH_CHECK_VALUE(device().is_accelerator(), "record_stream: expected a tensor on an accelerator, got one on ",
                   device());
  RUSH_CHECK_VALUE(stream.device.type == device().type, "record_stream: the stream is not one of ", device());
  Backend& backend = backend_of(device().type);
  const auto record = [&](const Tensor& part) { backend.record_stream(*part.storage(), stream); };
  if (layout() == kStrided) return record(*this);
  record(native::stored_values(*this));
  if (layout() == kSparse) return record(native::coo_parts(*this, "record_stream").indices());
  record(native::compressed_parts(*this).compressed_indices());
  record(native::compressed_parts(*this).plain_indices());
}

}  // namespace rush
