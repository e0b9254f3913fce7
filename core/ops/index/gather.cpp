#include "core/ops/index/gather.h"

#include <algorithm>
#include <limits>

#include "core/ops/basic.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

namespace {

// What an index points into. An index that is the same at all positions outside `dim`, as an expanded one is, points at
// slices: then `view` is one of them, and there is an offset for each.
struct Target {
  Tensor view, index;
  IndexedDim where;
  bool slices;

  void gather(const Tensor& out) const {
    const DeviceType device = view.device().type;
    if (slices) return kernels::index_gather(device, out, view, offsets_of(index, where), where.dim);
    kernels::gather(device, out, view, index, where);
  }
  void scatter(const Tensor& src, IndexWrite how) const {
    const DeviceType device = view.device().type;
    if (slices) return kernels::index_scatter(device, view, offsets_of(index, where), src, where.dim, how, Tensor());
    kernels::scatter(device, view, offsets_of(index, where), src, where.dim, how);
  }
};

bool points_at_slices(const Tensor& index, int64_t dim) {
  bool several = false;
  for (int64_t d = 0; d < index.dim(); ++d) {
    if (d == dim || index.size(d) == 1) continue;
    if (index.stride(d) != 0) return false;
    several = true;
  }
  return several;
}

void check_index_shape(const Tensor& self, int64_t dim, const Tensor& index, const char* op) {
  // A tensor without dimensions counts as one of a single element.
  const bool same_dims = std::max<int64_t>(self.dim(), 1) == std::max<int64_t>(index.dim(), 1);
  RUSH_CHECK_VALUE(same_dims, op, ": an index of shape ", index.sizes(), " does not have the dimensions of ",
                   self.sizes());
  for (int64_t d = 0; d < std::min(self.dim(), index.dim()); ++d) {
    RUSH_CHECK_VALUE(d == dim || index.size(d) <= self.size(d), op, ": an index of shape ", index.sizes(),
                     " is larger than a tensor of shape ", self.sizes(), " outside dimension ", dim);
  }
}

Target make_target(const Tensor& self, int64_t dim, const Tensor& index, const char* op) {
  DimVector sizes(index.sizes()), strides(index.sizes().size(), 0);
  for (int64_t d = 0; d < std::min(self.dim(), index.dim()); ++d) strides[d] = d == dim ? 0 : self.stride(d);
  const bool has_dim = self.dim() > 0;
  const IndexedDim where{op, dim, has_dim ? self.size(dim) : 1, has_dim ? self.stride(dim) : 0, false};
  const bool slices = points_at_slices(index, dim);
  Tensor each = index;
  if (slices) {
    each = detail::make_view(index, {index.size(dim)}, {index.stride(dim)}, index.storage_offset());
    sizes.erase(sizes.begin() + dim);
    strides.erase(strides.begin() + dim);
  }
  return {detail::make_view(self, sizes, strides, self.storage_offset()), index_as_int64(each, self.device(), op),
          where, slices};
}

Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool /*sparse_grad*/) {
  dim = wrap_dim(dim, self.dim(), "gather");
  const Tensor out = detail::empty_contiguous(index.sizes(), self.scalar_type(), self.device());
  if (index.numel() == 0) return out;
  check_index_shape(self, dim, index, "gather");
  make_target(self, dim, index, "gather").gather(out);
  return out;
}

// Indices that may count from the end. Shifted to the right, a negative number is -1 and any other 0.
Tensor from_start(const Tensor& indices, int64_t size) {
  if (!is_integral(indices.scalar_type(), false)) return indices;  // gather refuses them
  const Tensor wide = to_dtype(indices, kInt64);
  return ops::sub(wide, wide.bitwise_right_shift(63), size);
}

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (!dim) return ops::gather(self.reshape(-1), 0, from_start(indices.reshape(-1), self.numel()), false);
  RUSH_CHECK_VALUE(self.dim() == indices.dim(), "take_along_dim: indices of shape ", indices.sizes(),
                   " do not have the dimensions of ", self.sizes());
  const int64_t along = wrap_dim(*dim, self.dim(), "take_along_dim");
  if (self.dim() == 0) return ops::gather(self, 0, from_start(indices, 1), false);
  DimVector self_sizes(self.sizes()), index_sizes(indices.sizes());
  self_sizes[along] = index_sizes[along] = 1;
  DimVector common = broadcast_shapes(self_sizes, index_sizes, "take_along_dim");
  common[along] = self.size(along);
  const Tensor spread = self.expand(common);
  common[along] = indices.size(along);
  return ops::gather(spread, along, from_start(indices, self.size(along)).expand(common), false);
}

