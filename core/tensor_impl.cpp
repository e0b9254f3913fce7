#include "core/tensor_impl.h"

#include <algorithm>
#include <numeric>

#include "core/error/error.h"
#include "core/integer.h"
#include "core/memory/meta_ledger.h"

namespace rush {

StorageImpl::~StorageImpl() {
  if (device_.is_meta()) {
    detail::meta_freed(*this);
  } else if (use() != MemoryUse::Other) {
    detail::count_memory(*this, use(), -1);
  }
  if (allocator_) allocator_->deallocate({data_, context_}, nbytes_);
  if (deleter_) deleter_(context_);
}

void StorageImpl::swap_memory(StorageImpl& other) {
  std::swap(data_, other.data_);
  std::swap(nbytes_, other.nbytes_);
  std::swap(device_, other.device_);
  std::swap(allocator_, other.allocator_);
  std::swap(deleter_, other.deleter_);
  std::swap(context_, other.context_);
  use_.store(other.use_.exchange(use()));
}

TensorImpl::~TensorImpl() = default;

void TensorImpl::set_geometry(IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset) {
  numel_ = checked_numel(sizes);
  sizes_.assign(sizes.begin(), sizes.end());
  strides_.assign(strides.begin(), strides.end());
  storage_offset_ = storage_offset;
  contiguous_ = rush::is_contiguous(sizes_, strides_);
  dense_ = contiguous_ || rush::is_non_overlapping_and_dense(sizes_, strides_);
}

void TensorImpl::set_contiguous(IntArrayRef sizes) {
  sizes_.assign(sizes.begin(), sizes.end());
  strides_.assign(sizes.begin(), sizes.end());  // for its length alone: resize would call memset
  storage_offset_ = 0;
  uint64_t step = 1, numel = 1;  // wraps around where sizes beside a zero are huge: nothing lies there
  for (size_t i = sizes_.size(); i-- > 0;) {
    strides_[i] = static_cast<int64_t>(step);
    step *= static_cast<uint64_t>(std::max<int64_t>(sizes_[i], 1));
    numel *= static_cast<uint64_t>(sizes_[i]);
  }
  numel_ = static_cast<int64_t>(numel);
  contiguous_ = dense_ = true;
}

void TensorImpl::set_sparse_sizes(IntArrayRef sizes) {
  checked_numel(sizes);
  set_contiguous(sizes);
  contiguous_ = dense_ = false;
}

void TensorImpl::throw_sparse(const char* call) const {
  RUSH_THROW(NotImplementedError, call, ": not implemented for tensors of layout ", layout_,
             "; to_dense() makes a dense tensor of one");
}

void TensorImpl::set_data_of(const TensorImpl& other) {
  RUSH_CHECK_VALUE(layout_ == other.layout_, "set_data: the tensor has layout ", layout_, ", the new data ",
                   other.layout_);
  storage_ = other.storage_;
  sizes_ = other.sizes_;
  strides_ = other.strides_;
  numel_ = other.numel_;
  storage_offset_ = other.storage_offset_;
  dtype_ = other.dtype_;
  device_ = other.device_;
  keys_ = (keys_ & KeySet(DispatchKey::Autograd)) | other.keys_.without(DispatchKey::Autograd);
  contiguous_ = other.contiguous_;
  dense_ = other.dense_;
}

// Below, beside a size of 0 the others may be anything: their product wraps around, and nothing is ever found by it.

DimVector strides_for(IntArrayRef sizes, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) return contiguous_strides(sizes);
  const size_t dims = format == MemoryFormat::ChannelsLast ? 4 : 5;
  RUSH_CHECK_VALUE(sizes.size() == dims, "memory format ", format, " needs ", dims, " dimensions, got sizes ", sizes);
  DimVector strides(dims, 1);
  int64_t stride = 1;
  const auto place = [&](size_t d) {
    strides[d] = stride;
    stride = wrap_mul<int64_t>(stride, std::max<int64_t>(sizes[d], 1));
  };
  place(1);
  for (size_t d = dims - 1; d >= 2; --d) place(d);
  place(0);
  return strides;
}

int64_t checked_numel(IntArrayRef sizes) {
  int64_t numel = 1;
  for (int64_t size : sizes) {
    RUSH_CHECK_VALUE(size >= 0, "sizes must be non-negative, got ", sizes);
    RUSH_CHECK_VALUE(!__builtin_mul_overflow(numel, size, &numel), "sizes ", sizes, " hold too many elements");
  }
  // A zero anywhere hides an overflow elsewhere only when the product itself is representable; strides need that too.
  return numel;
}

int64_t storage_extent(IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset) {
  int64_t last = storage_offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    int64_t reach = 0;
    RUSH_CHECK_VALUE(
        !__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) && !__builtin_add_overflow(last, reach, &last),
        "sizes ", sizes, " with strides ", strides, " reach too far");
  }
  RUSH_CHECK_VALUE(!__builtin_add_overflow(last, 1, &last), "sizes ", sizes, " with strides ", strides,
                   " reach too far");
  return last;
}

bool is_non_overlapping_and_dense(IntArrayRef sizes, IntArrayRef strides) {
  DimVector order(sizes.size(), 0);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (int64_t d : order) {
    if (sizes[d] == 0) return true;
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected = wrap_mul<int64_t>(expected, sizes[d]);
  }
  return true;
}

}  // namespace rush
