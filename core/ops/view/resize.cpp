// resize_: new sizes for a tensor in place, over a storage that grows where it must. set_: another storage in place.
#include "core/ops/factory/uninitialized.h"
#include "core/ops/view/copy.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace {

// Gives the storage memory of `nbytes` that begins with what it holds. All tensors over it see the new memory.
void grow(const Storage& storage, int64_t nbytes) {
  RUSH_CHECK(storage->resizable(), "resize_: Trying to resize storage that is not resizable: its ", storage.nbytes(),
             " bytes have another owner, ", nbytes, " are needed");
  const DispatchStateGuard below_autograd{KeySet(DispatchKey::Autograd)};
  const Tensor bytes = detail::empty_contiguous({nbytes}, kUInt8, storage.device());
  const auto held = static_cast<int64_t>(storage.nbytes());
  if (held > 0 && !bytes.is_meta()) {
    auto before = make_intrusive<TensorImpl>(storage, kUInt8, storage.device());
    before->set_contiguous({held});
    Tensor kept = detail::make_view(bytes, {held}, {1}, 0);
    native::copy_(kept, Tensor(std::move(before)), /*non_blocking=*/false);
  }
  storage->swap_memory(*bytes.storage());
}

// The elements of `dtype` that lie in the storage from byte `held` on.
void fill_grown(const Storage& storage, ScalarType dtype, int64_t held) {
  const DispatchStateGuard below_autograd{KeySet(DispatchKey::Autograd)};
  const auto size = static_cast<int64_t>(element_size(dtype));
  const int64_t first = (held + size - 1) / size;
  auto grown = make_intrusive<TensorImpl>(storage, dtype, storage.device());
  grown->set_geometry({static_cast<int64_t>(storage->nbytes()) / size - first}, {1}, first);
  Tensor elements(std::move(grown));
  native::fill_uninitialized_(elements);
}

}  // namespace

const Tensor& Tensor::resize_(IntArrayRef size, std::optional<MemoryFormat> format) const {
  RUSH_CHECK(!requires_grad(), "resize_: cannot resize variables that require grad; resize what detach() returns");
  if (layout() != kStrided) checked().throw_sparse("resize_");
  checked_numel(size);
  const bool row_major = !format || *format == MemoryFormat::Contiguous || *format == MemoryFormat::Preserve;
  const DimVector strides = row_major ? contiguous_strides(size) : strides_for(size, *format);
  const int64_t extent = storage_extent(size, strides, storage_offset());
  const int64_t nbytes = multiply_sizes("resize_", extent, element_size());
  if (const auto held = static_cast<int64_t>(storage().nbytes()); nbytes > held) {
    grow(storage(), nbytes);
    fill_grown(storage(), scalar_type(), held);
  }
  checked().set_geometry(size, strides, storage_offset());
  return *this;
}

const Tensor& Tensor::resize_as_(const Tensor& other, std::optional<MemoryFormat> format) const {
  if (format && *format == MemoryFormat::Preserve) format = other.suggest_memory_format();
  return resize_(other.sizes(), format);
}

Tensor& Tensor::set_(Storage source, int64_t storage_offset, IntArrayRef size, IntArrayRef stride) const {
  RUSH_CHECK(!dispatch_state.grad_mode || !requires_grad(),
             "set_: the tensor requires a gradient: call it in the scope of a NoGradGuard, or use set_data");
  if (layout() != kStrided) checked().throw_sparse("set_");
  RUSH_CHECK_VALUE(source.device() == device(), "set_: the tensor is on ", device(), ", the storage on ",
                   source.device());
  RUSH_CHECK_VALUE(stride.empty() || stride.size() == size.size(), "set_: got ", size.size(), " sizes and ",
                   stride.size(), " strides");
  RUSH_CHECK_VALUE(storage_offset >= 0, "set_: storage offset ", storage_offset, " is negative");
  for (const int64_t s : stride) RUSH_CHECK_VALUE(s >= 0, "set_: strides must not be negative, got ", stride);
  checked_numel(size);
  const DimVector strides = stride.empty() ? contiguous_strides(size) : DimVector(stride);
  const int64_t nbytes = multiply_sizes("set_", storage_extent(size, strides, storage_offset), element_size());
  if (static_cast<size_t>(nbytes) > source.nbytes()) grow(source, nbytes);
  checked().set_storage(std::move(source));
  checked().set_geometry(size, strides, storage_offset);
  checked().set_view({}, ViewOrigin::None);
  return self();
}

Tensor& Tensor::set_(const Tensor& source, int64_t storage_offset, IntArrayRef size, IntArrayRef stride) const {
  RUSH_CHECK_VALUE(source.scalar_type() == scalar_type(), "set_: the tensor is ", scalar_type(), ", the source ",
                   source.scalar_type());
  return set_(source.storage(), storage_offset, size, stride);
}
Tensor& Tensor::set_(const Tensor& source) const {
  return set_(source, source.storage_offset(), source.sizes(), source.strides());
}
Tensor& Tensor::set_(Storage source) const {
  const auto count = static_cast<int64_t>(source.nbytes()) / element_size();
  return set_(std::move(source), 0, count);
}
Tensor& Tensor::set_() const { return set_(detail::empty_contiguous({0}, scalar_type(), device())); }

}  // namespace rush
