#include "core/ops/factories.h"

#include "core/dispatch/registry.h"
#include "core/ops/copy.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

using Dtype = std::optional<ScalarType>;

static Tensor empty(IntArrayRef size, Dtype dtype, std::optional<Layout> /*layout*/, std::optional<Device> device,
                    std::optional<bool> /*pin_memory*/, std::optional<MemoryFormat> format) {
  return detail::empty_format(size, dtype.value_or(get_default_dtype()), device.value_or(Device()),
                              format.value_or(MemoryFormat::Contiguous));
}

static Tensor empty_strided(IntArrayRef size, IntArrayRef stride, Dtype dtype, std::optional<Layout> /*layout*/,
                            std::optional<Device> device, std::optional<bool> /*pin_memory*/) {
  RUSH_CHECK_VALUE(size.size() == stride.size(), "empty_strided: got ", size.size(), " sizes and ", stride.size(),
                   " strides");
  for (int64_t s : stride) RUSH_CHECK_VALUE(s >= 0, "empty_strided: strides must not be negative, got ", stride);
  return detail::empty_strided(size, stride, dtype.value_or(get_default_dtype()), device.value_or(Device()));
}

static Tensor empty_like(const Tensor& self, Dtype dtype, std::optional<Layout> /*layout*/,
                         std::optional<Device> device, std::optional<bool> /*pin_memory*/,
                         std::optional<MemoryFormat> format) {
  const ScalarType type = dtype.value_or(self.scalar_type());
  const Device where = device.value_or(self.device());
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  if (wanted != MemoryFormat::Preserve) return detail::empty_format(self.sizes(), type, where, wanted);
  if (self.is_non_overlapping_and_dense()) return detail::empty_strided(self.sizes(), self.strides(), type, where);
  return detail::empty_contiguous(self.sizes(), type, where);
}

static Tensor& fill_(Tensor& self, const Scalar& value) {
  RUSH_CHECK_TYPE(!value.is_complex() || self.is_complex(), "fill_: a complex number does not fit a tensor of ",
                  self.scalar_type());
  auto it = TensorIterator::nullary("fill_", self);
  kernels::fill(it.device_type(), it, value);
  return self;
}

static Tensor& zero_(Tensor& self) { return fill_(self, 0); }

static Tensor full(IntArrayRef size, const Scalar& value, Dtype dtype, std::optional<Layout> layout,
                   std::optional<Device> device, std::optional<bool> pin_memory) {
  if (!dtype) {
    dtype = value.is_floating_point() ? get_default_dtype()
            : value.is_complex()      ? to_complex(get_default_dtype())
                                      : value.type();
  }
  Tensor out = empty(size, dtype, layout, device, pin_memory, std::nullopt);
  return fill_(out, value);
}

}  // namespace native

void register_factory_ops(Registry& r) {
  r.native(ops::empty, native::empty);
  r.native(ops::empty_strided, native::empty_strided);
  r.native(ops::empty_like, native::empty_like);
  r.native(ops::full, native::full);
  r.native(ops::fill_, native::fill_);
  r.native(ops::zero_, native::zero_);
}

Tensor detail::finish_factory(Tensor tensor, const TensorOptions& options) {
  if (options.requires_grad()) tensor.requires_grad_(true);
  return tensor;
}

using detail::finish_factory;

Tensor empty(IntArrayRef size, const TensorOptions& o) {
  return finish_factory(
      ops::empty(size, o.dtype_opt(), o.layout_opt(), o.device_opt(), o.pinned_memory_opt(), o.memory_format_opt()), o);
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& o) {
  return finish_factory(
      ops::empty_strided(size, stride, o.dtype_opt(), o.layout_opt(), o.device_opt(), o.pinned_memory_opt()), o);
}

Tensor full(IntArrayRef size, const Scalar& value, const TensorOptions& o) {
  return finish_factory(ops::full(size, value, o.dtype_opt(), o.layout_opt(), o.device_opt(), o.pinned_memory_opt()),
                        o);
}

Tensor zeros(IntArrayRef size, const TensorOptions& o) { return full(size, 0, o.dtype(o.dtype())); }
Tensor ones(IntArrayRef size, const TensorOptions& o) { return full(size, 1, o.dtype(o.dtype())); }

