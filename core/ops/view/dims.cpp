// Views with the dimensions in another order, or with dimensions of size one added or dropped.
#include "core/integer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/register.h"
#include "core/ops/view/view.h"

namespace rush {

namespace native {

static Tensor permute(const Tensor& self, IntArrayRef dims) {
  RUSH_CHECK_VALUE(dims.size() == self.sizes().size(),
                   "permute: number of dimensions in the tensor input does not match the "
                   "length of the desired ordering of dimensions: ",
                   self.dim(), " against ", dims.size(), " in ", dims);
  detail::Geometry geometry = geometry_of(self);
  geometry.permute(wrap_dims(dims, self.dim(), "permute"));
  return view_of(self, geometry);
}

static Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  dim0 = wrap_dim(dim0, self.dim(), "transpose");
  dim1 = wrap_dim(dim1, self.dim(), "transpose");
  detail::Geometry geometry = geometry_of(self);
  if (self.dim() > 0) geometry.transpose(dim0, dim1);
  return view_of(self, geometry);
}

static Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  RUSH_CHECK_VALUE(source.size() == destination.size(), "movedim: source ", source, " and destination ", destination,
                   " differ in length");
  const DimVector from = wrap_dims(source, self.dim(), "movedim"), to = wrap_dims(destination, self.dim(), "movedim");
  if (self.dim() == 0) return ops::alias(self);
  // The moved dimensions take their places, the others fill the rest in order.
  DimVector order(self.sizes().size(), -1);
  for (size_t i = 0; i < from.size(); ++i) order[to[i]] = from[i];
  const DimVector others = other_dims(self, from);
  const int64_t* next = others.begin();
  for (int64_t& place : order) {
    if (place < 0) place = *next++;
  }
  return ops::permute(self, order);
}

static Tensor movedim_int(const Tensor& self, int64_t source, int64_t destination) {
  return native::movedim(self, IntArrayRef(source), IntArrayRef(destination));
}

static Tensor t(const Tensor& self) {
  RUSH_CHECK_VALUE(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.dim(),
                   "D, of shape ", self.sizes(), "; use transpose, or mT for matrices in batches");
  return ops::transpose(self, 0, self.dim() < 2 ? 0 : 1);
}

static Tensor mT(const Tensor& self) {
  RUSH_CHECK_VALUE(self.dim() >= 2, "mT: expected matrices, got sizes ", self.sizes());
  return ops::transpose(self, -2, -1);
}

static Tensor numpy_T(const Tensor& self) {
  DimVector order;
  for (int64_t d = self.dim(); d-- > 0;) order.push_back(d);
  return ops::permute(self, order);
}

// Drops the dimensions that `dropped` names and whose size is one.
static Tensor without_dims(const Tensor& self, IntArrayRef dropped) {
  DimVector sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool named = std::find(dropped.begin(), dropped.end(), d) != dropped.end();
    if (named && self.sizes()[d] == 1) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  }
  return detail::make_view(self, sizes, strides, self.storage_offset());
}

static Tensor squeeze(const Tensor& self) { return without_dims(self, wrap_dims({}, self.dim(), "squeeze", true)); }

static Tensor squeeze_dim(const Tensor& self, int64_t dim) {
  return without_dims(self, wrap_dim(dim, self.dim(), "squeeze"));
}

static Tensor squeeze_dims(const Tensor& self, IntArrayRef dim) {
  return without_dims(self, wrap_dims(dim, self.dim(), "squeeze"));
}

static Tensor unsqueeze(const Tensor& self, int64_t dim) {
  dim = wrap_dim(dim, self.dim() + 1, "unsqueeze");
  DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t stride = dim < self.dim() ? wrap_mul(sizes[dim], strides[dim]) : 1;
  sizes.insert(sizes.begin() + dim, 1);
  strides.insert(strides.begin() + dim, stride);
  return detail::make_view(self, sizes, strides, self.storage_offset());
}

