#include "core/ops/reduce/unique.h"

#include <limits>

#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/bitwise.h"
#include "core/ops/reduce/ordered.h"
#include "core/ops/register.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

using ops::TensorTriple;

static Tensor turned_bit(const Tensor& like) {
  return scalar_tensor(std::numeric_limits<int64_t>::min(), TensorOptions(kInt64).device(like.device()));
}
// Numbers of a dtype whose kernels there are, in the same order. Those without arithmetic are unsigned ones, which go
// into a wider integer, or, for 64 bits, are seen as signed ones with the highest bit turned.
static Tensor as_ordered(const Tensor& self) {
  if (has_arithmetic(self.scalar_type()) || is_floating_point(self.scalar_type())) return self;
  if (self.scalar_type() == kUInt64) return ops::bitwise_xor(seen_as(contiguous(self), kInt64), turned_bit(self));
  return to_dtype(self, self.scalar_type() == kUInt16 ? kInt32 : kInt64);
}
static Tensor from_ordered(const Tensor& ordered, ScalarType dtype) {
  if (dtype == kUInt64) return seen_as(ops::bitwise_xor(ordered, turned_bit(ordered)), dtype);
  return as_dtype(ordered, dtype);
}

static TensorTriple unique_rows(const char* op, const Tensor& self, int64_t n, int64_t width, bool sort,
                                bool needs_inverse) {
  RUSH_CHECK_NOT_IMPLEMENTED(!self.is_meta(), op,
                             ": the shape of the result depends on values, a meta tensor has none");
  check_ordered(op, self);
  const Tensor input = contiguous(as_ordered(self));
  Tensor rows, inverse, counts;
  const int64_t shape[] = {n, width};
  kernels::unique(self.device().type, rows, inverse, counts,
                  detail::make_view(input, shape, contiguous_strides(shape), input.storage_offset()), sort,
                  needs_inverse);
  return {from_ordered(rows, self.scalar_type()), inverse, counts};
}

static Tensor nothing(const Tensor& self) { return detail::empty_contiguous({0}, kInt64, self.device()); }

static TensorTriple unique_elements(const char* op, const Tensor& self, bool return_inverse, bool return_counts,
                                    bool sort) {
  auto [values, inverse, counts] = unique_rows(op, self, self.numel(), 1, sort, return_inverse);
  values.impl()->set_contiguous(values.numel());
  if (return_inverse) inverse.impl()->set_contiguous(self.sizes());
  return {values, return_inverse ? inverse : nothing(self), return_counts ? counts : nothing(self)};
}

// A view with dimension `from` moved to `to`.
static Tensor move_dim(const Tensor& self, int64_t from, int64_t to) {
  DimVector order = other_dims(self, from);
  order.insert(order.begin() + to, from);
  detail::Geometry geometry = geometry_of(self);
  geometry.permute(order);
  return view_of(self, geometry);
}

static TensorTriple unique_slices(const char* op, const Tensor& self, int64_t dim, bool sort) {
  dim = wrap_dim(dim, self.dim(), op);
  if (self.dim() == 0) return unique_elements(op, self, true, true, sort);
  int64_t width = 1;
  for (int64_t d = 0; d < self.dim(); ++d) width = multiply_sizes(op, width, d == dim ? 1 : self.sizes()[d]);
  RUSH_CHECK_VALUE(width > 0, op, ": slices of shape ", self.sizes(), " along dimension ", dim,
                   " have no elements to compare");
  const Tensor moved = move_dim(self, dim, 0);
  auto [rows, inverse, counts] = unique_rows(op, moved, self.sizes()[dim], width, sort, true);
  DimVector sizes(moved.sizes());
  sizes[0] = counts.numel();
  rows.impl()->set_contiguous(sizes);
  return {clone_contiguous(move_dim(rows, 0, dim)), inverse, counts};
}

static std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool, bool return_inverse) {
  const auto [values, inverse, counts] = unique_elements("unique", self, return_inverse, false, true);
  return {values, inverse};
}
static TensorTriple _unique2(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  return unique_elements("unique", self, return_inverse, return_counts, true);
}
static TensorTriple unique_dim(const Tensor& self, int64_t dim, bool, bool, bool) {
  return unique_slices("unique_dim", self, dim, true);
}
static TensorTriple unique_dim_consecutive(const Tensor& self, int64_t dim, bool, bool) {
  return unique_slices("unique_dim_consecutive", self, dim, false);
}
static TensorTriple unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                                       std::optional<int64_t> dim) {
  // Along the only dimension the flags count, along others both results are always there: so it is in PyTorch.
  if (dim && (*dim != 0 || self.dim() != 1)) return unique_slices("unique_consecutive", self, *dim, false);
  return unique_elements("unique_consecutive", self, return_inverse, return_counts, false);
}

}  // namespace native

void register_unique_ops(Registry& r) {
  r.native(ops::_unique, native::_unique);
  r.native(ops::_unique2, native::_unique2);
  r.native(ops::unique_dim, native::unique_dim);
  r.native(ops::unique_dim_consecutive, native::unique_dim_consecutive);
  r.native(ops::unique_consecutive, native::unique_consecutive);
}

}  // namespace rush
