// Sparse tensors from one layout to another, to dense tensors and back, copied and transposed.
#include <algorithm>
#include <limits>
#include <numeric>

#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "core/ops/index/index.h"
#include "core/ops/reduce/search.h"
#include "core/ops/reduce/unique.h"
#include "core/ops/register.h"
#include "core/ops/sparse/sparse_kernels.h"
#include "core/ops/sparse/sparse_parts.h"

namespace rush {

namespace native {

// ---- rows and where they begin ----

Tensor compress_rows(const Tensor& rows, int64_t count) {
  return rush::searchsorted(rows, rush::arange(count + 1, TensorOptions(kInt64).device(rows.device())));
}

Tensor expand_rows(const Tensor& compressed, int64_t nnz) {
  const Tensor counts = compressed.slice(0, 1) - compressed.slice(0, 0, -1);
  return ops::repeat_interleave_Tensor(counts.to(kInt64), nnz);
}

static Tensor _convert_indices_from_coo_to_csr(const Tensor& self, int64_t size, bool out_int32) {
  constexpr const char* op = "_convert_indices_from_coo_to_csr";
  RUSH_CHECK_VALUE(self.dim() == 1, op, ": expected indices of one dimension, got shape ", self.sizes());
  RUSH_CHECK_VALUE(size >= 0 && size < std::numeric_limits<int64_t>::max(), op, ": cannot count ", size, " rows");
  RUSH_CHECK_TYPE(is_integral(self.scalar_type(), false), op, ": indices must be integers, got ", self.scalar_type());
  return compress_rows(self, size).to(out_int32 ? kInt32 : kInt64);
}

static Tensor _convert_indices_from_csr_to_coo(const Tensor& crow, const Tensor& col, bool out_int32, bool transpose) {
  constexpr const char* op = "_convert_indices_from_csr_to_coo";
  RUSH_CHECK_VALUE(crow.dim() == 1 && crow.numel() >= 1 && col.dim() == 1, op,
                   ": expected indices of one dimension, and where rows begin, got shapes ", crow.sizes(), " and ",
                   col.sizes());
  RUSH_CHECK_TYPE(is_integral(crow.scalar_type(), false) && is_integral(col.scalar_type(), false), op,
                  ": indices must be integers, got ", crow.scalar_type(), " and ", col.scalar_type());
  const ScalarType dtype = out_int32 ? kInt32 : kInt64;
  const Tensor rows = expand_rows(crow, col.numel()).to(dtype), columns = col.to(dtype);
  return transpose ? rush::stack({columns, rows}) : rush::stack({rows, columns});
}

// ---- to COO ----

static void check_matrix(const char* op, const Tensor& tensor) {
  const bool is_matrix = tensor.dim() == 2 && (tensor.layout() != kSparse || coo_parts(tensor, op).dense_dim() == 0);
  RUSH_CHECK_VALUE(is_matrix, op, ": expected a sparse matrix without dense dimensions, got sizes ", tensor.sizes());
}

// The linear indices of the elements of blocks at (rows, columns), (nnz) each: (nnz * block rows * block columns) each.
static std::pair<Tensor, Tensor> spread_blocks(const Tensor& rows, const Tensor& columns, const DimVector& blocks) {
  const TensorOptions ints = rows.options();
  const DimVector all{rows.numel(), blocks[0], blocks[1]};
  const Tensor row = rows.view({-1, 1, 1}) * blocks[0] + rush::arange(blocks[0], ints).view({1, -1, 1});
  const Tensor column = columns.view({-1, 1, 1}) * blocks[1] + rush::arange(blocks[1], ints).view({1, 1, -1});
  return {row.expand(all).reshape(-1), column.expand(all).reshape(-1)};
}

Tensor as_coo(const Tensor& tensor) {
  if (tensor.layout() == kSparse) return tensor;
  const SparseCsrTensorImpl& parts = compressed_parts(tensor);
  Tensor rows = expand_rows(parts.compressed_indices(), parts.nnz()), columns = parts.plain_indices().to(kInt64);
  if (!compresses_rows(tensor.layout())) std::swap(rows, columns);
  if (is_blocked(tensor.layout())) std::tie(rows, columns) = spread_blocks(rows, columns, block_sizes(tensor));
  return make_coo(tensor.sizes(), rush::stack({rows, columns}), parts.values().reshape(-1),
                  tensor.layout() == kSparseCsr);
}

static int64_t count_of(IntArrayRef sizes, int64_t begin, int64_t end) {
  return checked_numel(sizes.slice(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
}

// `tensor` with its first `sparse_dim` dimensions as one.
Tensor with_places(const Tensor& tensor, int64_t sparse_dim) {
  DimVector sizes{count_of(tensor.sizes(), 0, sparse_dim)};
  for (int64_t d = sparse_dim; d < tensor.dim(); ++d) sizes.push_back(tensor.size(d));
  return tensor.view(sizes);
}

static Tensor dense_to_coo(const char* op, const Tensor& self, int64_t sparse_dim) {
  RUSH_CHECK_VALUE(!self.is_meta(), op, ": there are no sparse tensors on meta");
  RUSH_CHECK_VALUE(sparse_dim >= 0 && sparse_dim <= self.dim() && (sparse_dim > 0 || self.dim() == 0), op,
                   ": a tensor of ", self.dim(), " dimensions cannot have ", sparse_dim, " sparse ones");
  const Tensor dense = contiguous(self);
  const int64_t places_count = count_of(self.sizes(), 0, sparse_dim);
  Tensor kept = dense.ne(0).view({places_count, count_of(self.sizes(), sparse_dim, self.dim())});
  kept = kept.size(1) == 1 ? kept.select(1, 0) : kept.any(1);
  const Tensor places = contiguous(ops::nonzero(kept).select(1, 0));
  return make_coo(self.sizes(), indices_of(places, self.sizes().slice(0, static_cast<size_t>(sparse_dim))),
                  rush::index_select(with_places(dense, sparse_dim), 0, places), true);
}

// ---- to compressed layouts ----

Tensor recompress(const Tensor& matrix) {
  const SparseCsrTensorImpl& parts = compressed_parts(matrix);
  const Layout from = matrix.layout();
  const Layout to = is_blocked(from) ? (compresses_rows(from) ? kSparseBsc : kSparseBsr)
                                     : (compresses_rows(from) ? kSparseCsc : kSparseCsr);
  const DimVector blocks = block_sizes(matrix);
  int64_t lines = matrix.size(0) / blocks[0], crossing = matrix.size(1) / blocks[1];
  if (!compresses_rows(from)) std::swap(lines, crossing);
  const ScalarType dtype = parts.plain_indices().scalar_type();
  const Tensor compressed = detail::empty_contiguous(crossing + 1, dtype, matrix.device());
  const Tensor plain = detail::empty_contiguous(parts.nnz(), dtype, matrix.device());
  const Tensor order = detail::empty_contiguous(parts.nnz(), kInt64, matrix.device());
  kernels::sparse_transpose(matrix.device().type, compressed, plain, order,
                            {parts.compressed_indices(), parts.plain_indices(), Tensor(), lines, crossing});
  return make_compressed(to, matrix.sizes(), compressed, plain, rush::index_select(parts.values(), 0, order));
}

static Tensor coo_to_csr(const Tensor& tensor) {
  const Tensor sorted = coalesced(tensor);
  const SparseTensorImpl& parts = coo_parts(sorted, "to_sparse_csr");
  return make_compressed(kSparseCsr, tensor.sizes(), compress_rows(parts.indices().select(0, 0), tensor.size(0)),
                         parts.indices().select(0, 1), parts.values());
}

static Tensor coo_to_blocks(const Tensor& tensor, Layout layout, IntArrayRef blocks, const char* op) {
  RUSH_CHECK_VALUE(tensor.size(0) % blocks[0] == 0 && tensor.size(1) % blocks[1] == 0, op, ": sizes ", tensor.sizes(),
                   " are no multiples of blocks of ", blocks);
  const Tensor sorted = coalesced(tensor);
  const SparseTensorImpl& parts = coo_parts(sorted, op);
  const Tensor row = parts.indices().select(0, 0), column = parts.indices().select(0, 1);
  Tensor line = row.div(blocks[0], "trunc"), crossing = column.div(blocks[1], "trunc");
  int64_t lines = tensor.size(0) / blocks[0], crossings = tensor.size(1) / blocks[1];
  if (!compresses_rows(layout)) {
    std::swap(line, crossing);
    std::swap(lines, crossings);
  }
  const auto [places, which, counts] = rush::_unique2(line * crossings + crossing, true, true);
  const Tensor within = row.remainder(blocks[0]) * blocks[1] + column.remainder(blocks[1]);
  const Tensor values = rush::zeros(places.numel() * blocks[0] * blocks[1], parts.values().options())
                            .index_copy_(0, which * (blocks[0] * blocks[1]) + within, parts.values());
  const int64_t per_line = std::max<int64_t>(crossings, 1);
  return make_compressed(layout, tensor.sizes(), compress_rows(places.div(per_line, "trunc"), lines),
                         places.remainder(per_line), values.view({-1, blocks[0], blocks[1]}));
}

Tensor from_coo(const Tensor& tensor, Layout layout, IntArrayRef blocks, const char* op) {
  if (layout == kSparse) return tensor;
  check_matrix(op, tensor);
  if (is_blocked(layout)) return coo_to_blocks(tensor, layout, blocks, op);
  const Tensor csr = coo_to_csr(tensor);
  return layout == kSparseCsr ? csr : recompress(csr);
}

Tensor in_layout_of(const Tensor& tensor, const Tensor& like) {
  return from_coo(tensor, like.layout(), block_sizes(like), "to_sparse");
}

Tensor as_csr(const Tensor& matrix, const char* op) {
  check_matrix(op, matrix);
  switch (matrix.layout()) {
    case kSparseCsr: return matrix;
    case kSparseCsc: return recompress(matrix);
    default: return coo_to_csr(as_coo(matrix));
  }
}

// ---- the operators ----

static Tensor sparse_to_dense(const Tensor& self, std::optional<ScalarType> dtype, std::optional<bool>) {
  const Tensor coo = as_coo(self);
  const SparseTensorImpl& parts = coo_parts(coo, "to_dense");
  const Tensor values = parts.values().to(dtype.value_or(self.scalar_type()));
  const Tensor dense = rush::zeros(self.sizes(), values.options());
  with_places(dense, parts.sparse_dim())
      .index_add_(0, places_of(parts.indices(), self.sizes().slice(0, static_cast<size_t>(parts.sparse_dim()))),
                  values);
  return dense;
}

static Tensor to_dense(const Tensor& self, std::optional<ScalarType> dtype, std::optional<bool> masked_grad) {
  if (is_dense(self)) return dtype ? self.to(*dtype) : self;
  return ops::_to_dense(self, dtype, masked_grad);
}

namespace {

struct SparseTarget {
  Layout layout;
  DimVector blocks;
  int64_t dense_dim;
};

SparseTarget check_target(const Tensor& self, std::optional<Layout> layout, OptionalIntArrayRef blocksize,
                          std::optional<int64_t> dense_dim) {
  SparseTarget target{layout.value_or(kSparse), {1, 1}, dense_dim.value_or(0)};
  RUSH_CHECK_VALUE(target.layout != kStrided, "to_sparse: strided is not a sparse layout; use to_dense");
  RUSH_CHECK_VALUE(is_blocked(target.layout) == blocksize.has_value(), "to_sparse: the layout ", target.layout,
                   blocksize ? " has no blocks: leave out the blocksize" : " has blocks: give a blocksize");
  if (blocksize) {
    RUSH_CHECK_VALUE(blocksize->size() == 2 && (*blocksize)[0] > 0 && (*blocksize)[1] > 0,
                     "to_sparse: blocksize must be two positive numbers, got ", *blocksize);
    target.blocks = DimVector(*blocksize);
  }
  RUSH_CHECK_VALUE(target.layout == kSparse || (self.dim() == 2 && target.dense_dim == 0), "to_sparse: the layout ",
                   target.layout, " is of matrices without dense dimensions, got sizes ", self.sizes(),
                   " and dense_dim ", target.dense_dim);
  RUSH_CHECK_VALUE(target.dense_dim >= 0 && target.dense_dim <= self.dim(), "to_sparse: a tensor of ", self.dim(),
                   " dimensions cannot have ", target.dense_dim, " dense ones");
  return target;
}

bool is_already(const Tensor& self, const SparseTarget& target) {
  return self.layout() == target.layout && block_sizes(self) == target.blocks;
}

}  // namespace

static Tensor _to_sparse(const Tensor& self, std::optional<Layout> layout, OptionalIntArrayRef blocksize,
                         std::optional<int64_t> dense_dim) {
  const SparseTarget target = check_target(self, layout, blocksize, dense_dim);
  if (is_dense(self)) {
    return from_coo(dense_to_coo("to_sparse", self, self.dim() - target.dense_dim), target.layout, target.blocks,
                    "to_sparse");
  }
  if (is_already(self, target)) return detail::make_alias(self);
  RUSH_CHECK_VALUE(!dense_dim || *dense_dim == self.dense_dim(), "to_sparse: the tensor has ", self.dense_dim(),
                   " dense dimensions, which cannot become ", *dense_dim);
  const bool turns = is_compressed(self.layout()) && is_compressed(target.layout) &&
                     is_blocked(self.layout()) == is_blocked(target.layout) && block_sizes(self) == target.blocks;
  if (turns) return recompress(self);
  return from_coo(coalesced(as_coo(self)), target.layout, target.blocks, "to_sparse");
}

static Tensor to_sparse(const Tensor& self, std::optional<Layout> layout, OptionalIntArrayRef blocksize,
                        std::optional<int64_t> dense_dim) {
  const SparseTarget target = check_target(self, layout, blocksize, dense_dim);
  if (!is_dense(self) && is_already(self, target) && !dense_dim) return self;
  return ops::_to_sparse(self, layout, blocksize, dense_dim);
}

static Tensor dense_to_sparse_dim(const Tensor& self, int64_t sparse_dim) {
  return dense_to_coo("to_sparse", self, sparse_dim);
}
static Tensor coo_to_sparse_dim(const Tensor& self, int64_t sparse_dim) {
  const int64_t has = coo_parts(self, "to_sparse").sparse_dim();
  RUSH_CHECK_VALUE(has == sparse_dim, "to_sparse: the tensor has ", has, " sparse dimensions, which cannot become ",
                   sparse_dim);
  return detail::make_alias(self);
}

template <Layout layout>
static Tensor to_sparse_rows(const Tensor& self, std::optional<int64_t> dense_dim) {
  return ops::to_sparse(self, layout, std::nullopt, dense_dim);
}
template <Layout layout>
static Tensor to_sparse_blocks(const Tensor& self, IntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  return ops::to_sparse(self, layout, blocksize, dense_dim);
}

// ---- values at indices ----

static void check_lookup(const Tensor& self, const Tensor& indices, int64_t most_dims) {
  constexpr const char* op = "sparse_values_at";
  RUSH_CHECK_TYPE(indices.scalar_type() == kInt64 && is_dense(indices), op, ": indices must be a dense int64 tensor");
  RUSH_CHECK_VALUE(indices.dim() == 2 && indices.size(0) <= most_dims, op, ": indices of shape ", indices.sizes(),
                   " do not fit a tensor of sizes ", self.sizes());
}

static Tensor dense_values_at(const Tensor& self, const Tensor& indices) {
  check_lookup(self, indices, self.dim());
  if (indices.size(0) == 0) {
    DimVector sizes(self.sizes());
    sizes.insert(sizes.begin(), indices.size(1));
    return self.unsqueeze(0).expand(sizes);
  }
  std::vector<std::optional<Tensor>> rows;
  for (int64_t d = 0; d < indices.size(0); ++d) rows.emplace_back(indices.select(0, d));
  return rush::index(self, rows);
}

static Tensor sparse_values_at(const Tensor& self, const Tensor& indices) {
  const Tensor sorted = coalesced(as_coo(self));
  const SparseTensorImpl& parts = coo_parts(sorted, "sparse_values_at");
  check_lookup(self, indices, parts.sparse_dim());
  RUSH_CHECK_VALUE(indices.size(0) == parts.sparse_dim(), "sparse_values_at: indices of shape ", indices.sizes(),
                   " do not fit a tensor of ", parts.sparse_dim(), " sparse dimensions");
  DimVector sizes(parts.values().sizes());
  sizes[0] = indices.size(1);
  if (parts.nnz() == 0) return rush::zeros(sizes, parts.values().options());
  const IntArrayRef sparse_sizes = self.sizes().slice(0, static_cast<size_t>(parts.sparse_dim()));
  const Tensor places = places_of(parts.indices(), sparse_sizes), wanted = places_of(indices, sparse_sizes);
  const Tensor at = rush::searchsorted(places, contiguous(wanted)).clamp_max(parts.nnz() - 1);
  DimVector column(sizes.size(), 1);
  column[0] = sizes[0];
  const Tensor missing = rush::index_select(places, 0, at).ne(wanted).view(column);
  return rush::index_select(parts.values(), 0, at).masked_fill_(missing, 0);
}

static Tensor sparse_mask(const Tensor& self, const Tensor& mask) {
  RUSH_CHECK_VALUE(!is_dense(mask), "sparse_mask: the mask must be sparse");
  RUSH_CHECK_VALUE(self.sizes() == mask.sizes(), "sparse_mask: the tensor has sizes ", self.sizes(), ", the mask ",
                   mask.sizes());
  // Each place once: the result has what self has there, not as often as the mask has an entry.
  const Tensor entries = mask.layout() == kSparse ? coalesced(mask) : as_coo(mask);
  const SparseTensorImpl& parts = coo_parts(entries, "sparse_mask");
  const Tensor values = ops::sparse_values_at(self, parts.indices());
  if (mask.layout() == kSparse) {
    return rush::_sparse_coo_tensor_unsafe(parts.indices(), values, mask.sizes(), {}, parts.is_coalesced());
  }
  const SparseCsrTensorImpl& compressed = compressed_parts(mask);
  return rush::_sparse_compressed_tensor_unsafe(compressed.compressed_indices(), compressed.plain_indices(),
                                                values.reshape(compressed.values().sizes()), mask.sizes(),
                                                TensorOptions().layout(mask.layout()));
}

// ---- copies ----

// A new tensor of `tensor`'s parts after convert(part, is it the values).
template <class Convert>
static Tensor with_converted_parts(const Tensor& tensor, const Convert& convert) {
  if (tensor.layout() == kSparse) {
    const SparseTensorImpl& parts = coo_parts(tensor, "clone");
    return make_coo(tensor.sizes(), convert(parts.indices(), false), convert(parts.values(), true),
                    parts.is_coalesced());
  }
  const SparseCsrTensorImpl& parts = compressed_parts(tensor);
  return make_compressed(tensor.layout(), tensor.sizes(), convert(parts.compressed_indices(), false),
                         convert(parts.plain_indices(), false), convert(parts.values(), true));
}

static Tensor clone_sparse(const Tensor& self, std::optional<MemoryFormat>) {
  return with_converted_parts(self, [](const Tensor& part, bool) { return part.clone(); });
}

static Tensor copy_sparse_to(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                             std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
                             std::optional<MemoryFormat>) {
  RUSH_CHECK_VALUE(!layout || *layout == self.layout(), "to: the tensor has layout ", self.layout(),
                   "; to_sparse and to_dense change it");
  RUSH_CHECK_VALUE(!pin_memory.value_or(false), "to: sparse tensors cannot be pinned");
  const Device where = device.value_or(self.device());
  RUSH_CHECK_VALUE(!where.is_meta(), "to: there are no sparse tensors on meta");
  return with_converted_parts(self, [&](const Tensor& part, bool is_values) {
    const ScalarType type = is_values ? dtype.value_or(self.scalar_type()) : part.scalar_type();
    return part.to(where, type, non_blocking, /*copy=*/true);
  });
}

// Makes `self` hold copies of what `source`, of its layout and sizes, holds.
static Tensor& copy_sparse_(Tensor& self, const Tensor& source, bool non_blocking) {
  RUSH_CHECK_VALUE(self.layout() == source.layout(), "copy_: cannot copy layout ", source.layout(), " into layout ",
                   self.layout());
  RUSH_CHECK_VALUE(self.sizes() == source.sizes(), "copy_: cannot copy sizes ", source.sizes(), " into sizes ",
                   self.sizes());
  if (self.is_same(source)) return self;
  replace_parts(self, copy_sparse_to(source, self.scalar_type(), {}, self.device(), {}, non_blocking, {}));
  return self;
}

static Tensor empty_like_sparse(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                                std::optional<Device> device, std::optional<bool> pin_memory,
                                std::optional<MemoryFormat> format) {
  const ScalarType type = dtype.value_or(self.scalar_type());
  const Device where = device.value_or(self.device());
  if (layout && *layout == kStrided) return ops::zeros(self.sizes(), type, layout, where, pin_memory);
  RUSH_CHECK_VALUE(!layout || *layout == self.layout(), "empty_like: the tensor has layout ", self.layout(), ", not ",
                   *layout);
  RUSH_CHECK_VALUE(!format || *format == MemoryFormat::Preserve, "empty_like: sparse tensors have no memory format");
  return make_empty_sparse(self.layout(), self.sizes(), ops::sparse_dim(self), type, where, block_sizes(self));
}

static Tensor& zero_sparse_(Tensor& self) {
  replace_parts(self, make_empty_sparse(self.layout(), self.sizes(), ops::sparse_dim(self), self.scalar_type(),
                                        self.device(), block_sizes(self)));
  return self;
}

// ---- transposed ----

static Tensor permute_sparse(const Tensor& self, IntArrayRef dims) {
  RUSH_CHECK_VALUE(dims.size() == self.sizes().size(),
                   "permute: number of dimensions in the tensor input does not match the "
                   "length of the desired ordering of dimensions: ",
                   self.dim(), " against ", dims.size(), " in ", dims);
  const DimVector order = wrap_dims(dims, self.dim(), "permute");
  DimVector identity(order.size(), 0), sizes(order.size(), 0);
  std::iota(identity.begin(), identity.end(), 0);
  if (order == identity) return detail::make_alias(self);
  for (size_t d = 0; d < order.size(); ++d) sizes[d] = self.sizes()[static_cast<size_t>(order[d])];
  if (self.layout() != kSparse) {
    const SparseCsrTensorImpl& parts = compressed_parts(self);
    const bool rows = compresses_rows(self.layout()), blocked = is_blocked(self.layout());
    const Layout turned = blocked ? (rows ? kSparseBsc : kSparseBsr) : (rows ? kSparseCsc : kSparseCsr);
    return make_compressed(turned, sizes, parts.compressed_indices(), parts.plain_indices(),
                           blocked ? parts.values().transpose(1, 2) : parts.values());
  }
  const SparseTensorImpl& parts = coo_parts(self, "permute");
  std::vector<Tensor> rows;
  DimVector value_order{0};
  bool same_order = true;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const int64_t from = order[static_cast<size_t>(d)];
    RUSH_CHECK_VALUE((from < parts.sparse_dim()) == (d < parts.sparse_dim()),
                     "permute: sparse and dense dimensions cannot change places, got dimensions ", dims, " for ",
                     parts.sparse_dim(), " sparse ones");
    if (d < parts.sparse_dim()) {
      rows.push_back(parts.indices().select(0, from));
      same_order = same_order && from == d;
    } else {
      value_order.push_back(from - parts.sparse_dim() + 1);
    }
  }
  return make_coo(sizes, same_order ? parts.indices() : rush::stack(rows), parts.values().permute(value_order),
                  same_order && parts.is_coalesced());
}

static Tensor transpose_sparse(const Tensor& self, int64_t dim0, int64_t dim1) {
  dim0 = wrap_dim(dim0, self.dim(), "transpose");
  dim1 = wrap_dim(dim1, self.dim(), "transpose");
  DimVector order(self.sizes().size(), 0);
  std::iota(order.begin(), order.end(), 0);
  if (!order.empty()) std::swap(order[static_cast<size_t>(dim0)], order[static_cast<size_t>(dim1)]);
  return permute_sparse(self, order);
}

}  // namespace native

void register_sparse_convert_ops(Registry& r) {
  r.native(ops::_convert_indices_from_coo_to_csr, native::_convert_indices_from_coo_to_csr);
  r.native(ops::_convert_indices_from_csr_to_coo, native::_convert_indices_from_csr_to_coo);
  r.composite(ops::to_dense, native::to_dense);
  r.sparse(ops::_to_dense, native::sparse_to_dense);
  r.composite(ops::to_sparse, native::to_sparse);
  r.native(ops::_to_sparse, native::_to_sparse);
  r.sparse(ops::_to_sparse, native::_to_sparse);
  r.composite(ops::to_sparse_sparse_dim, native::same_as<ops::_to_sparse_sparse_dim>);
  r.native(ops::_to_sparse_sparse_dim, native::dense_to_sparse_dim);
  r.sparse(ops::_to_sparse_sparse_dim, native::coo_to_sparse_dim);
  r.composite(ops::to_sparse_csr, native::to_sparse_rows<kSparseCsr>);
  r.composite(ops::to_sparse_csc, native::to_sparse_rows<kSparseCsc>);
  r.composite(ops::to_sparse_bsr, native::to_sparse_blocks<kSparseBsr>);
  r.composite(ops::to_sparse_bsc, native::to_sparse_blocks<kSparseBsc>);
  r.composite(ops::sparse_mask, native::sparse_mask);
  r.native(ops::sparse_values_at, native::dense_values_at);
  r.sparse(ops::sparse_values_at, native::sparse_values_at);
  r.sparse(ops::clone, native::clone_sparse);
  r.sparse(ops::_to_copy, native::copy_sparse_to);
  r.sparse(ops::copy_, native::copy_sparse_);
  r.sparse(ops::empty_like, native::empty_like_sparse);
  r.sparse(ops::zeros_like, native::empty_like_sparse);
  r.sparse(ops::zero_, native::zero_sparse_);
  r.sparse(ops::permute, native::permute_sparse);
  r.sparse(ops::transpose, native::transpose_sparse);
}

Tensor Tensor::to_dense(std::optional<ScalarType> dtype, std::optional<bool> masked_grad) const {
  return ops::to_dense(*this, dtype, masked_grad);
}
Tensor Tensor::to_sparse(int64_t sparse_dim) const { return ops::to_sparse_sparse_dim(*this, sparse_dim); }
Tensor Tensor::to_sparse(std::optional<Layout> layout, OptionalIntArrayRef blocksize,
                         std::optional<int64_t> dense_dim) const {
  return ops::to_sparse(*this, layout, blocksize, dense_dim);
}
Tensor Tensor::to_sparse_csr(std::optional<int64_t> dense_dim) const { return ops::to_sparse_csr(*this, dense_dim); }
Tensor Tensor::to_sparse_csc(std::optional<int64_t> dense_dim) const { return ops::to_sparse_csc(*this, dense_dim); }
Tensor Tensor::to_sparse_bsr(IntArrayRef blocksize, std::optional<int64_t> dense_dim) const {
  return ops::to_sparse_bsr(*this, blocksize, dense_dim);
}
Tensor Tensor::to_sparse_bsc(IntArrayRef blocksize, std::optional<int64_t> dense_dim) const {
  return ops::to_sparse_bsc(*this, blocksize, dense_dim);
}
Tensor Tensor::sparse_mask(const Tensor& mask) const { return ops::sparse_mask(*this, mask); }

}  // namespace rush
