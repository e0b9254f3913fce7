#include "core/ops/index/masked.h"

#include "core/ops/index/index.h"
#include "core/ops/register.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"

namespace rush {

namespace native {

Tensor nonzero(const Tensor& self) {
  RUSH_CHECK_NOT_IMPLEMENTED(!self.is_meta(), "nonzero: the result's size depends on values that a meta tensor lacks");
  Tensor out;
  kernels::nonzero(self.device().type, contiguous(self), out);
  return out;
}

// A tensor without dimensions counts as one of a single element.
static std::vector<Tensor> nonzero_numpy(const Tensor& self) {
  const Tensor positions = native::nonzero(self.dim() == 0 ? expand_as_strided(self, 1) : self);
  std::vector<Tensor> columns;
  for (int64_t d = 0; d < positions.size(1); ++d) {
    columns.push_back(detail::make_view(positions, positions.size(0), positions.stride(0), d));
  }
  return columns;
}

static void check_mask(const Tensor& mask, const char* op) {
  RUSH_CHECK_TYPE(mask.scalar_type() == kBool, op, ": expected a bool mask, got ", mask.scalar_type());
}

// Writes into `out`; allocates it when it is undefined.
static Tensor run_masked_fill(const char* op, const Tensor& out, const Tensor& self, const Tensor& mask,
                              const Tensor& value) {
  check_mask(mask, op);
  RUSH_CHECK_VALUE(value.dim() == 0, op, ": expected a value without dimensions, got shape ", value.sizes());
  RUSH_CHECK_TYPE(!value.is_complex() || self.is_complex(), op, ": a complex value does not fit a tensor of ",
                  self.scalar_type());
  const ScalarType dtype = self.scalar_type(), moved = moved_as(dtype);
  const Tensor inputs[] = {seen_as(self, moved), mask, seen_as(number_as(value, dtype), moved)};
  const Tensor target = out.defined() ? seen_as(out, moved) : out;
  auto it = TensorIterator::pointwise(op, target, inputs, Promotion::None, moved);
  kernels::masked_fill(it.device_type(), it);
  return seen_as(it.output(), dtype);
}

static Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  return run_masked_fill("masked_fill", Tensor(), self, mask, value);
}
static Tensor masked_fill_Scalar(const Tensor& self, const Tensor& mask, const Scalar& value) {
  return run_masked_fill("masked_fill", Tensor(), self, mask, detail::wrapped_number(value));
}
Tensor& masked_fill_(Tensor& self, const Tensor& mask, const Tensor& value) {
  run_masked_fill("masked_fill_", self, self, mask, value);
  return self;
}
static Tensor& masked_fill__Scalar(Tensor& self, const Tensor& mask, const Scalar& value) {
  run_masked_fill("masked_fill_", self, self, mask, detail::wrapped_number(value));
  return self;
}

// `t` broadcast to `sizes`, row-major.
static Tensor contiguous_as(const Tensor& t, IntArrayRef sizes) { return contiguous(expand_as_strided(t, sizes)); }

static Tensor masked_select(const Tensor& self, const Tensor& mask) {
  check_mask(mask, "masked_select");
  RUSH_CHECK_VALUE(self.device() == mask.device(), "masked_select: tensors are on ", self.device(), " and on ",
                   mask.device());
  RUSH_CHECK_NOT_IMPLEMENTED(!self.is_meta(),
                             "masked_select: the result's size depends on values that a meta tensor lacks");
  const DimVector shape = broadcast_shapes(mask.sizes(), self.sizes(), "masked_select");
  Tensor out;
  kernels::masked_select(self.device().type, contiguous_as(self, shape), contiguous_as(mask, shape), out);
  return out;
}

static void check_masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source, const char* op) {
  check_mask(mask, op);
  RUSH_CHECK_TYPE(self.scalar_type() == source.scalar_type(), op, ": expected a source of ", self.scalar_type(),
                  ", got ", source.scalar_type());
  RUSH_CHECK_VALUE(self.device() == mask.device() && self.device() == source.device(), op, ": tensors are on ",
                   self.device(), ", ", mask.device(), " and ", source.device());
}

static Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  check_masked_scatter(self, mask, source, "masked_scatter");
  const DimVector shape = broadcast_shapes(self.sizes(), mask.sizes(), "masked_scatter");
  Tensor out = clone_contiguous(expand_as_strided(self, shape));
  kernels::masked_scatter(self.device().type, out, contiguous_as(mask, shape), contiguous(source));
  return out;
}

static Tensor& masked_scatter_(Tensor& self, const Tensor& mask, const Tensor& source) {
  check_masked_scatter(self, mask, source, "masked_scatter_");
  check_writable(self, "masked_scatter_");
  RUSH_CHECK_VALUE(broadcast_shapes(self.sizes(), mask.sizes(), "masked_scatter_") == DimVector(self.sizes()),
                   "masked_scatter_: a mask of shape ", mask.sizes(), " does not broadcast to ", self.sizes());
  const Tensor out = self.is_contiguous() ? self : clone_contiguous(self);
  const Tensor from = source.is_alias_of(self) ? clone_contiguous(source) : contiguous(source);
  kernels::masked_scatter(self.device().type, out, contiguous_as(mask, self.sizes()), from);
  return out.is_same(self) ? self : copy_(self, out, false);
}

}  // namespace native

void register_masked_ops(Registry& r) {
  r.native(ops::nonzero, native::nonzero);
  r.native(ops::argwhere, native::nonzero);
  r.native(ops::nonzero_numpy, native::nonzero_numpy);
  r.native(ops::where_nonzero, native::nonzero_numpy);
  r.native(ops::masked_fill, native::masked_fill);
  r.native(ops::masked_fill_Scalar, native::masked_fill_Scalar);
  r.native(ops::masked_fill_, native::masked_fill_);
  r.native(ops::masked_fill__Scalar, native::masked_fill__Scalar);
  r.native(ops::masked_select, native::masked_select);
  r.native(ops::masked_scatter, native::masked_scatter);
  r.native(ops::masked_scatter_, native::masked_scatter_);
}

Tensor Tensor::nonzero() const { return ops::nonzero(*this); }
Tensor Tensor::argwhere() const { return ops::argwhere(*this); }
std::vector<Tensor> Tensor::nonzero_numpy() const { return ops::nonzero_numpy(*this); }
Tensor Tensor::masked_fill(const Tensor& mask, const Scalar& value) const {
  return ops::masked_fill_Scalar(*this, mask, value);
}
Tensor Tensor::masked_fill(const Tensor& mask, const Tensor& value) const {
  return ops::masked_fill(*this, mask, value);
}
Tensor& Tensor::masked_fill_(const Tensor& mask, const Scalar& value) const {
  return ops::masked_fill__Scalar(self(), mask, value);
}
Tensor& Tensor::masked_fill_(const Tensor& mask, const Tensor& value) const {
  return ops::masked_fill_(self(), mask, value);
}
Tensor Tensor::masked_select(const Tensor& mask) const { return ops::masked_select(*this, mask); }
Tensor Tensor::masked_scatter(const Tensor& mask, const Tensor& source) const {
  return ops::masked_scatter(*this, mask, source);
}
Tensor& Tensor::masked_scatter_(const Tensor& mask, const Tensor& source) const {
  return ops::masked_scatter_(self(), mask, source);
}

}  // namespace rush
