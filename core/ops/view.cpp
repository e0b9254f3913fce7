#include "core/ops/view.h"

#include "core/dispatch/registry.h"
#include "core/ops/copy.h"
#include "core/ops/register.h"

namespace rush {

std::optional<DimVector> view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef shape) {
  DimVector result(shape.size(), 1);
  const bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  if (empty) return contiguous_strides(shape);
  if (sizes.empty()) return result;
  // Walks runs of dimensions that are one stretch of memory, and splits each over the new sizes.
  int64_t next = static_cast<int64_t>(shape.size()) - 1;
  int64_t base_stride = strides.back();
  int64_t run = 1, taken = 1;
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    run *= sizes[d];
    const bool ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != run * base_stride);
    if (!ends) continue;
    while (next >= 0 && (taken < run || shape[next] == 1)) {
      result[next] = taken * base_stride;
      taken *= shape[next];
      --next;
    }
    if (taken != run) return std::nullopt;
    if (d > 0) {
      base_stride = strides[d - 1];
      run = taken = 1;
    }
  }
  if (next != -1) return std::nullopt;
  return result;
}

DimVector infer_size(IntArrayRef shape, int64_t numel, const char* op) {
  DimVector result(shape);
  int64_t known = 1, unknown = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == -1) {
      RUSH_CHECK_VALUE(unknown < 0, op, ": only one size can be -1, got ", shape);
      unknown = static_cast<int64_t>(d);
    } else {
      RUSH_CHECK_VALUE(shape[d] >= 0, op, ": sizes must not be negative, got ", shape);
      RUSH_CHECK_VALUE(!__builtin_mul_overflow(known, shape[d], &known), op, ": sizes ", shape, " are too large");
    }
  }
  const bool fits = unknown < 0 ? known == numel : known != 0 && numel % known == 0;
  RUSH_CHECK_VALUE(fits, op, ": shape ", shape, " cannot hold ", numel, " elements");
  if (unknown >= 0) result[unknown] = numel / known;
  return result;
}

namespace native {

static Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> offset) {
  const int64_t start = offset.value_or(self.storage_offset());
  RUSH_CHECK_VALUE(size.size() == stride.size(), "as_strided: got ", size.size(), " sizes and ", stride.size(),
                   " strides");
  RUSH_CHECK_VALUE(start >= 0, "as_strided: storage offset ", start, " is negative");
  checked_numel(size);
  for (int64_t s : stride) RUSH_CHECK_VALUE(s >= 0, "as_strided: strides must not be negative, got ", stride);
  const int64_t extent = storage_extent(size, stride, start);
  const int64_t held = static_cast<int64_t>(self.storage()->nbytes()) / self.element_size();
  RUSH_CHECK_VALUE(extent <= held, "as_strided: sizes ", size, " with strides ", stride, " at offset ", start, " need ",
                   extent, " elements, the storage holds ", held);
  return detail::make_view(self, size, stride, start);
}

static Tensor view(const Tensor& self, IntArrayRef size) {
  const DimVector shape = infer_size(size, self.numel(), "view");
  const auto strides = view_strides(self.sizes(), self.strides(), shape);
  RUSH_CHECK_VALUE(strides, "view: sizes ", self.sizes(), " with strides ", self.strides(), " cannot be seen as ",
                   shape, " without a copy; use reshape");
  return detail::make_view(self, shape, *strides, self.storage_offset());
}

static Tensor reshape(const Tensor& self, IntArrayRef size) {
  const DimVector shape = infer_size(size, self.numel(), "reshape");
  if (view_strides(self.sizes(), self.strides(), shape)) return ops::view(self, shape);
  return ops::view(ops::clone(self, MemoryFormat::Contiguous), shape);
}

Tensor expand_as_strided(const Tensor& self, IntArrayRef sizes) {
  DimVector strides(sizes.size(), 0);
  const size_t lead = sizes.size() - self.sizes().size();
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    strides[lead + d] = self.sizes()[d] == 1 && sizes[lead + d] != 1 ? 0 : self.strides()[d];
  }
  return detail::make_view(self, sizes, strides, self.storage_offset());
}

