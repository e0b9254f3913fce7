#include "core/tensor.h"

#include <algorithm>
#include <numeric>

#include "core/device/backend.h"
#include "core/dispatch/key.h"
#include "core/iterator/tensor_iterator.h"
#include "core/ops/sparse/sparse_tensor_impl.h"

namespace rush {

int64_t wrap_dim(int64_t dim, int64_t dims, const char* op) {
  // A 0-dimensional tensor is addressed as if it had one dimension.
  const int64_t range = dims == 0 ? 1 : dims;
  RUSH_CHECK_INDEX(dim >= -range && dim < range, op, ": Dimension out of range (expected to be in range of [", -range,
                   ", ", range - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + range : dim;
}

DimVector wrap_dims(IntArrayRef dim, int64_t dims, const char* op, bool empty_is_all) {
  DimVector wrapped;
  if (dim.empty() && empty_is_all) {
    wrapped.resize(static_cast<size_t>(dims));
    std::iota(wrapped.begin(), wrapped.end(), 0);
    return wrapped;
  }
  for (int64_t d : dim) {
    const int64_t w = wrap_dim(d, dims, op);
    RUSH_CHECK_VALUE(std::find(wrapped.begin(), wrapped.end(), w) == wrapped.end(), op, ": dimension ", d,
                     " appears twice in ", dim);
    wrapped.push_back(w);
  }
  return wrapped;
}

const int64_t Tensor::kNoElements[] = {0};
int64_t Tensor::size(int64_t dim) const {
  RUSH_CHECK_INDEX(this->dim() > 0, "size: a 0-dimensional tensor has no sizes, asked for dimension ", dim);
  return sizes()[static_cast<size_t>(wrap_dim(dim, this->dim(), "size"))];
}

int64_t Tensor::stride(int64_t dim) const {
  if (layout() != kStrided) checked().throw_sparse("stride");
  RUSH_CHECK_INDEX(this->dim() > 0, "stride: a 0-dimensional tensor has no strides, asked for dimension ", dim);
  return strides()[static_cast<size_t>(wrap_dim(dim, this->dim(), "stride"))];
}

namespace {

// Whether the elements lie in memory in exactly this format's order; sizes of one do not matter.
bool matches_format(const Tensor& tensor, MemoryFormat format) {
  const size_t dims = format == MemoryFormat::ChannelsLast ? 4 : 5;
  if (tensor.sizes().size() != dims) return false;
  const DimVector expected = strides_for(tensor.sizes(), format);
  for (size_t d = 0; d < dims; ++d) {
    if (tensor.sizes()[d] == 0) return true;
    if (tensor.sizes()[d] != 1 && tensor.strides()[d] != expected[d]) return false;
  }
  return true;
}

}  // namespace

bool Tensor::is_contiguous(MemoryFormat format) const {
  const bool row_major = format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve;
  return row_major ? !defined() || impl_->is_contiguous() : matches_format(*this, format);
}

MemoryFormat Tensor::suggest_memory_format() const {
  if (is_contiguous()) return MemoryFormat::Contiguous;
  if (is_contiguous(MemoryFormat::ChannelsLast)) return MemoryFormat::ChannelsLast;
  if (is_contiguous(MemoryFormat::ChannelsLast3d)) return MemoryFormat::ChannelsLast3d;
  return MemoryFormat::Contiguous;
}

Tensor Tensor::tensor_data() const { return detail::make_alias(*this); }

namespace detail {

Tensor make_view(const Tensor& base, IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset,
                 ViewOrigin origin) {
  return make_view_as(base, base.scalar_type(), sizes, strides, storage_offset, origin);
}

Tensor make_view_as(const Tensor& base, ScalarType dtype, IntArrayRef sizes, IntArrayRef strides,
                    int64_t storage_offset, ViewOrigin origin) {
  RUSH_CHECK(base.defined(), "expected a tensor to make a view of, got an undefined one");
  TensorImpl* source = base.impl();
  if (source->layout() != kStrided) source->throw_sparse("view");
  auto view = make_intrusive<TensorImpl>(source->storage(), dtype, source->device());
  view->set_inference(source->is_inference());
  view->set_geometry(sizes, strides, storage_offset);
  if (source->is_inference()) {  // nothing is recorded of it
  } else if (!dispatch_state.grad_mode) {
    // So that a recorded call that writes the view is refused: the base's history would not know of it.
    view->set_view(nullptr, ViewOrigin::NoGrad);
    view->set_requires_autograd(source->keys().has(DispatchKey::Autograd));
  } else if (is_differentiable(source->dtype())) {
    view->set_view(source->view_base() ? source->view_base() : base.impl_ptr(), origin);
  }
  return Tensor(std::move(view));
}

Tensor make_alias(const Tensor& tensor) {
  RUSH_CHECK(tensor.defined(), "expected a tensor to detach, got an undefined one");
  TensorImpl* source = tensor.impl();
  if (source->layout() != kStrided) return sparse_alias(tensor);
  auto alias = make_intrusive<TensorImpl>(source->storage(), source->dtype(), source->device());
  alias->set_geometry(source->sizes(), source->strides(), source->storage_offset());
  alias->set_wrapped_number(source->is_wrapped_number());
  alias->set_inference(source->is_inference());
  return Tensor(std::move(alias));
}

namespace {

Storage new_storage(int64_t elements, ScalarType dtype, Device device) {
  int64_t nbytes = 0;
  RUSH_CHECK_VALUE(!__builtin_mul_overflow(elements, element_size(dtype), &nbytes), "a tensor of ", elements,
                   " elements of ", dtype, " is larger than the address space");
  Allocator* source = device.is_meta() ? nullptr : &allocator(device.type);
  return make_intrusive<StorageImpl>(static_cast<size_t>(nbytes), device, source);
}

}  // namespace

Tensor empty_contiguous(IntArrayRef sizes, ScalarType dtype, Device device) {
  device = device.is_accelerator() ? concrete_device(device) : Device(device.type);  // "cpu:0" is the CPU
  auto impl = make_intrusive<TensorImpl>(new_storage(checked_numel(sizes), dtype, device), dtype, device);
  impl->set_contiguous(sizes);
  return Tensor(std::move(impl));
}

Tensor empty_format(IntArrayRef sizes, ScalarType dtype, Device device, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous) return empty_contiguous(sizes, dtype, device);
  return empty_strided(sizes, strides_for(sizes, format), dtype, device);
}

Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, Device device) {
  checked_numel(sizes);
  device = device.is_accelerator() ? concrete_device(device) : Device(device.type);  // "cpu:0" is the CPU
  auto impl = make_intrusive<TensorImpl>(new_storage(storage_extent(sizes, strides, 0), dtype, device), dtype, device);
  impl->set_geometry(sizes, strides, 0);
  return Tensor(std::move(impl));
}

Tensor wrapped_number(const Scalar& value) {
  // An integer stays int64 and a float float64 here; promotion turns it into what the other operand needs.
  Tensor number = empty_contiguous({}, value.type(), Device());
  switch (value.type()) {
    case kBool: *number.data_ptr<bool>() = value.toBool(); break;
    case kInt64: *number.data_ptr<int64_t>() = value.toLong(); break;
    case kUInt64: *number.data_ptr<uint64_t>() = value.to<uint64_t>(); break;
    case kFloat64: *number.data_ptr<double>() = value.toDouble(); break;
    default: *number.data_ptr<complex<double>>() = value.to<complex<double>>();
  }
  number.impl()->set_wrapped_number(true);
  return number;
}

Tensor wrapped_number(const Scalar& value, const Tensor& other) {
  // A narrow integer could not hold it, where the computation may be done in a wider type.
  const bool holds = is_differentiable(other.scalar_type()) || other.scalar_type() == kInt64;
  if (!holds || result_type(other, value) != other.scalar_type()) return wrapped_number(value);
  Tensor number = empty_contiguous({}, other.scalar_type(), Device());
  switch (other.scalar_type()) {
#define RUSH_STORE(enumerator, type, ...) \
  case ScalarType::enumerator: *number.data_ptr<type>() = value.to<type>(); break;
    RUSH_FORALL_SCALAR_TYPES(RUSH_STORE)
#undef RUSH_STORE
  }
  number.impl()->set_wrapped_number(true);
  return number;
}

}  // namespace detail

}  // namespace rush
