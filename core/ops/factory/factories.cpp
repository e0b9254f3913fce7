#include "core/ops/factory/factories.h"

#include <algorithm>
#include <limits>

#include "core/device/context.h"
#include "core/ops/factory/pinned.h"
#include "core/ops/factory/uninitialized.h"
#include "core/ops/register.h"
#include "core/ops/sparse/sparse_parts.h"
#include "core/ops/view/copy.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

static void check_pinned(const char* op, MaybeDevice device) {
  RUSH_CHECK_VALUE(!device || device->is_cpu(), op, ": only CPU tensors can be pinned, got device ", *device);
}

// A sparse tensor has no elements to fill: `empty` and `zeros` make one without entries.
static Tensor empty_sparse(const char* op, Layout layout, IntArrayRef size, MaybeDtype dtype, MaybeDevice device,
                           MaybePin pin_memory) {
  RUSH_CHECK_VALUE(!pin_memory.value_or(false), op, ": sparse tensors cannot be pinned");
  RUSH_CHECK_VALUE(!is_blocked(layout), op, ": a tensor of layout ", layout, " needs a block size; use to_sparse");
  return make_empty_sparse(layout, size, static_cast<int64_t>(size.size()), dtype.value_or(get_default_dtype()),
                           device.value_or(get_default_device()));
}
static bool is_sparse(MaybeLayout layout) { return layout && *layout != kStrided; }
static void check_strided(const char* op, MaybeLayout layout) {
  RUSH_CHECK_VALUE(!is_sparse(layout), op, ": makes dense tensors, not ones of layout ", *layout);
}

static Tensor empty(IntArrayRef size, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device, MaybePin pin_memory,
                    MaybeFormat format) {
  if (is_sparse(layout)) return empty_sparse("empty", *layout, size, dtype, device, pin_memory);
  if (pin_memory.value_or(false)) {
    check_pinned("empty", device);
    checked_numel(size);
    const DimVector strides = strides_for(size, format.value_or(MemoryFormat::Contiguous));
    return detail::empty_pinned(size, strides, dtype.value_or(get_default_dtype()));
  }
  return detail::empty_format(size, dtype.value_or(get_default_dtype()), device.value_or(get_default_device()),
                              format.value_or(MemoryFormat::Contiguous));
}

static Tensor empty_strided(IntArrayRef size, IntArrayRef stride, MaybeDtype dtype, MaybeLayout layout,
                            MaybeDevice device, MaybePin pin_memory) {
  check_strided("empty_strided", layout);
  RUSH_CHECK_VALUE(size.size() == stride.size(), "empty_strided: got ", size.size(), " sizes and ", stride.size(),
                   " strides");
  for (int64_t s : stride) RUSH_CHECK_VALUE(s >= 0, "empty_strided: strides must be non-negative, got ", stride);
  if (pin_memory.value_or(false)) {
    check_pinned("empty_strided", device);
    return detail::empty_pinned(size, stride, dtype.value_or(get_default_dtype()));
  }
  return detail::empty_strided(size, stride, dtype.value_or(get_default_dtype()),
                               device.value_or(get_default_device()));
}

static Tensor empty_like(const Tensor& self, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device,
                         MaybePin pin_memory, MaybeFormat format) {
  check_strided("empty_like", layout);
  const ScalarType type = dtype.value_or(self.scalar_type());
  const Device where = device.value_or(self.device());
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  if (pin_memory.value_or(false)) {
    check_pinned("empty_like", where);
    const bool dense = wanted == MemoryFormat::Preserve && self.is_non_overlapping_and_dense();
    return detail::empty_pinned(self.sizes(), dense ? DimVector(self.strides()) : strides_for(self.sizes(), wanted),
                                type);
  }
  return empty_for_copy(self, type, where, wanted);
}

// One of the elements that share memory, as those of an expanded tensor do: they all get the same value.
static Tensor without_repeats(const Tensor& self) {
  if (self.is_non_overlapping_and_dense()) return self;
  DimVector sizes(self.sizes());
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (self.strides()[d] == 0) sizes[d] = std::min<int64_t>(sizes[d], 1);
  }
  return detail::make_view(self, sizes, self.strides(), self.storage_offset());
}

static Tensor& fill_(Tensor& self, const Scalar& value) {
  RUSH_CHECK_TYPE(!value.is_complex() || self.is_complex(), "fill_: a complex number does not fit a tensor of ",
                  self.scalar_type());
  auto it = TensorIterator::nullary("fill_", without_repeats(self));
  kernels::fill(it.device_type(), it, value);
  return self;
}

static Tensor& zero_(Tensor& self) { return native::fill_(self, 0); }

static Tensor full(IntArrayRef size, const Scalar& value, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device,
                   MaybePin pin_memory) {
  if (!dtype) {
    dtype = value.is_floating_point() ? get_default_dtype()
            : value.is_complex()      ? to_complex(get_default_dtype())
                                      : value.type();
  }
  check_strided("full", layout);
  Tensor out = empty(size, dtype, layout, device, pin_memory, std::nullopt);
  return native::fill_(out, value);
}

