#include "core/ops/view/copy.h"

#include "core/device/backend.h"
#include "core/ops/factory/factories.h"
#include "core/ops/factory/pinned.h"
#include "core/ops/register.h"
#include "core/ops/view/item.h"
#include "core/ops/view/view.h"
#include "core/print/bracketed.h"

namespace rush {

namespace native {

// Between devices whose backend copies only bytes: what else there is to a copy happens on one side or the other.
static Tensor& copy_bytes_between(Tensor& self, const Tensor& src, Backend& backend) {
  const Tensor source = contiguous(as_dtype(src.expand(self.sizes()), self.scalar_type()));
  Tensor target =
      self.is_contiguous() ? self : detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  const size_t nbytes = static_cast<size_t>(self.numel() * self.element_size());
  if (nbytes > 0) backend.copy_bytes(target.data_ptr(), target.device(), source.data_ptr(), source.device(), nbytes);
  return target.is_same(self) ? self : copy_(self, target, false);
}

static Tensor& copy_between(Tensor& self, const Tensor& src, bool non_blocking) {
  if (self.device().type != src.device().type && !self.is_cpu() && !src.is_cpu()) {
    return copy_(self, src.cpu(), non_blocking);  // no backend knows another's devices
  }
  const DeviceType type = self.is_cpu() ? src.device().type : self.device().type;
  if (!kernels::copy_between.has(type)) return copy_bytes_between(self, src, backend_of(type));
  kernels::copy_between(type, self, src, non_blocking);
  return self;
}

Tensor& copy_(Tensor& self, const Tensor& src, bool non_blocking) {
  RUSH_CHECK_VALUE(self.defined() && src.defined(), "copy_: an argument is undefined");
  RUSH_CHECK_VALUE(broadcast_shapes(self.sizes(), src.sizes(), "copy_") == DimVector(self.sizes()),
                   "copy_: output with shape ", bracketed(self.sizes()), " doesn't match the broadcast shape ",
                   bracketed(src.sizes()));
  if (self.is_same(src)) return self;
  // A meta tensor takes any device's, there is nothing to write; but a listener hears of it.
  if (self.is_meta() && !(kernel_listener && src.is_meta())) return self;
  if (!(self.device() == src.device()) && !src.is_meta()) {
    return copy_between(self, src, non_blocking);
  }
  const Tensor source = self.sizes() == src.sizes() ? src : expand_as_strided(src, self.sizes());
  auto it = TensorIterator::pointwise("copy_", self, source, Promotion::None, self.scalar_type());
  kernels::copy(it.device_type(), it);
  return self;
}

Tensor to_dtype(const Tensor& self, ScalarType dtype) {
  auto it = TensorIterator::pointwise("to", Tensor(), self, Promotion::None, dtype);
  kernels::copy(it.device_type(), it);
  Tensor out = it.output();
  out.impl()->set_wrapped_number(self.impl()->is_wrapped_number());
  return out;
}

Tensor number_as(const Tensor& value, ScalarType dtype) {
  if (!value.impl()->is_wrapped_number()) return as_dtype(value, dtype);
  return scalar_tensor(value.item(), TensorOptions(dtype).device(value.device()));
}

Tensor clone_contiguous(const Tensor& self) {
  Tensor out = detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  return copy_(out, self, false);
}

Tensor contiguous(const Tensor& self) { return self.is_contiguous() ? self : clone_contiguous(self); }

Tensor empty_for_copy(const Tensor& self, ScalarType dtype, Device device, MemoryFormat format) {
  if (format != MemoryFormat::Preserve) return detail::empty_format(self.sizes(), dtype, device, format);
  if (self.is_non_overlapping_and_dense()) return detail::empty_strided(self.sizes(), self.strides(), dtype, device);
  // Without its gaps, its dimensions keep their order, as in what is computed of it.
  const Tensor gaps = detail::empty_strided(self.sizes(), self.strides(), dtype, kMeta);
  const Tensor alike = TensorIterator::pointwise("empty_like", Tensor(), gaps, Promotion::None, dtype).take_output();
  return detail::empty_strided(self.sizes(), alike.strides(), dtype, device);
}

static Tensor clone(const Tensor& self, std::optional<MemoryFormat> format) {
  Tensor out = empty_for_copy(self, self.scalar_type(), self.device(), format.value_or(MemoryFormat::Preserve));
  return copy_(out, self, false);
}

static Tensor contiguous_format(const Tensor& self, MemoryFormat format) {
  RUSH_CHECK_VALUE(format != MemoryFormat::Preserve, "contiguous: preserve_format is not a layout to convert to");
  return self.is_contiguous(format) ? self : ops::clone(self, format);
}

static Tensor _to_copy(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> /*layout*/,
                       std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
                       std::optional<MemoryFormat> format) {
  Tensor out = empty_for_copy(self, dtype.value_or(self.scalar_type()), device.value_or(self.device()),
                              format.value_or(MemoryFormat::Preserve));
  if (pin_memory.value_or(false) && out.is_cpu()) {
    out = detail::empty_pinned(out.sizes(), out.strides(), out.scalar_type());
  }
  return copy_(out, self, non_blocking);
}

template <class... Args>
static Tensor to(const Tensor& self, Args... args) {
  return self.to(args...);
}

static Tensor to_dtype_layout(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                              std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
                              bool copy, std::optional<MemoryFormat> format) {
  const auto options = TensorOptions().dtype(dtype).layout(layout).device(device).pinned_memory(pin_memory);
  return self.to(options, non_blocking, copy, format);
}

static Scalar _local_scalar_dense(const Tensor& self) {
  RUSH_CHECK_VALUE(self.numel() > 0, "_local_scalar_dense: a tensor of shape ", self.sizes(),
                   " has no element to read");
  const DispatchStateGuard below_autograd{KeySet(DispatchKey::Autograd)};
  const Tensor host = self.cpu();
  switch (self.scalar_type()) {
#define RUSH_ITEM(enumerator, type, ...) \
  case ScalarType::enumerator: return Scalar(*host.data_ptr<type>());
    RUSH_FORALL_SCALAR_TYPES(RUSH_ITEM)
#undef RUSH_ITEM
  }
  return {};
}

}  // namespace native

void register_copy_ops(Registry& r) {
  r.native(ops::copy_, native::copy_);
  r.native(ops::clone, native::clone);
  r.composite(ops::contiguous, native::contiguous_format);
  r.native(ops::_to_copy, native::_to_copy);
  r.native(ops::_local_scalar_dense, native::_local_scalar_dense);
  r.composite(ops::to_dtype, native::to);
  r.composite(ops::to_device, native::to);
  r.composite(ops::to_other, native::to);
  r.composite(ops::to_dtype_layout, native::to_dtype_layout);
}

Scalar Tensor::item(SourceLocation where) const {
  RUSH_CHECK_VALUE(numel() == 1, "item: a Tensor with ", numel(),
                   " elements cannot be converted to Scalar, its shape is ", sizes(), "; index it or reduce it first");
  RUSH_CHECK_NOT_IMPLEMENTED(!is_meta(), "item: a meta tensor has no value");
  detail::item_read_at = where;
  return ops::_local_scalar_dense(*this);
}

bool Tensor::is_nonzero(SourceLocation where) const {
  RUSH_CHECK_VALUE(numel() != 0, "is_nonzero: Boolean value of Tensor with no values is ambiguous");
  RUSH_CHECK_VALUE(numel() == 1,
                   "is_nonzero: Boolean value of Tensor with more than one value is ambiguous; the tensor has shape ",
                   sizes(), "; reduce it with any() or all()");
  return item(where).toBool();
}

Tensor Tensor::clone(std::optional<MemoryFormat> memory_format) const { return ops::clone(*this, memory_format); }
Tensor Tensor::contiguous(MemoryFormat memory_format) const {
  return is_contiguous(memory_format) ? *this : ops::contiguous(*this, memory_format);
}
Tensor& Tensor::copy_(const Tensor& source, bool non_blocking) const {
  return ops::copy_(self(), source, non_blocking);
}

Tensor Tensor::to(const TensorOptions& options, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> memory_format) const {
  RUSH_CHECK_VALUE(!options.requires_grad(),
                   "to: a copy requires a gradient where its source does; the options ask for "
                   "one, which requires_grad_() gives a leaf");
  const ScalarType dtype = options.dtype_opt().value_or(scalar_type());
  const Device device = options.device_opt().value_or(this->device());
  const auto format = memory_format ? memory_format : options.memory_format_opt();
  const bool same_device =
      device.type == this->device().type && (device.index < 0 || !device.is_accelerator() || device == this->device());
  const bool same_format = !format || *format == MemoryFormat::Preserve || is_contiguous(*format);
  if (!copy && dtype == scalar_type() && same_device && same_format) return *this;
  return ops::_to_copy(*this, dtype, std::nullopt, device, options.pinned_memory_opt(), non_blocking, format);
}
Tensor Tensor::to(ScalarType dtype, bool non_blocking, bool copy, std::optional<MemoryFormat> memory_format) const {
  return to(TensorOptions(dtype), non_blocking, copy, memory_format);
}
Tensor Tensor::to(Device device, bool non_blocking, bool copy, std::optional<MemoryFormat> memory_format) const {
  return to(TensorOptions(device), non_blocking, copy, memory_format);
}
Tensor Tensor::to(DeviceType type, bool non_blocking, bool copy, std::optional<MemoryFormat> memory_format) const {
  return to(TensorOptions(type), non_blocking, copy, memory_format);
}
Tensor Tensor::to(Device device, ScalarType dtype, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> memory_format) const {
  return to(TensorOptions(dtype).device(device), non_blocking, copy, memory_format);
}
Tensor Tensor::to(const Tensor& other, bool non_blocking, bool copy, std::optional<MemoryFormat> memory_format) const {
  return to(other.options(), non_blocking, copy, memory_format);
}
Tensor Tensor::type_as(const Tensor& other) const { return to(other.options()); }

}  // namespace rush
