#include "core/ops/index/index.h"

#include <algorithm>

#include "core/error/warning.h"
#include "core/iterator/tensor_iterator.h"
#include "core/ops/basic.h"
#include "core/ops/index/gather.h"
#include "core/ops/index/masked.h"
#include "core/ops/register.h"
#include "core/print/bracketed.h"

namespace rush {

namespace native {

static bool can_index(ScalarType type) { return is_integral(type, false) && has_arithmetic(type); }

Tensor index_as_int64(const Tensor& index, Device device, const char* op) {
  RUSH_CHECK_VALUE(index.defined(), op, ": the index is undefined");
  RUSH_CHECK_TYPE(can_index(index.scalar_type()), op, ": Expected dtype int32/int64 for index, got ",
                  index.scalar_type());
  RUSH_CHECK_VALUE(index.device() == device || index.is_cpu() || device.is_meta(), op, ": the index is on ",
                   index.device(), ", the tensor on ", device);
  const Tensor wide = index.scalar_type() == kInt64 ? index : to_dtype(index, kInt64);
  return index.device() == device || device.is_meta() ? wide : wide.to(device);
}

void check_writable(const Tensor& target, const char* op) {
  for (size_t d = 0; d < target.sizes().size(); ++d) {
    RUSH_CHECK_VALUE(target.sizes()[d] <= 1 || target.strides()[d] != 0, op, ": cannot write into a tensor of sizes ",
                     target.sizes(), " and strides ", target.strides(),
                     ": several of its elements share memory; clone it first");
  }
}

Tensor values_for_scatter(const Tensor& values, IntArrayRef sizes, const Tensor& self) {
  const bool aliased = values.is_alias_of(self);
  if (values.numel() == 1) return aliased ? clone_contiguous(values) : values;
  const Tensor expanded = expand_as_strided(values, sizes);
  return aliased ? clone_contiguous(expanded) : contiguous(expanded);
}

namespace {

// self's dimensions and the index of each: undefined where the whole dimension is meant.
struct Indexed {
  DimVector sizes, strides;
  std::vector<Tensor> indices;