// `src` cut to the sizes of the index, as the kernel takes it.
Tensor cut_source(const Tensor& self, const Tensor& index, const Tensor& src, const char* op) {
  RUSH_CHECK_TYPE(src.scalar_type() == self.scalar_type(), op, ": expected a source of ", self.scalar_type(), ", got ",
                  src.scalar_type());
  RUSH_CHECK_VALUE(src.device() == self.device(), op, ": the source is on ", src.device(), ", the tensor on ",
                   self.device());
  bool covers = std::max<int64_t>(src.dim(), 1) == std::max<int64_t>(index.dim(), 1);
  // A 0-dimensional tensor counts as one of one element.
  const auto size = [](const Tensor& t, int64_t d) { return t.dim() > 0 ? t.size(d) : 1; };
  for (int64_t d = 0; covers && d < std::max<int64_t>(index.dim(), 1); ++d) covers = size(index, d) <= size(src, d);
  RUSH_CHECK_VALUE(covers, op, ": a source of shape ", src.sizes(), " does not cover an index of shape ",
                   index.sizes());
  const DimVector strides = src.dim() == index.dim() ? DimVector(src.strides()) : DimVector(index.dim(), 1);
  const Tensor cut = detail::make_view(src, index.sizes(), strides, src.storage_offset());
  return src.is_alias_of(self) ? clone_contiguous(cut) : contiguous(cut);
}

// Checks everything, then writes `src`, or where it is undefined `value`.
void write(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const Scalar& value, IndexWrite how,
           const char* op) {
  dim = wrap_dim(dim, self.dim(), op);
  check_writable(self, op);
  if (index.numel() == 0) return;
  check_index_shape(self, dim, index, op);
  const Tensor from = src.defined() ? cut_source(self, index, src, op) : full({}, value, self.options());
  make_target(self, dim, index, op).scatter(from, how);
}

Tensor& scatter_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  write(self, dim, index, src, 0, IndexWrite::Assign, "scatter");
  return self;
}

Tensor& scatter__value(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  write(self, dim, index, Tensor(), value, IndexWrite::Assign, "scatter");
  return self;
}

Tensor& scatter_add_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  write(self, dim, index, src, 0, IndexWrite::Add, "scatter_add");
  return self;
}

// A reduction of scatter_reduce: how values combine, and the value that changes nothing.
struct Reduction {
  IndexWrite write;
  Scalar identity;
  bool mean = false;
};

// The bounds of a dtype: infinities where it has them.
template <bool lowest>
Scalar bound_of(ScalarType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (is_floating_point(dtype)) return lowest ? -infinity : infinity;
  switch (dtype) {
    case kBool: return !lowest;
    case kUInt8: return lowest ? 0 : 255;
    case kInt8: return lowest ? -128 : 127;
    case kInt16: return lowest ? -32768 : 32767;
    case kInt32: return lowest ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int32_t>::max();
    default: return lowest ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  }
}

Reduction parse_reduction(std::string_view reduce, ScalarType dtype) {
  if (reduce == "sum") return {IndexWrite::Add, 0};
  if (reduce == "prod") return {IndexWrite::Multiply, 1};
  if (reduce == "mean") return {IndexWrite::Add, 0, true};
  const bool max = reduce == "amax";
  RUSH_CHECK_VALUE(max || reduce == "amin", "scatter_reduce: expected sum, prod, mean, amax or amin, got '", reduce,
                   "'");
  RUSH_CHECK_TYPE(!is_complex(dtype), "scatter_reduce: ", reduce, " needs numbers with an order, got ", dtype);
  return max ? Reduction{IndexWrite::Maximum, bound_of<true>(dtype)}
             : Reduction{IndexWrite::Minimum, bound_of<false>(dtype)};
}

Tensor& scatter_reduce_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                        bool include_self) {
  constexpr const char* op = "scatter_reduce";
  const Reduction reduction = parse_reduction(reduce, self.scalar_type());
  dim = wrap_dim(dim, self.dim(), op);
  check_writable(self, op);
  if (index.numel() == 0) return self;
  check_index_shape(self, dim, index, op);
  const Tensor from = cut_source(self, index, src, op);
  const Target to = make_target(self, dim, index, op);
  if (!include_self) to.scatter(full({}, reduction.identity, self.options()), IndexWrite::Assign);
  to.scatter(from, reduction.write);
  if (reduction.mean) {
    Tensor count = full(self.sizes(), include_self ? 1 : 0, TensorOptions(kInt64).device(self.device()));
    write(count, dim, index, Tensor(), 1, IndexWrite::Add, op);
    const Tensor inputs[] = {self, count};
    auto it = TensorIterator::pointwise(op, self, inputs, Promotion::None, self.scalar_type());
    kernels::scatter_mean(self.device().type, it);
  }
  return self;
}