static Tensor atleast_1d(const Tensor& self) { return self.dim() == 0 ? self.reshape({1}) : self; }

static Tensor atleast_2d(const Tensor& self) {
  if (self.dim() == 0) return self.reshape({1, 1});
  return self.dim() == 1 ? self.unsqueeze(0) : self;
}

static Tensor atleast_3d(const Tensor& self) {
  if (self.dim() == 0) return self.reshape({1, 1, 1});
  if (self.dim() == 1) return self.unsqueeze(0).unsqueeze(-1);
  return self.dim() == 2 ? self.unsqueeze(-1) : self;
}

}  // namespace native

void register_dims_ops(Registry& r) {
  r.native(ops::transpose, native::transpose);
  r.composite(ops::swapaxes, native::same_as<ops::transpose>);
  r.composite(ops::swapdims, native::same_as<ops::transpose>);
  r.native(ops::permute, native::permute);
  r.composite(ops::movedim, native::movedim);
  r.composite(ops::movedim_int, native::movedim_int);
  r.composite(ops::moveaxis, native::movedim);
  r.composite(ops::moveaxis_int, native::movedim_int);
  r.composite(ops::t, native::t);
  r.composite(ops::mT, native::mT);
  r.composite(ops::numpy_T, native::numpy_T);
  r.native(ops::squeeze, native::squeeze);
  r.native(ops::squeeze_dim, native::squeeze_dim);
  r.native(ops::squeeze_dims, native::squeeze_dims);
  r.native(ops::unsqueeze, native::unsqueeze);
  r.composite(ops::atleast_1d, native::atleast_1d);
  r.composite(ops::atleast_2d, native::atleast_2d);
  r.composite(ops::atleast_3d, native::atleast_3d);
}

Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const { return ops::transpose(*this, dim0, dim1); }
Tensor Tensor::swapaxes(int64_t axis0, int64_t axis1) const { return ops::swapaxes(*this, axis0, axis1); }
Tensor Tensor::swapdims(int64_t dim0, int64_t dim1) const { return ops::swapdims(*this, dim0, dim1); }
Tensor Tensor::permute(IntArrayRef dims) const { return ops::permute(*this, dims); }
Tensor Tensor::movedim(IntArrayRef source, IntArrayRef destination) const {
  return ops::movedim(*this, source, destination);
}
Tensor Tensor::movedim(int64_t source, int64_t destination) const {
  return ops::movedim_int(*this, source, destination);
}
Tensor Tensor::moveaxis(IntArrayRef source, IntArrayRef destination) const {
  return ops::moveaxis(*this, source, destination);
}
Tensor Tensor::moveaxis(int64_t source, int64_t destination) const {
  return ops::moveaxis_int(*this, source, destination);
}
Tensor Tensor::t() const { return ops::t(*this); }
Tensor Tensor::mT() const { return ops::mT(*this); }
Tensor Tensor::mH() const { return ops::mT(*this).conj(); }
Tensor Tensor::matrix_H() const {
  RUSH_CHECK_VALUE(dim() == 2, "matrix_H: expected one matrix, got ", dim(), " dimensions: mH takes batches");
  return mH();
}
Tensor Tensor::adjoint() const { return mH(); }
Tensor Tensor::numpy_T() const { return ops::numpy_T(*this); }
Tensor Tensor::squeeze() const { return ops::squeeze(*this); }
Tensor Tensor::squeeze(int64_t dim) const { return ops::squeeze_dim(*this, dim); }
Tensor Tensor::squeeze(IntArrayRef dim) const { return ops::squeeze_dims(*this, dim); }
Tensor Tensor::squeeze(std::initializer_list<int64_t> dim) const { return ops::squeeze_dims(*this, dim); }
Tensor Tensor::unsqueeze(int64_t dim) const { return ops::unsqueeze(*this, dim); }

}  // namespace rush