  void whole(int64_t size, int64_t stride) { add(size, stride, Tensor()); }
  void add(int64_t size, int64_t stride, const Tensor& index) {
    sizes.push_back(size);
    strides.push_back(stride);
    indices.push_back(index);
  }
};

bool is_mask(const Tensor& t) { return t.scalar_type() == kBool || t.scalar_type() == kUInt8; }

// A mask indexes each of its dimensions with the positions of what is true in it. One without dimensions adds a
// dimension of size one, which is kept or not.
void add_mask(Indexed& indexed, const Tensor& self, const Tensor& mask, int64_t dim, const char* op) {
  RUSH_CHECK_INDEX(dim + mask.dim() <= self.dim(), op, ": too many indices for tensor of dimension ", self.dim(),
                   ", a mask of shape ", mask.sizes(), " at index ", dim);
  for (int64_t d = 0; d < mask.dim(); ++d) {
    RUSH_CHECK_INDEX(mask.size(d) == self.size(dim + d), op, ": The shape of the mask ", bracketed(mask.sizes()),
                     " at index ", d, " does not match the shape of the indexed tensor ", bracketed(self.sizes()),
                     " at index ", dim + d);
  }
  if (mask.scalar_type() == kUInt8) {
    RUSH_WARN_ONCE_PER_CALLER(op, ": a mask of uint8 is deprecated, and easily taken for indices; use bool");
  }
  const Tensor positions = native::nonzero(mask);  // (n, dimensions)
  if (mask.dim() == 0) {
    Tensor zeros = detail::empty_contiguous(positions.size(0), kInt64, positions.device());
    indexed.add(1, 0, zeros.zero_());
  }
  for (int64_t d = 0; d < mask.dim(); ++d) {
    const Tensor column = detail::make_view(positions, positions.size(0), positions.stride(0), d);
    indexed.add(self.size(dim + d), self.stride(dim + d), column.to(self.device()));
  }
}

Indexed match_dims(const Tensor& self, OptionalTensorList indices, const char* op) {
  Indexed indexed;
  int64_t dim = 0;
  for (const auto& index : indices) {
    if (given(index) && is_mask(*index)) {
      add_mask(indexed, self, *index, dim, op);
      dim += index->dim();
      continue;
    }
    RUSH_CHECK_INDEX(dim < self.dim(), op, ": too many indices for tensor of dimension ", self.dim(), ", got ",
                     indices.size());
    if (given(index)) {
      RUSH_CHECK_TYPE(can_index(index->scalar_type()), op,
                      ": tensors used as indices must be long, int, byte or bool tensors, got ", index->scalar_type());
      indexed.add(self.size(dim), self.stride(dim), index_as_int64(*index, self.device(), op));
    } else {
      indexed.whole(self.size(dim), self.stride(dim));
    }
    ++dim;
  }
  for (; dim < self.dim(); ++dim) indexed.whole(self.size(dim), self.stride(dim));
  return indexed;
}

// What the kernels need, see Note [Indexing by offsets].
struct Plan {
  Tensor view, offsets;
  int64_t before = 0;
  DimVector result_sizes;  // (before..., shape of the indices..., after...)
};

// The dimensions that come before the indexed ones: those in front of them if they are neighbours, otherwise none.
size_t count_before(const std::vector<Tensor>& indices) {
  const auto given = [](const Tensor& index) { return index.defined(); };
  const auto first = std::find_if(indices.begin(), indices.end(), given);
  const auto end = std::find_if_not(first, indices.end(), given);
  return std::any_of(end, indices.end(), given) ? 0 : static_cast<size_t>(first - indices.begin());
}

Plan make_plan(const Tensor& self, OptionalTensorList indices, const char* op) {
  const Indexed indexed = match_dims(self, indices, op);
  DimVector shape;
  for (const Tensor& index : indexed.indices) {
    if (index.defined()) shape = broadcast_shapes(shape, index.sizes(), op);
  }
  Plan plan;
  const size_t before = count_before(indexed.indices);
  plan.before = static_cast<int64_t>(before);
  DimVector sizes, strides;
  for (size_t d = 0; d < indexed.sizes.size(); ++d) {
    if (d == before) {
      for (int64_t size : shape) plan.result_sizes.push_back(size);
    }
    if (indexed.indices[d].defined()) continue;
    sizes.push_back(indexed.sizes[d]);
    strides.push_back(indexed.strides[d]);
    plan.result_sizes.push_back(indexed.sizes[d]);
  }
  plan.view = detail::make_view(self, sizes, strides, self.storage_offset());
  plan.offsets = detail::empty_contiguous(shape, kInt64, self.device());
  bool add = false;
  for (size_t d = 0; d < indexed.indices.size(); ++d) {
    if (!indexed.indices[d].defined()) continue;
    const IndexedDim where{op, static_cast<int64_t>(d), indexed.sizes[d], indexed.strides[d], true};
    kernels::index_offsets(self.device().type, plan.offsets, expand_as_strided(indexed.indices[d], shape), where, add);
    add = true;
  }
  if (!add) plan.offsets.zero_();
  return plan;
}

// The mask where one is all that indexes, with the dimensions of `self`; otherwise undefined.
Tensor only_mask(const Tensor& self, OptionalTensorList indices) {
  if (indices.size() != 1 || !given(*indices.begin())) return {};
  const Tensor& mask = **indices.begin();
  const size_t dims = mask.sizes().size();
  if (mask.scalar_type() != kBool || dims == 0 || dims > self.sizes().size()) return {};
  if (!(mask.device() == self.device()) || !(mask.sizes() == self.sizes().slice(0, dims))) return {};
  DimVector sizes(mask.sizes()), strides(mask.strides());
  sizes.resize(self.sizes().size(), 1);
  strides.resize(self.sizes().size(), 0);
  return detail::make_view(mask, sizes, strides, mask.storage_offset());
}

bool expands_to(IntArrayRef sizes, IntArrayRef target) {
  if (sizes.size() > target.size()) return false;
  const size_t lead = target.size() - sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1 && sizes[d] != target[lead + d]) return false;
  }
  return true;
}

}  // namespace

Tensor index(const Tensor& self, OptionalTensorList indices) {
  const Plan plan = make_plan(self, indices, "index");
  const Tensor out = detail::empty_contiguous(plan.result_sizes, self.scalar_type(), self.device());
  kernels::index_gather(self.device().type, out, plan.view, plan.offsets, plan.before);
  return out;
}