// scatter's own names of the reductions.
std::string_view scatter_reduction(std::string_view reduce) {
  RUSH_CHECK_VALUE(reduce == "add" || reduce == "multiply", "scatter: expected reduce to be add or multiply, got '",
                   reduce, "'");
  return reduce == "add" ? "sum" : "prod";
}

// By ops::scatter_reduce, in place or not, whose result is an R.
template <auto& op, class R, class Self>
R with_reduction(Self self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) {
  return op(self, dim, index, src, scatter_reduction(reduce), true);
}
template <auto& op, class R, class Self>
R value_with_reduction(Self self, int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) {
  const Tensor src = full(index.sizes(), value, self.options());
  return op(self, dim, index, src, scatter_reduction(reduce), true);
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  constexpr const char* op = "one_hot";
  RUSH_CHECK_TYPE(self.scalar_type() == kInt64, op, ": expected class numbers of int64, got ", self.scalar_type());
  RUSH_CHECK_VALUE(num_classes > 0 || (num_classes == -1 && self.numel() > 0), op, ": the number of classes is ",
                   num_classes, ", for a tensor of ", self.numel(), " elements");
  if (num_classes == -1) {
    RUSH_CHECK_NOT_IMPLEMENTED(!self.is_meta(), op, ": on the meta device the number of classes must be given");
    const int64_t last = ops::max(self).item<int64_t>();
    RUSH_CHECK_VALUE(last < std::numeric_limits<int64_t>::max(), op, ": class ", last, " is too large");
    num_classes = last + 1;
  }
  DimVector sizes(self.sizes()), columns(self.sizes());
  sizes.push_back(num_classes);
  columns.push_back(1);
  const Tensor index = contiguous(self);
  Tensor out = zeros(sizes, self.options());
  write(out, self.dim(), detail::make_view(index, columns, contiguous_strides(columns), index.storage_offset()),
        Tensor(), 1, IndexWrite::Assign, op);
  return out;
}

}  // namespace

}  // namespace native

void register_gather_ops(Registry& r) {
  r.native(ops::gather, native::gather);
  r.composite(ops::take_along_dim, native::take_along_dim);
  r.native(ops::scatter_, native::scatter_);
  r.native(ops::scatter, native::on_copy<native::scatter_>);
  r.native(ops::scatter__value, native::scatter__value);
  r.native(ops::scatter_value, native::on_copy<native::scatter__value>);
  r.native(ops::scatter_add_, native::scatter_add_);
  r.native(ops::scatter_add, native::on_copy<native::scatter_add_>);
  r.native(ops::scatter_reduce_, native::scatter_reduce_);
  r.native(ops::scatter_reduce, native::on_copy<native::scatter_reduce_>);
  r.native(ops::one_hot, native::one_hot);
  r.composite(ops::scatter_with_reduce, native::with_reduction<ops::scatter_reduce>);
  r.composite(ops::scatter__reduce, native::with_reduction<ops::scatter_reduce_>);
  r.composite(ops::scatter_value_reduce, native::value_with_reduction<ops::scatter_reduce>);
  r.composite(ops::scatter__value_reduce, native::value_with_reduction<ops::scatter_reduce_>);
}

Tensor Tensor::gather(int64_t dim, const Tensor& index, bool sparse_grad) const {
  return ops::gather(*this, dim, index, sparse_grad);
}
Tensor Tensor::take_along_dim(const Tensor& indices, std::optional<int64_t> dim) const {
  return ops::take_along_dim(*this, indices, dim);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src) const {
  return ops::scatter(*this, dim, index, src);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Scalar& value) const {
  return ops::scatter_value(*this, dim, index, value);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) const {
  return ops::scatter_with_reduce(*this, dim, index, src, reduce);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) const {
  return ops::scatter_value_reduce(*this, dim, index, value, reduce);
}
Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src) const {
  return ops::scatter_(self(), dim, index, src);
}
Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Scalar& value) const {
  return ops::scatter__value(self(), dim, index, value);
}
Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) const {
  return ops::scatter__reduce(self(), dim, index, src, reduce);
}
Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) const {
  return ops::scatter__value_reduce(self(), dim, index, value, reduce);
}
Tensor Tensor::scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const {
  return ops::scatter_add(*this, dim, index, src);
}
Tensor& Tensor::scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) const {
  return ops::scatter_add_(self(), dim, index, src);
}
Tensor Tensor::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                              bool include_self) const {
  return ops::scatter_reduce(*this, dim, index, src, reduce, include_self);
}
Tensor& Tensor::scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                                bool include_self) const {
  return ops::scatter_reduce_(self(), dim, index, src, reduce, include_self);
}

}  // namespace rush