static Tensor expand(const Tensor& self, IntArrayRef size, bool /*implicit*/) {
  RUSH_CHECK_VALUE(size.size() >= self.sizes().size(), "expand: cannot expand ", self.sizes(), " to fewer dimensions ",
                   size);
  DimVector sizes(size);
  const size_t lead = size.size() - self.sizes().size();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d < lead) {
      RUSH_CHECK_VALUE(sizes[d] >= 0, "expand: new dimension ", d, " needs a size, got ", sizes[d]);
      continue;
    }
    const int64_t own = self.sizes()[d - lead];
    if (sizes[d] == -1) sizes[d] = own;
    RUSH_CHECK_VALUE(sizes[d] == own || (own == 1 && sizes[d] >= 0), "expand: cannot expand ", self.sizes(), " to ",
                     size);
  }
  return expand_as_strided(self, sizes);
}

static Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  RUSH_CHECK_INDEX(self.dim() > 0, "select: a 0-dimensional tensor has no dimension to select from");
  dim = wrap_dim(dim, self.dim(), "select");
  const int64_t size = self.sizes()[dim];
  RUSH_CHECK_INDEX(index >= -size && index < size, "select: index ", index, " is outside dimension ", dim, " of size ",
                   size);
  if (index < 0) index += size;
  DimVector sizes(self.sizes()), strides(self.strides());
  sizes.erase(sizes.begin() + dim);
  strides.erase(strides.begin() + dim);
  return detail::make_view(self, sizes, strides, self.storage_offset() + index * self.strides()[dim]);
}

static Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  dim0 = wrap_dim(dim0, self.dim(), "transpose");
  dim1 = wrap_dim(dim1, self.dim(), "transpose");
  DimVector sizes(self.sizes()), strides(self.strides());
  if (self.dim() > 0) {
    std::swap(sizes[dim0], sizes[dim1]);
    std::swap(strides[dim0], strides[dim1]);
  }
  return detail::make_view(self, sizes, strides, self.storage_offset());
}

static Tensor view_as_real(const Tensor& self) {
  RUSH_CHECK_TYPE(self.is_complex(), "view_as_real: expected a complex tensor, got ", self.scalar_type());
  DimVector sizes(self.sizes()), strides(self.strides());
  for (int64_t& stride : strides) stride *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return detail::make_view_as(self, to_real(self.scalar_type()), sizes, strides, self.storage_offset() * 2);
}

static Tensor real(const Tensor& self) { return self.is_complex() ? ops::view_as_real(self).select(-1, 0) : self; }

}  // namespace native

void register_view_ops(Registry& r) {
  r.native(ops::as_strided, native::as_strided);
  r.native(ops::view, native::view);
  r.composite(ops::reshape, native::reshape);
  r.native(ops::expand, native::expand);
  r.native(ops::select, native::select);
  r.native(ops::transpose, native::transpose);
  r.native(ops::view_as_real, native::view_as_real);
  r.composite(ops::real, native::real);
}

Tensor Tensor::as_strided(IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) const {
  return ops::as_strided(*this, size, stride, storage_offset);
}
Tensor Tensor::view(IntArrayRef size) const { return ops::view(*this, size); }
Tensor Tensor::reshape(IntArrayRef shape) const { return ops::reshape(*this, shape); }
Tensor Tensor::expand(IntArrayRef size, bool implicit) const { return ops::expand(*this, size, implicit); }
Tensor Tensor::select(int64_t dim, int64_t index) const { return ops::select(*this, dim, index); }
Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const { return ops::transpose(*this, dim0, dim1); }
Tensor Tensor::t() const {
  RUSH_CHECK_VALUE(dim() <= 2, "t: expected at most 2 dimensions, got ", dim());
  return dim() < 2 ? transpose(0, dim() - 1) : transpose(0, 1);
}

}  // namespace rush
