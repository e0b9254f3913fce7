#include "core/ops/view/view.h"

#include <algorithm>

#include "core/integer.h"
#include "core/iterator/output_checks.h"
#include "core/ops/register.h"
#include "core/ops/view/copy.h"
#include "core/print/bracketed.h"
#include "core/size_arithmetic.h"

namespace rush {

bool may_overlap(IntArrayRef sizes, IntArrayRef strides) {
  DimVector order;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] > 1) order.push_back(static_cast<int64_t>(d));
  }
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  // Each stride must step over all that the smaller ones reach.
  int64_t reach = 0;
  for (int64_t d : order) {
    if (strides[d] <= reach) return true;
    reach += (sizes[d] - 1) * strides[d];
  }
  return false;
}

DimVector infer_size(IntArrayRef shape, int64_t numel, const char* op) {
  DimVector result(shape);
  int64_t known = 1, unknown = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == -1) {
      RUSH_CHECK_VALUE(unknown < 0, op, ": only one dimension can be inferred with -1, got ", shape);
      unknown = static_cast<int64_t>(d);
    } else {
      RUSH_CHECK_VALUE(shape[d] >= 0, op, ": sizes must be non-negative, got ", shape);
      known = multiply_sizes(op, known, shape[d]);
    }
  }
  const bool fits = unknown < 0 ? known == numel : known != 0 && numel % known == 0;
  RUSH_CHECK_VALUE(fits, op, ": shape '", bracketed(shape), "' is invalid for input of size ", numel);
  if (unknown >= 0) result[unknown] = numel / known;
  return result;
}

namespace native {

DimVector other_dims(const Tensor& t, IntArrayRef taken) {
  DimVector others;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (std::find(taken.begin(), taken.end(), d) == taken.end()) others.push_back(d);
  }
  return others;
}

static Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> offset) {
  const int64_t start = offset.value_or(self.storage_offset());
  RUSH_CHECK_VALUE(size.size() == stride.size(), "as_strided: got ", size.size(), " sizes and ", stride.size(),
                   " strides");
  RUSH_CHECK_VALUE(start >= 0, "as_strided: storage offset ", start, " is negative");
  checked_numel(size);
  for (int64_t s : stride) RUSH_CHECK_VALUE(s >= 0, "as_strided: strides must be non-negative, got ", stride);
  const int64_t extent = storage_extent(size, stride, start);
  const int64_t held = static_cast<int64_t>(self.storage()->nbytes()) / self.element_size();
  RUSH_CHECK_VALUE(extent <= held, "as_strided: sizes ", size, " with strides ", stride, " at offset ", start, " need ",
                   extent, " elements, the storage holds ", held);
  return detail::make_view(self, size, stride, start);
}

static Tensor view(const Tensor& self, IntArrayRef size) {
  const DimVector shape = infer_size(size, self.numel(), "view");
  const auto strides = view_strides(self.sizes(), self.strides(), shape);
  RUSH_CHECK_VALUE(strides, "view: view size is not compatible with input tensor's size and stride: ", self.sizes(),
                   " with strides ", self.strides(), " cannot be seen as ", shape, " without a copy; use reshape");
  return detail::make_view(self, shape, *strides, self.storage_offset());
}

static Tensor reshape(const Tensor& self, IntArrayRef size) {
  const DimVector shape = infer_size(size, self.numel(), "reshape");
  if (view_strides(self.sizes(), self.strides(), shape)) return ops::view(self, shape);
  return ops::view(ops::clone(self, MemoryFormat::Contiguous), shape);
}

Tensor expand_as_strided(const Tensor& self, IntArrayRef sizes) {
  detail::Geometry geometry = geometry_of(self);
  geometry.expand(sizes);
  return view_of(self, geometry);
}