static Tensor zeros(IntArrayRef size, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device, MaybePin pin_memory) {
  if (is_sparse(layout)) return empty_sparse("zeros", *layout, size, dtype, device, pin_memory);
  return native::full(size, 0, dtype.value_or(get_default_dtype()), layout, device, pin_memory);
}

template <class... Options>
static Tensor ones(IntArrayRef size, MaybeDtype dtype, Options... options) {
  return native::full(size, 1, dtype.value_or(get_default_dtype()), options...);
}

template <class... Options>
static Tensor scalar_tensor(const Scalar& value, MaybeDtype dtype, Options... options) {
  return native::full({}, value, dtype.value_or(get_default_dtype()), options...);
}

static Tensor full_like(const Tensor& self, const Scalar& value, MaybeDtype dtype, MaybeLayout layout,
                        MaybeDevice device, MaybePin pin_memory, MaybeFormat format) {
  Tensor out = native::empty_like(self, dtype, layout, device, pin_memory, format);
  return native::fill_(out, value);
}

template <int value, class... Options>
static Tensor filled_like(const Tensor& self, Options... options) {
  return native::full_like(self, value, options...);
}

static Tensor new_empty(const Tensor& self, IntArrayRef size, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device,
                        MaybePin pin_memory) {
  return native::empty(size, dtype.value_or(self.scalar_type()), layout, device.value_or(self.device()), pin_memory,
                       std::nullopt);
}

static Tensor new_empty_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride, MaybeDtype dtype,
                                MaybeLayout layout, MaybeDevice device, MaybePin pin_memory) {
  return native::empty_strided(size, stride, dtype.value_or(self.scalar_type()), layout, device.value_or(self.device()),
                               pin_memory);
}

static Tensor new_full(const Tensor& self, IntArrayRef size, const Scalar& value, MaybeDtype dtype, MaybeLayout layout,
                       MaybeDevice device, MaybePin pin_memory) {
  check_strided("new_full", layout);
  Tensor out = native::new_empty(self, size, dtype, layout, device, pin_memory);
  return native::fill_(out, value);
}

template <int value, class... Options>
static Tensor new_filled(const Tensor& self, IntArrayRef size, Options... options) {
  return native::new_full(self, size, value, options...);
}

static Tensor fill(const Tensor& self, const Scalar& value) {
  Tensor out = native::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  return native::fill_(out, value);
}

static Tensor& fill_Tensor_(Tensor& self, const Tensor& value) {
  RUSH_CHECK_VALUE(value.dim() == 0, "fill_: expected a 0-dimensional value, got shape ", value.sizes());
  Tensor target = without_repeats(self);
  native::copy_(target, value, false);
  return self;
}

static Tensor fill_Tensor(const Tensor& self, const Tensor& value) {
  Tensor out = native::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  return native::fill_Tensor_(out, value);
}

static Scalar greatest_integer(const DtypeTraits& type) {
  const uint64_t all_bits = ~uint64_t{0} >> (64 - 8 * type.size);
  return type.is_signed ? Scalar(static_cast<int64_t>(all_bits >> 1)) : Scalar(all_bits);
}

void fill_uninitialized_(Tensor& self) {
  const Context& context = globalContext();
  if (!context.deterministicAlgorithms() || !context.deterministicFillUninitializedMemory()) return;
  if (is_sparse(self.layout())) return;
  const DtypeTraits& type = traits_of(self.scalar_type());
  switch (type.kind) {
    case DtypeKind::Bool: native::fill_(self, true); break;
    case DtypeKind::Integer: native::fill_(self, greatest_integer(type)); break;
    default: native::fill_(self, std::numeric_limits<double>::quiet_NaN());
  }
}

// What `make` gives, of memory that nothing has been written to.
template <auto make, class... Arguments>
static Tensor uninitialized(Arguments... arguments) {
  Tensor out = make(arguments...);
  fill_uninitialized_(out);
  return out;
}

}  // namespace native

void register_factory_ops(Registry& r) {
  r.native(ops::empty, native::uninitialized<native::empty>);
  r.native(ops::empty_strided, native::uninitialized<native::empty_strided>);
  r.native(ops::empty_like, native::uninitialized<native::empty_like>);
  r.native(ops::full, native::full);
  r.native(ops::zeros, native::zeros);
  r.native(ops::ones, native::ones);
  r.native(ops::scalar_tensor, native::scalar_tensor);
  r.native(ops::full_like, native::full_like);
  r.native(ops::zeros_like, native::filled_like<0>);
  r.native(ops::ones_like, native::filled_like<1>);
  r.native(ops::new_empty, native::uninitialized<native::new_empty>);
  r.native(ops::new_empty_strided, native::uninitialized<native::new_empty_strided>);
  r.native(ops::new_full, native::new_full);
  r.native(ops::new_zeros, native::new_filled<0>);
  r.native(ops::new_ones, native::new_filled<1>);
  r.native(ops::fill, native::fill);
  r.native(ops::fill_Tensor, native::fill_Tensor);
  r.native(ops::fill_Tensor_, native::fill_Tensor_);
  r.native(ops::fill_, native::fill_);
  r.native(ops::zero_, native::zero_);
}

