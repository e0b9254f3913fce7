#include "core/ops/view/triangular.h"

#include <algorithm>

#include "core/ops/register.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

template <bool upper>
constexpr const char* triangle_name = upper ? "triu" : "tril";

template <bool upper>
static Tensor triangle(const Tensor& self, int64_t diagonal) {
  RUSH_CHECK_VALUE(self.dim() >= 2, triangle_name<upper>, ": expected matrices, got sizes ", self.sizes());
  const Tensor out = detail::empty_format(self.sizes(), self.scalar_type(), self.device(), MemoryFormat::Contiguous);
  kernels::triangle(self.device().type, out, self, diagonal, upper);
  return out;
}

template <bool upper>
static Tensor& triangle_(Tensor& self, int64_t diagonal) {
  RUSH_CHECK_VALUE(self.dim() >= 2, triangle_name<upper>, "_: expected matrices, got sizes ", self.sizes());
  RUSH_CHECK_VALUE(!may_overlap(self.sizes(), self.strides()), triangle_name<upper>,
                   "_: several elements of the tensor share memory; clone it first");
  kernels::triangle(self.device().type, self, self, diagonal, upper);
  return self;
}

// Elements of the first `rows` rows with j - i <= offset.
static int64_t lower_count(int64_t rows, int64_t columns, int64_t offset) {
  if (rows == 0 || columns == 0) return 0;
  offset = std::clamp(offset, -rows, columns - 1);  // beyond, nothing changes, and sums would overflow
  // Row i has i + offset + 1 of them; rows before `first` have none, from `full` on all.
  const int64_t first = std::clamp<int64_t>(-offset - 1, 0, rows),
                full = columns - rows > offset ? rows : columns - 1 - offset;
  const int64_t n = full - first, least = first + offset + 1;
  return n * least + n * (n - 1) / 2 + (rows - full) * columns;
}

template <bool upper>
static Tensor triangle_indices(int64_t rows, int64_t columns, int64_t offset, std::optional<ScalarType> dtype,
                               std::optional<Layout> /*layout*/, std::optional<Device> device,
                               std::optional<bool> /*pin_memory*/) {
  RUSH_CHECK_VALUE(rows >= 0 && columns >= 0, triangle_name<upper>, "_indices: sizes must be non-negative, got (", rows,
                   ", ", columns, ")");
  const int64_t all = checked_numel({rows, columns});
  offset = std::clamp(offset, -rows, columns);  // beyond, all diagonals are alike
  const int64_t count = upper ? all - lower_count(rows, columns, offset - 1) : lower_count(rows, columns, offset);
  const Tensor out =
      detail::empty_contiguous({2, count}, dtype.value_or(kInt64), device.value_or(get_default_device()));
  kernels::triangle_indices(out.device().type, out, columns, offset, upper);
  return out;
}

static Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  RUSH_CHECK_VALUE(self.dim() > 0, "diag_embed: expected at least one dimension");
  const int64_t first = wrap_dim(dim1, self.dim() + 1, "diag_embed");
  const int64_t second = wrap_dim(dim2, self.dim() + 1, "diag_embed");
  RUSH_CHECK_VALUE(first != second, "diag_embed: needs two different dimensions, got ", dim1, " and ", dim2);
  RUSH_CHECK_VALUE(offset > INT64_MIN, "diag_embed: offset ", offset, " is too large");
  const int64_t length = add_sizes("diag_embed", self.sizes().back(), std::abs(offset));
  DimVector sizes(self.sizes().slice(0, self.sizes().size() - 1));
  sizes.insert(sizes.begin() + std::min(first, second), length);
  sizes.insert(sizes.begin() + std::max(first, second), length);
  return ops::diagonal_backward(self, sizes, offset, first, second);
}

static Tensor diag(const Tensor& self, int64_t diagonal) {
  RUSH_CHECK_VALUE(self.dim() == 1 || self.dim() == 2, "diag: expected a vector or a matrix, got sizes ", self.sizes());
  if (self.dim() == 1) return ops::diag_embed(self, diagonal, 0, 1);
  return ops::diagonal(self, diagonal, 0, 1).clone();
}

static Tensor diagflat(const Tensor& self, int64_t offset) {
  return ops::diag_embed(self.reshape({self.numel()}), offset, 0, 1);
}

}  // namespace native

void register_triangular_ops(Registry& r) {
  r.native(ops::tril, native::triangle<false>);
  r.native(ops::triu, native::triangle<true>);
  r.native(ops::tril_, native::triangle_<false>);
  r.native(ops::triu_, native::triangle_<true>);
  r.native(ops::tril_indices, native::triangle_indices<false>);
  r.native(ops::triu_indices, native::triangle_indices<true>);
  r.composite(ops::diag_embed, native::diag_embed);
  r.composite(ops::diag, native::diag);
  r.composite(ops::diagflat, native::diagflat);
}

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& o) {
  return ops::tril_indices(row, col, offset, o.dtype_opt(), o.layout_opt(), o.device_opt(), o.pinned_memory_opt());
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& o) {
  return ops::triu_indices(row, col, offset, o.dtype_opt(), o.layout_opt(), o.device_opt(), o.pinned_memory_opt());
}

Tensor Tensor::tril(int64_t diagonal) const { return ops::tril(*this, diagonal); }
Tensor Tensor::triu(int64_t diagonal) const { return ops::triu(*this, diagonal); }
Tensor& Tensor::tril_(int64_t diagonal) const { return ops::tril_(self(), diagonal); }
Tensor& Tensor::triu_(int64_t diagonal) const { return ops::triu_(self(), diagonal); }
Tensor Tensor::diag(int64_t diagonal) const { return ops::diag(*this, diagonal); }
Tensor Tensor::diagflat(int64_t offset) const { return ops::diagflat(*this, offset); }
Tensor Tensor::diag_embed(int64_t offset, int64_t dim1, int64_t dim2) const {
  return ops::diag_embed(*this, offset, dim1, dim2);
}

}  // namespace rush