Tensor& index_put_(Tensor& self, OptionalTensorList indices, const Tensor& values, bool accumulate) {
  RUSH_CHECK_TYPE(values.scalar_type() == self.scalar_type(), "index_put_: expected values of ", self.scalar_type(),
                  ", got ", values.scalar_type());
  check_writable(self, "index_put_");
  const bool number = values.dim() == 0 && values.is_cpu();
  RUSH_CHECK_VALUE(number || values.device() == self.device(), "index_put_: the values are on ", values.device(),
                   ", the tensor on ", self.device());
  if (values.dim() == 0 && !accumulate && !self.is_meta()) {
    if (const Tensor mask = only_mask(self, indices); mask.defined()) return masked_fill_(self, mask, values);
  }
  // How many places a mask stands for depends on numbers that meta lacks, and nothing is written there.
  if (self.is_meta() && std::ranges::any_of(indices, [](const auto& t) { return given(t) && is_mask(*t); }))
    return self;
  const Plan plan = make_plan(self, indices, "index_put_");
  RUSH_CHECK_VALUE(expands_to(values.sizes(), plan.result_sizes), "index_put_: shape mismatch: value tensor of shape ",
                   bracketed(values.sizes()), " cannot be broadcast to indexing result of shape ",
                   bracketed(plan.result_sizes));
  const Tensor ready = values_for_scatter(number ? values.to(self.device()) : values, plan.result_sizes, self);
  kernels::index_scatter(self.device().type, plan.view, plan.offsets, ready, plan.before,
                         accumulate ? IndexWrite::Add : IndexWrite::Assign, Tensor());
  return self;
}

Tensor offsets_of(const Tensor& index, const IndexedDim& where) {
  const Tensor offsets = detail::empty_contiguous(index.sizes(), kInt64, index.device());
  kernels::index_offsets(index.device().type, offsets, index, where, false);
  return offsets;
}

// The offsets of `index` in self as one dimension.
static Tensor flat_offsets(const Tensor& self, const Tensor& index, const char* op) {
  return offsets_of(index_as_int64(index, self.device(), op), {op, 0, self.numel(), 1, true});
}

static Tensor take(const Tensor& self, const Tensor& index) {
  const Tensor source = contiguous(self), wide = index_as_int64(index, self.device(), "take");
  const Tensor out = detail::empty_contiguous(index.sizes(), self.scalar_type(), self.device());
  const Tensor view = detail::make_view(source, {index.numel()}, {0}, source.storage_offset());
  kernels::gather(self.device().type, out, view, wide, {"take", 0, self.numel(), 1, true});
  return out;
}

static Tensor& put_(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  RUSH_CHECK_TYPE(source.scalar_type() == self.scalar_type(), "put_: expected a source of ", self.scalar_type(),
                  ", got ", source.scalar_type());
  RUSH_CHECK_VALUE(source.numel() == index.numel(), "put_: got ", index.numel(), " indices for ", source.numel(),
                   " elements of the source");
  check_writable(self, "put_");
  const Tensor target = self.is_contiguous() ? self : clone_contiguous(self);
  const Tensor offsets = flat_offsets(target, index, "put_");
  const Tensor values = source.is_alias_of(self) ? clone_contiguous(source) : contiguous(source);
  const Tensor view = detail::make_view(target, {}, {}, target.storage_offset());
  kernels::index_scatter(self.device().type, view, offsets, values, 0,
                         accumulate ? IndexWrite::Add : IndexWrite::Assign, Tensor());
  return target.is_same(self) ? self : copy_(self, target, false);
}

}  // namespace native

void register_index_ops(Registry& r) {
  r.native(ops::index, native::index);
  r.native(ops::index_put_, native::index_put_);
  r.native(ops::index_put, native::on_copy<native::index_put_>);
  r.native(ops::take, native::take);
  r.native(ops::put, native::on_copy<native::put_>);
  r.native(ops::put_, native::put_);
}

Tensor Tensor::index_put(OptionalTensorList indices, const Tensor& values, bool accumulate) const {
  return ops::index_put(*this, indices, values, accumulate);
}
Tensor& Tensor::index_put_(OptionalTensorList indices, const Tensor& values, bool accumulate) const {
  return ops::index_put_(self(), indices, values, accumulate);
}
Tensor Tensor::take(const Tensor& index) const { return ops::take(*this, index); }
Tensor Tensor::put(const Tensor& index, const Tensor& source, bool accumulate) const {
  return ops::put(*this, index, source, accumulate);
}
Tensor& Tensor::put_(const Tensor& index, const Tensor& source, bool accumulate) const {
  return ops::put_(self(), index, source, accumulate);
}

}  // namespace rush