Tensor detail::finish_factory(Tensor tensor, const TensorOptions& options) {
  if (options.requires_grad()) tensor.requires_grad_(true);
  return tensor;
}

using detail::call_factory, detail::call_format_factory, detail::finish_factory;

Tensor empty(IntArrayRef size, const TensorOptions& o) { return call_format_factory(ops::empty, o, size); }
Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& o) {
  return call_factory(ops::empty_strided, o, size, stride);
}
Tensor full(IntArrayRef size, const Scalar& value, const TensorOptions& o) {
  return call_factory(ops::full, o, size, value);
}
Tensor zeros(IntArrayRef size, const TensorOptions& o) { return call_factory(ops::zeros, o, size); }
Tensor ones(IntArrayRef size, const TensorOptions& o) { return call_factory(ops::ones, o, size); }
Tensor scalar_tensor(const Scalar& value, const TensorOptions& o) { return call_factory(ops::scalar_tensor, o, value); }

Tensor empty_like(const Tensor& self, const TensorOptions& o) { return call_format_factory(ops::empty_like, o, self); }
Tensor full_like(const Tensor& self, const Scalar& value, const TensorOptions& o) {
  return call_format_factory(ops::full_like, o, self, value);
}
Tensor zeros_like(const Tensor& self, const TensorOptions& o) { return call_format_factory(ops::zeros_like, o, self); }
Tensor ones_like(const Tensor& self, const TensorOptions& o) { return call_format_factory(ops::ones_like, o, self); }

Tensor Tensor::new_empty(IntArrayRef size, const TensorOptions& o) const {
  return call_factory(ops::new_empty, o, *this, size);
}
Tensor Tensor::new_empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& o) const {
  return call_factory(ops::new_empty_strided, o, *this, size, stride);
}
Tensor Tensor::new_zeros(IntArrayRef size, const TensorOptions& o) const {
  return call_factory(ops::new_zeros, o, *this, size);
}
Tensor Tensor::new_ones(IntArrayRef size, const TensorOptions& o) const {
  return call_factory(ops::new_ones, o, *this, size);
}
Tensor Tensor::new_full(IntArrayRef size, const Scalar& value, const TensorOptions& o) const {
  return call_factory(ops::new_full, o, *this, size, value);
}

Tensor detail::over_memory(void* data, IntArrayRef sizes, OptionalIntArrayRef strides, int64_t storage_offset,
                           void (*deleter)(void*), void* context, const TensorOptions& o) {
  checked_numel(sizes);
  const DimVector given = strides ? DimVector(*strides) : contiguous_strides(sizes);
  RUSH_CHECK_VALUE(given.size() == sizes.size(), "from_blob: mismatch in length of strides and shape: ", given, " for ",
                   sizes);
  const bool backwards = std::any_of(given.begin(), given.end(), [](int64_t stride) { return stride < 0; });
  RUSH_CHECK_VALUE(!backwards, "from_blob: the strides ", given, " lead to before the memory");
  RUSH_CHECK_VALUE(storage_offset >= 0, "from_blob: the storage offset ", storage_offset, " is negative");
  const int64_t extent = storage_extent(sizes, given, storage_offset);
  const int64_t nbytes = multiply_sizes("from_blob", extent, element_size(o.dtype()));
  const Device device = o.device_opt().value_or(kCPU);  // where the memory is, not where new tensors go
  auto storage = make_intrusive<StorageImpl>(data, static_cast<size_t>(nbytes), device, deleter, context);
  auto impl = make_intrusive<TensorImpl>(std::move(storage), o.dtype(), device);
  impl->set_geometry(sizes, given, storage_offset);
  return finish_factory(Tensor(std::move(impl)), o);
}

Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& o) {
  return detail::over_memory(data, sizes, std::nullopt, 0, nullptr, data, o);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& o) {
  return detail::over_memory(data, sizes, strides, 0, nullptr, data, o);
}
Tensor from_blob(void* data, IntArrayRef sizes, void (*deleter)(void*), const TensorOptions& o) {
  return detail::over_memory(data, sizes, std::nullopt, 0, deleter, data, o);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, void (*deleter)(void*), const TensorOptions& o) {
  return detail::over_memory(data, sizes, strides, 0, deleter, data, o);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset, void (*deleter)(void*),
                 const TensorOptions& o) {
  return detail::over_memory(data, sizes, strides, storage_offset, deleter, data, o);
}

Tensor& Tensor::fill_(const Scalar& value) const { return ops::fill_(self(), value); }
Tensor& Tensor::fill_(const Tensor& value) const { return ops::fill_Tensor_(self(), value); }
Tensor& Tensor::zero_() const { return ops::zero_(self()); }

}  // namespace rush