static Tensor expand(const Tensor& self, IntArrayRef size, bool /*implicit*/) {
  DimVector sizes(size);
  const size_t lead = size.size() - std::min(size.size(), self.sizes().size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    RUSH_CHECK_VALUE(d >= lead || sizes[d] >= 0, "expand: The expanded size of the tensor (", sizes[d],
                     ") isn't allowed in a leading, non-existing dimension ", d, ", which needs a size");
    if (d >= lead && sizes[d] == -1) sizes[d] = self.sizes()[d - lead];
  }
  check_expands("expand", self.sizes(), sizes);
  return expand_as_strided(self, sizes);
}

static Tensor expand_as(const Tensor& self, const Tensor& other) { return ops::expand(self, other.sizes(), false); }
static Tensor broadcast_to(const Tensor& self, IntArrayRef size) { return ops::expand(self, size, false); }
static Tensor view_as(const Tensor& self, const Tensor& other) { return ops::view(self, other.sizes()); }
static Tensor reshape_as(const Tensor& self, const Tensor& other) { return ops::reshape(self, other.sizes()); }

static Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t first = wrap_dim(start_dim, self.dim(), "flatten"), last = wrap_dim(end_dim, self.dim(), "flatten");
  RUSH_CHECK_VALUE(first <= last, "flatten: start_dim ", start_dim, " lies behind end_dim ", end_dim);
  if (self.dim() == 0) return ops::reshape(self, {1});
  if (first == last) return self;
  DimVector shape;
  int64_t merged = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const int64_t size = self.sizes()[d];
    if (d < first || d > last) shape.push_back(size);
    if (d >= first && d <= last) merged = multiply_sizes("flatten", merged, size);
    if (d == last) shape.push_back(merged);
  }
  return ops::reshape(self, shape);
}

static Tensor ravel(const Tensor& self) { return self.contiguous().view({self.numel()}); }

static Tensor unflatten(const Tensor& self, int64_t dim, IntArrayRef sizes) {
  RUSH_CHECK_INDEX(self.dim() > 0, "unflatten: a 0-dimensional tensor has no dimension to split");
  RUSH_CHECK_VALUE(!sizes.empty(), "unflatten: sizes must not be empty");
  dim = wrap_dim(dim, self.dim(), "unflatten");
  const DimVector inner = infer_size(sizes, self.sizes()[dim], "unflatten");
  DimVector shape(self.sizes().slice(0, dim));
  for (int64_t size : inner) shape.push_back(size);
  for (int64_t size : self.sizes().slice(dim + 1)) shape.push_back(size);
  return ops::view(self, shape);
}

static Tensor view_as_real(const Tensor& self) {
  RUSH_CHECK_TYPE(self.is_complex(), "view_as_real: expected a complex tensor, got ", self.scalar_type());
  DimVector sizes(self.sizes()), strides(self.strides());
  // What is out of range here leads to no element: the tensor has none.
  for (int64_t& stride : strides) stride = wrap_mul<int64_t>(stride, 2);
  sizes.push_back(2);
  strides.push_back(1);
  return detail::make_view_as(self, to_real(self.scalar_type()), sizes, strides,
                              wrap_mul<int64_t>(self.storage_offset(), 2));
}

static Tensor view_as_complex(const Tensor& self) {
  const ScalarType dtype = self.scalar_type();
  RUSH_CHECK_TYPE(dtype == kFloat32 || dtype == kFloat64, "view_as_complex: expected float32 or float64, got ", dtype);
  RUSH_CHECK_VALUE(self.dim() > 0 && self.sizes().back() == 2,
                   "view_as_complex: the last dimension must have size 2, got sizes ", self.sizes());
  RUSH_CHECK_VALUE(self.strides().back() == 1, "view_as_complex: the last dimension must have stride 1, got strides ",
                   self.strides());
  RUSH_CHECK_VALUE(self.storage_offset() % 2 == 0, "view_as_complex: storage offset ", self.storage_offset(),
                   " is odd");
  const size_t dims = self.sizes().size() - 1;
  DimVector strides(self.strides().slice(0, dims));
  for (size_t d = 0; d < dims; ++d) {
    RUSH_CHECK_VALUE(strides[d] % 2 == 0, "view_as_complex: all strides but the last must be even, got ",
                     self.strides());
    strides[d] /= 2;
  }
  return detail::make_view_as(self, to_complex(dtype), self.sizes().slice(0, dims), strides, self.storage_offset() / 2);
}