Tensor empty_like(const Tensor& self, const TensorOptions& o) {
  return finish_factory(ops::empty_like(self, o.dtype_opt(), o.layout_opt(), o.device_opt(), o.pinned_memory_opt(),
                                        o.memory_format_opt()),
                        o);
}

Tensor full_like(const Tensor& self, const Scalar& value, const TensorOptions& o) {
  Tensor out = empty_like(self, o.requires_grad(false));
  out.fill_(value);
  return finish_factory(out, o);
}

Tensor zeros_like(const Tensor& self, const TensorOptions& o) { return full_like(self, 0, o); }
Tensor ones_like(const Tensor& self, const TensorOptions& o) { return full_like(self, 1, o); }

Tensor scalar_tensor(const Scalar& value, const TensorOptions& o) { return full({}, value, o.dtype(o.dtype())); }

namespace {

Tensor over_memory(void* data, IntArrayRef sizes, IntArrayRef strides, void (*deleter)(void*), const TensorOptions& o) {
  checked_numel(sizes);
  const size_t nbytes = static_cast<size_t>(storage_extent(sizes, strides, 0) * element_size(o.dtype()));
  auto storage = make_intrusive<StorageImpl>(data, nbytes, o.device(), deleter, data);
  auto impl = make_intrusive<TensorImpl>(std::move(storage), o.dtype(), o.device());
  impl->set_geometry(sizes, strides, 0);
  return finish_factory(Tensor(std::move(impl)), o);
}

template <class T>
Tensor from_values(ArrayRef<T> values, const TensorOptions& o) {
  const ScalarType natural = is_floating_point(scalar_type_of<T>) ? get_default_dtype() : scalar_type_of<T>;
  Tensor out = detail::empty_contiguous(static_cast<int64_t>(values.size()), scalar_type_of<T>, Device());
  std::copy(values.begin(), values.end(), out.data_ptr<T>());
  return finish_factory(out.to(o.device(), o.dtype_opt().value_or(natural)), o);
}

}  // namespace

Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& o) {
  return over_memory(data, sizes, contiguous_strides(sizes), nullptr, o);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& o) {
  return over_memory(data, sizes, strides, nullptr, o);
}
Tensor from_blob(void* data, IntArrayRef sizes, void (*deleter)(void*), const TensorOptions& o) {
  return over_memory(data, sizes, contiguous_strides(sizes), deleter, o);
}

Tensor tensor(ArrayRef<double> values, const TensorOptions& o) { return from_values(values, o); }
Tensor tensor(ArrayRef<float> values, const TensorOptions& o) { return from_values(values, o); }
Tensor tensor(ArrayRef<int64_t> values, const TensorOptions& o) { return from_values(values, o); }
Tensor tensor(ArrayRef<uint8_t> values, const TensorOptions& o) { return from_values(values, o); }
Tensor tensor(ArrayRef<int> values, const TensorOptions& o) {
  // As in Python, plain integers make int64 tensors.
  return tensor(std::vector<int64_t>(values.begin(), values.end()), o);
}
Tensor tensor(std::initializer_list<double> values, const TensorOptions& o) {
  return tensor(ArrayRef<double>(values), o);
}
Tensor tensor(std::initializer_list<float> values, const TensorOptions& o) {
  return tensor(ArrayRef<float>(values), o);
}
Tensor tensor(std::initializer_list<int64_t> values, const TensorOptions& o) {
  return tensor(ArrayRef<int64_t>(values), o);
}
Tensor tensor(std::initializer_list<int> values, const TensorOptions& o) { return tensor(ArrayRef<int>(values), o); }
Tensor tensor(std::initializer_list<bool> values, const TensorOptions& o) {
  return from_values(ArrayRef<bool>(values), o);
}
Tensor tensor(const Scalar& value, const TensorOptions& o) { return full({}, value, o); }

Tensor& Tensor::fill_(const Scalar& value) const { return ops::fill_(self(), value); }
Tensor& Tensor::fill_(const Tensor& value) const {
  RUSH_CHECK_VALUE(value.dim() == 0, "fill_: expected a 0-dimensional value, got shape ", value.sizes());
  return copy_(value);
}
Tensor& Tensor::zero_() const { return ops::zero_(self()); }

}  // namespace rush