static Tensor real(const Tensor& self) { return self.is_complex() ? ops::view_as_real(self).select(-1, 0) : self; }

// The same bytes as elements of another type: the last dimension grows or shrinks with the element's size. Autograd
// does not follow it.
Tensor view_dtype(const Tensor& self, ScalarType dtype) {
  DimVector sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.storage_offset();
  const int64_t from = self.element_size(), to = element_size(dtype);
  if (from != to) {
    RUSH_CHECK_VALUE(self.dim() > 0 && strides.back() == 1, "view: seeing ", self.scalar_type(), " as ", dtype,
                     " needs a last dimension of stride 1, got sizes ", self.sizes(), " and strides ", self.strides());
    const auto rescale = [&](int64_t value) {
      const int64_t bytes = multiply_sizes("view", value, from);
      RUSH_CHECK_VALUE(bytes % to == 0, "view: sizes ", self.sizes(), ", strides ", self.strides(), " and offset ",
                       self.storage_offset(), " of ", self.scalar_type(), " do not divide into ", dtype);
      return bytes / to;
    };
    sizes.back() = rescale(sizes.back());
    offset = rescale(offset);
    for (size_t d = 0; d + 1 < strides.size(); ++d) strides[d] = rescale(strides[d]);
  }
  auto impl = make_intrusive<TensorImpl>(self.storage(), dtype, self.device());
  impl->set_geometry(sizes, strides, offset);
  return Tensor(std::move(impl));
}

static Tensor alias(const Tensor& self) {
  return detail::make_view(self, self.sizes(), self.strides(), self.storage_offset());
}

}  // namespace native

void register_view_ops(Registry& r) {
  r.native(ops::as_strided, native::as_strided);
  r.native(ops::view, native::view);
  r.native(ops::view_dtype, native::view_dtype);
  r.composite(ops::view_as, native::view_as);
  r.composite(ops::reshape, native::reshape);
  r.composite(ops::reshape_as, native::reshape_as);
  r.composite(ops::flatten, native::flatten);
  r.composite(ops::ravel, native::ravel);
  r.composite(ops::unflatten, native::unflatten);
  r.native(ops::expand, native::expand);
  r.composite(ops::expand_as, native::expand_as);
  r.composite(ops::broadcast_to, native::broadcast_to);
  r.native(ops::view_as_real, native::view_as_real);
  r.native(ops::view_as_complex, native::view_as_complex);
  r.composite(ops::real, native::real);
  r.native(ops::alias, native::alias);
  r.native(ops::detach, detail::make_alias);
}

Tensor Tensor::as_strided(IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) const {
  return ops::as_strided(*this, size, stride, storage_offset);
}
Tensor Tensor::view(IntArrayRef size) const { return ops::view(*this, size); }
Tensor Tensor::view(ScalarType dtype) const { return ops::view_dtype(*this, dtype); }
Tensor Tensor::view_as(const Tensor& other) const { return ops::view_as(*this, other); }
Tensor Tensor::reshape(IntArrayRef shape) const { return ops::reshape(*this, shape); }
Tensor Tensor::reshape_as(const Tensor& other) const { return ops::reshape_as(*this, other); }
Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const { return ops::flatten(*this, start_dim, end_dim); }
Tensor Tensor::ravel() const { return ops::ravel(*this); }
Tensor Tensor::unflatten(int64_t dim, IntArrayRef sizes) const { return ops::unflatten(*this, dim, sizes); }
Tensor Tensor::expand(IntArrayRef size, bool implicit) const { return ops::expand(*this, size, implicit); }
Tensor Tensor::expand_as(const Tensor& other) const { return ops::expand_as(*this, other); }
Tensor Tensor::broadcast_to(IntArrayRef size) const { return ops::broadcast_to(*this, size); }
Tensor Tensor::alias() const { return ops::alias(*this); }

}  // namespace rush
