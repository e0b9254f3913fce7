// Sparse tensors: construction, the tensors that they consist of, and coalesce.
#include "core/ops/sparse/sparse.h"

#include <algorithm>
#include <limits>

#include "core/ops/basic.h"
#include "core/ops/reduce/sort.h"
#include "core/ops/reduce/unique.h"
#include "core/ops/register.h"
#include "core/ops/sparse/sparse_parts.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

const SparseTensorImpl& coo_parts(const Tensor& tensor, const char* op) {
  RUSH_CHECK_VALUE(tensor.layout() == kSparse, op, ": expected a tensor of layout ", kSparse, ", got ",
                   tensor.layout());
  return static_cast<const SparseTensorImpl&>(*tensor.impl());
}

const SparseCsrTensorImpl& compressed_parts(const Tensor& tensor) {
  RUSH_INTERNAL_ASSERT(is_compressed(tensor.layout()), "the layout is ", tensor.layout());
  return static_cast<const SparseCsrTensorImpl&>(*tensor.impl());
}

Tensor make_coo(IntArrayRef sizes, const Tensor& indices, const Tensor& values, bool coalesced) {
  return Tensor(make_intrusive<SparseTensorImpl>(sizes, contiguous(indices), contiguous(values), coalesced));
}

Tensor make_compressed(Layout layout, IntArrayRef sizes, const Tensor& compressed, const Tensor& plain,
                       const Tensor& values) {
  return Tensor(make_intrusive<SparseCsrTensorImpl>(layout, sizes, contiguous(compressed), contiguous(plain),
                                                    contiguous(values)));
}

Tensor make_empty_sparse(Layout layout, IntArrayRef sizes, int64_t sparse_dim, ScalarType dtype, Device device,
                         IntArrayRef blocks) {
  RUSH_CHECK_VALUE(!device.is_meta(), "there are no sparse tensors on meta");
  checked_numel(sizes);
  DimVector value_sizes(1, 0);
  if (layout == kSparse) {
    for (size_t d = static_cast<size_t>(sparse_dim); d < sizes.size(); ++d) value_sizes.push_back(sizes[d]);
    return make_coo(sizes, detail::empty_contiguous({sparse_dim, 0}, kInt64, device),
                    detail::empty_contiguous(value_sizes, dtype, device), true);
  }
  RUSH_CHECK_VALUE(sizes.size() == 2, "a tensor of layout ", layout, " is a matrix, got sizes ", sizes);
  if (is_blocked(layout)) value_sizes = {0, blocks[0], blocks[1]};
  const size_t d = compresses_rows(layout) ? 0 : 1;
  RUSH_CHECK_VALUE(sizes[d] < std::numeric_limits<int64_t>::max(), "sizes ", sizes, " hold too many lines");
  return make_compressed(layout, sizes, rush::zeros(sizes[d] / blocks[d] + 1, TensorOptions(kInt64).device(device)),
                         detail::empty_contiguous(0, kInt64, device),
                         detail::empty_contiguous(value_sizes, dtype, device));
}

const Tensor& stored_values(const Tensor& tensor) {
  return tensor.layout() == kSparse ? coo_parts(tensor, "values").values() : compressed_parts(tensor).values();
}

void replace_parts(const Tensor& self, const Tensor& other) {
  RUSH_INTERNAL_ASSERT(self.layout() == other.layout() && self.scalar_type() == other.scalar_type(), "replace_parts");
  if (self.layout() == kSparse) {
    const SparseTensorImpl& from = coo_parts(other, "copy_");
    static_cast<SparseTensorImpl*>(self.impl())->set_parts(from.indices(), from.values(), from.is_coalesced());
  } else {
    const SparseCsrTensorImpl& from = compressed_parts(other);
    static_cast<SparseCsrTensorImpl*>(self.impl())
        ->set_parts(from.compressed_indices(), from.plain_indices(), from.values());
  }
}

Tensor with_values(const Tensor& tensor, const Tensor& values) {
  if (tensor.layout() == kSparse) {
    const SparseTensorImpl& parts = coo_parts(tensor, "values");
    return make_coo(tensor.sizes(), parts.indices(), values, parts.is_coalesced());
  }
  const SparseCsrTensorImpl& parts = compressed_parts(tensor);
  return make_compressed(tensor.layout(), tensor.sizes(), parts.compressed_indices(), parts.plain_indices(), values);
}

DimVector block_sizes(const Tensor& tensor) {
  if (!is_blocked(tensor.layout())) return {1, 1};
  const Tensor& values = compressed_parts(tensor).values();
  return {values.size(1), values.size(2)};
}

// ---- indices ----

Tensor places_of(const Tensor& indices, IntArrayRef sizes) {
  if (sizes.empty()) return rush::zeros(indices.size(1), indices.options());
  Tensor places = indices.select(0, 0);
  for (size_t d = 1; d < sizes.size(); ++d) places = places * sizes[d] + indices.select(0, static_cast<int64_t>(d));
  return places;
}

Tensor indices_of(const Tensor& places, IntArrayRef sizes) {
  if (sizes.size() == 1) return places.unsqueeze(0);
  Tensor indices =
      detail::empty_contiguous({static_cast<int64_t>(sizes.size()), places.numel()}, kInt64, places.device());
  Tensor rest = places;
  for (size_t d = sizes.size(); d-- > 1;) {
    const int64_t size = std::max<int64_t>(sizes[d], 1);
    indices.select(0, static_cast<int64_t>(d)).copy_(rest.remainder(size));
    rest = rest.div(size, "trunc");
  }
  if (!sizes.empty()) indices.select(0, 0).copy_(rest);
  return indices;
}

// Note [Coalescing]
// The entries are sorted by their places, and those of one place are added in the order in which they stand: index_add
// adds so on both devices, and results repeat.
Tensor coalesced(const Tensor& tensor) {
  const SparseTensorImpl& parts = coo_parts(tensor, "coalesce");
  if (parts.is_coalesced()) return tensor;
  if (parts.nnz() < 2) return make_coo(tensor.sizes(), parts.indices(), parts.values(), true);
  const IntArrayRef sparse_sizes = tensor.sizes().slice(0, static_cast<size_t>(parts.sparse_dim()));
  const auto [places, order] = ops::sort_stable(places_of(parts.indices(), sparse_sizes), true, 0, false);
  const auto [distinct, which, counts] = rush::unique_consecutive(places, true);
  DimVector sizes(parts.values().sizes());
  sizes[0] = distinct.numel();
  const Tensor ordered = rush::index_select(parts.values(), 0, order);
  const bool all_distinct = sizes[0] == parts.nnz();
  const Tensor sums =
      all_distinct ? ordered : rush::zeros(sizes, parts.values().options()).index_add_(0, which, ordered);
  return make_coo(tensor.sizes(), indices_of(distinct, sparse_sizes), sums, true);
}

// ---- checks ----

namespace {

bool is_true(const Tensor& condition) { return condition.all().item().toBool(); }
int64_t number_at(const Tensor& indices, int64_t i) { return indices.select(0, i).item().toLong(); }

// Throws IndexError unless all of a dimension's indices are within its size.
void check_bounds(const char* op, const Tensor& indices, int64_t dim, int64_t size) {
  if (indices.numel() == 0) return;
  const int64_t least = indices.min().item().toLong(), largest = indices.max().item().toLong();
  RUSH_CHECK_INDEX(least >= 0, op, ": index ", least, " of dimension ", dim, " is negative");
  RUSH_CHECK_INDEX(largest < size, op, ": index ", largest, " is out of bounds for dimension ", dim, " with size ",
                   size);
}

void check_integer(const char* op, const char* what, const Tensor& indices) {
  RUSH_CHECK_TYPE(is_integral(indices.scalar_type(), false), op, ": ", what, " must be integers, got ",
                  indices.scalar_type());
}

void check_sparse_sizes(const char* op, IntArrayRef sizes) {
  for (int64_t size : sizes) RUSH_CHECK_VALUE(size >= 0, op, ": sizes must be non-negative, got ", sizes);
}

void check_dense_parts(const char* op, std::initializer_list<const Tensor*> parts) {
  for (const Tensor* part : parts) {
    RUSH_CHECK_VALUE(part->defined(), op, ": an argument is undefined");
    RUSH_CHECK_VALUE(is_dense(*part), op, ": indices and values must be dense, got layout ", part->layout());
    RUSH_CHECK_VALUE(!part->is_meta(), op, ": there are no sparse tensors on meta");
  }
}

void check_layout(const char* op, std::optional<Layout> given, Layout expected) {
  RUSH_CHECK_VALUE(!given || *given == expected, op, ": makes tensors of layout ", expected, ", not ", *given);
}

// Without what reads the indices.
void check_coo_shapes(const char* op, const Tensor& indices, const Tensor& values) {
  check_dense_parts(op, {&indices, &values});
  check_integer(op, "indices", indices);
  RUSH_CHECK_VALUE(indices.dim() == 2, op, ": indices must have two dimensions, sparse dimensions and entries, got ",
                   indices.sizes());
  RUSH_CHECK_VALUE(values.dim() >= 1 && values.size(0) == indices.size(1), op, ": values of shape ", values.sizes(),
                   " do not fit ", indices.size(1), " entries of indices of shape ", indices.sizes());
}

void check_coo_sizes(const char* op, const Tensor& indices, const Tensor& values, IntArrayRef size) {
  check_sparse_sizes(op, size);
  const size_t sparse = static_cast<size_t>(indices.size(0)), dense = values.sizes().size() - 1;
  RUSH_CHECK_VALUE(size.size() == sparse + dense && size.slice(sparse, dense) == values.sizes().slice(1, dense), op,
                   ": sizes ", size, " do not fit indices of shape ", indices.sizes(), " and values of shape ",
                   values.sizes());
  checked_numel(size);
}

void check_coo_indices(const char* op, const Tensor& indices, IntArrayRef size, bool coalesced) {
  for (int64_t d = 0; d < indices.size(0); ++d) {
    check_bounds(op, indices.select(0, d), d, size[static_cast<size_t>(d)]);
  }
  if (!coalesced || indices.size(1) < 2) return;
  const Tensor places = places_of(indices, size.slice(0, static_cast<size_t>(indices.size(0))));
  RUSH_CHECK_VALUE(is_true(places.slice(0, 1).gt(places.slice(0, 0, -1))), op,
                   ": is_coalesced is set, but the indices are not in ascending order, each once");
}

}  // namespace

static Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntArrayRef size, MaybeDtype dtype,
                                MaybeLayout layout, MaybeDevice device, MaybePin, std::optional<bool> is_coalesced) {
  constexpr const char* op = "sparse_coo_tensor";
  check_layout(op, layout, kSparse);
  check_coo_shapes(op, indices, values);
  check_coo_sizes(op, indices, values, size);
  const Tensor entries = values.to(TensorOptions().dtype(dtype).device(device));
  const Tensor columns = indices.to(TensorOptions(kInt64).device(entries.device()));
  check_coo_indices(op, columns, size, is_coalesced.value_or(false));
  return ops::_sparse_coo_tensor_unsafe(columns, entries, size, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                                        is_coalesced);
}

static Tensor sparse_coo_tensor_indices(const Tensor& indices, const Tensor& values, MaybeDtype dtype,
                                        MaybeLayout layout, MaybeDevice device, MaybePin pin,
                                        std::optional<bool> is_coalesced) {
  check_coo_shapes("sparse_coo_tensor", indices, values);
  DimVector size;
  for (int64_t d = 0; d < indices.size(0); ++d) {
    const Tensor row = indices.select(0, d);
    const int64_t largest = row.numel() == 0 ? -1 : row.max().item().toLong();
    RUSH_CHECK_VALUE(largest < std::numeric_limits<int64_t>::max(), "sparse_coo_tensor: index ", largest,
                     " is too large");
    size.push_back(std::max<int64_t>(largest + 1, 0));
  }
  for (int64_t d = 1; d < values.dim(); ++d) size.push_back(values.size(d));
  return sparse_coo_tensor(indices, values, size, dtype, layout, device, pin, is_coalesced);
}

static Tensor sparse_coo_tensor_size(IntArrayRef size, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device,
                                     MaybePin) {
  check_layout("sparse_coo_tensor", layout, kSparse);
  check_sparse_sizes("sparse_coo_tensor", size);
  return make_empty_sparse(kSparse, size, static_cast<int64_t>(size.size()), dtype.value_or(get_default_dtype()),
                           device.value_or(get_default_device()));
}

// The shapes are checked here too: kernels rely on them. What only reading the indices would show is not.
static Tensor _sparse_coo_tensor_unsafe(const Tensor& indices, const Tensor& values, IntArrayRef size, MaybeDtype dtype,
                                        MaybeLayout layout, MaybeDevice device, MaybePin,
                                        std::optional<bool> is_coalesced) {
  constexpr const char* op = "_sparse_coo_tensor_unsafe";
  check_layout(op, layout, kSparse);
  check_coo_shapes(op, indices, values);
  check_coo_sizes(op, indices, values, size);
  const Tensor entries = values.to(TensorOptions().dtype(dtype).device(device));
  return make_coo(size, indices.to(TensorOptions(kInt64).device(entries.device())), entries,
                  is_coalesced.value_or(false));
}

// ---- compressed layouts ----

namespace {

struct CompressedNames {
  const char *op, *compressed, *plain;
};
CompressedNames names_of(Layout layout) {
  switch (layout) {
    case kSparseCsr: return {"sparse_csr_tensor", "crow_indices", "col_indices"};
    case kSparseCsc: return {"sparse_csc_tensor", "ccol_indices", "row_indices"};
    case kSparseBsr: return {"sparse_bsr_tensor", "crow_indices", "col_indices"};
    case kSparseBsc: return {"sparse_bsc_tensor", "ccol_indices", "row_indices"};
    default: return {"sparse_compressed_tensor", "compressed_indices", "plain_indices"};
  }
}

void check_compressed_shapes(Layout layout, const Tensor& compressed, const Tensor& plain, const Tensor& values) {
  const auto [op, compressed_name, plain_name] = names_of(layout);
  RUSH_CHECK_VALUE(is_compressed(layout), op, ": needs a compressed layout, got ", layout);
  check_dense_parts(op, {&compressed, &plain, &values});
  const ScalarType dtype = compressed.scalar_type();
  RUSH_CHECK_TYPE((dtype == kInt64 || dtype == kInt32) && plain.scalar_type() == dtype, op, ": ", compressed_name,
                  " and ", plain_name, " must both be int64 or int32, got ", dtype, " and ", plain.scalar_type());
  RUSH_CHECK_VALUE(compressed.dim() == 1 && compressed.numel() >= 1 && plain.dim() == 1, op, ": ", compressed_name,
                   " and ", plain_name, " must have one dimension, and the first an element, got shapes ",
                   compressed.sizes(), " and ", plain.sizes());
  const int64_t dims = is_blocked(layout) ? 3 : 1;
  RUSH_CHECK_VALUE(values.dim() == dims && values.size(0) == plain.numel(), op, ": values of shape ", values.sizes(),
                   " do not fit ", plain.numel(), " ", plain_name, "; expected ", dims, " dimensions");
  RUSH_CHECK_VALUE(dims == 1 || (values.size(1) > 0 && values.size(2) > 0), op, ": blocks must not be empty, got ",
                   values.sizes());
  RUSH_CHECK_VALUE(compressed.device() == values.device() && plain.device() == values.device(), op,
                   ": indices and values are on different devices");
}

// Rows and columns, or for a layout that compresses columns the other way round, counted in blocks.
struct Grid {
  int64_t compressed, plain;
};
Grid check_compressed_sizes(Layout layout, const Tensor& compressed, const Tensor& values, IntArrayRef size) {
  const auto [op, compressed_name, plain_name] = names_of(layout);
  check_sparse_sizes(op, size);
  RUSH_CHECK_VALUE(size.size() == 2, op, ": only matrices are supported, got sizes ", size);
  checked_numel(size);
  const int64_t rows = is_blocked(layout) ? values.size(1) : 1, columns = is_blocked(layout) ? values.size(2) : 1;
  RUSH_CHECK_VALUE(size[0] % rows == 0 && size[1] % columns == 0, op, ": sizes ", size,
                   " are no multiples of blocks of (", rows, ", ", columns, ")");
  Grid grid{size[0] / rows, size[1] / columns};
  if (!compresses_rows(layout)) std::swap(grid.compressed, grid.plain);
  RUSH_CHECK_VALUE(compressed.numel() - 1 == grid.compressed, op, ": ", compressed_name,
                   " must have an element more than the ", grid.compressed, " lines of sizes ", size, ", got ",
                   compressed.numel());
  return grid;
}

void check_compressed_indices(Layout layout, const Tensor& compressed, const Tensor& plain, Grid grid) {
  const auto [op, compressed_name, plain_name] = names_of(layout);
  const int64_t nnz = plain.numel(), first = number_at(compressed, 0), last = number_at(compressed, -1);
  RUSH_CHECK_VALUE(first == 0 && last == nnz, op, ": ", compressed_name, " must go from 0 to ", nnz,
                   ", the number of entries, not from ", first, " to ", last);
  const Tensor counts = compressed.slice(0, 1) - compressed.slice(0, 0, -1);
  RUSH_CHECK_VALUE(is_true(counts.ge(0)), op, ": ", compressed_name, " must never fall");
  check_bounds(op, plain, compresses_rows(layout) ? 1 : 0, grid.plain);
  if (nnz < 2) return;
  const Tensor rows = ops::repeat_interleave_Tensor(counts.to(kInt64), nnz);
  const Tensor places = rows * grid.plain + plain;
  RUSH_CHECK_VALUE(is_true(places.slice(0, 1).gt(places.slice(0, 0, -1))), op, ": ", plain_name,
                   " must be in ascending order, each once, in every ", compresses_rows(layout) ? "row" : "column");
}

template <Layout fixed>
Layout chosen_layout(std::optional<Layout> given) {
  const char* op = names_of(fixed).op;
  if constexpr (fixed != kStrided) {
    check_layout(op, given, fixed);
    return fixed;
  } else {
    RUSH_CHECK_VALUE(given && is_compressed(*given), op, ": needs a compressed layout");
    return *given;
  }
}

}  // namespace

// `fixed` is the layout in the operator's name, kStrided where an argument says it.
template <Layout fixed>
static Tensor compressed_tensor(const Tensor& compressed, const Tensor& plain, const Tensor& values, IntArrayRef size,
                                MaybeDtype dtype, MaybeLayout layout, MaybeDevice device, MaybePin) {
  const Layout chosen = chosen_layout<fixed>(layout);
  check_compressed_shapes(chosen, compressed, plain, values);
  const Grid grid = check_compressed_sizes(chosen, compressed, values, size);
  check_compressed_indices(chosen, compressed, plain, grid);
  return ops::_sparse_compressed_tensor_unsafe(compressed, plain, values, size, dtype, chosen, device, std::nullopt);
}

template <Layout fixed>
static Tensor compressed_tensor_parts(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                                      MaybeDtype dtype, MaybeLayout layout, MaybeDevice device, MaybePin pin) {
  const Layout chosen = chosen_layout<fixed>(layout);
  check_compressed_shapes(chosen, compressed, plain, values);
  const int64_t lines = compressed.numel() - 1;
  const int64_t largest = plain.numel() == 0 ? -1 : plain.max().item().toLong();
  RUSH_CHECK_VALUE(largest < std::numeric_limits<int64_t>::max(), names_of(chosen).op, ": index ", largest,
                   " is too large");
  const int64_t crossing = std::max<int64_t>(largest + 1, 0);
  const bool rows_first = compresses_rows(chosen);
  DimVector size{rows_first ? lines : crossing, rows_first ? crossing : lines};
  if (is_blocked(chosen)) {
    for (size_t d = 0; d < 2; ++d) {
      size[d] = multiply_sizes(names_of(chosen).op, size[d], values.size(static_cast<int64_t>(d) + 1));
    }
  }
  return compressed_tensor<fixed>(compressed, plain, values, size, dtype, layout, device, pin);
}

static Tensor _sparse_compressed_tensor_unsafe(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                                               IntArrayRef size, MaybeDtype dtype, MaybeLayout layout,
                                               MaybeDevice device, MaybePin) {
  const Layout chosen = chosen_layout<kStrided>(layout);
  check_compressed_shapes(chosen, compressed, plain, values);
  check_compressed_sizes(chosen, compressed, values, size);
  const Tensor entries = values.to(TensorOptions().dtype(dtype).device(device));
  const Device where = entries.device();
  return make_compressed(chosen, size, compressed.to(where), plain.to(where), entries);
}

// ---- parts ----

static int64_t _nnz(const Tensor& self) {
  return self.layout() == kSparse ? coo_parts(self, "_nnz").nnz() : compressed_parts(self).nnz();
}
static int64_t sparse_dim(const Tensor& self) {
  return self.layout() == kSparse ? coo_parts(self, "sparse_dim").sparse_dim() : 2;
}
static int64_t dense_dim(const Tensor& self) {
  return self.layout() == kSparse ? coo_parts(self, "dense_dim").dense_dim() : 0;
}
static int64_t sparse_dim_of_dense(const Tensor&) { return 0; }
static int64_t dense_dim_of_dense(const Tensor& self) { return self.dim(); }
static bool is_coalesced(const Tensor& self) { return coo_parts(self, "is_coalesced").is_coalesced(); }

static void check_coalesced(const char* op, const Tensor& self) {
  RUSH_CHECK_VALUE(self.layout() != kSparse || self.is_coalesced(), op,
                   ": the tensor is not coalesced; call coalesce() first");
}
static Tensor _indices(const Tensor& self) { return detail::make_alias(coo_parts(self, "_indices").indices()); }
static Tensor indices(const Tensor& self) {
  coo_parts(self, "indices");
  check_coalesced("indices", self);
  return ops::_indices(self);
}
static Tensor _values(const Tensor& self) { return detail::make_alias(stored_values(self)); }
static Tensor values(const Tensor& self) {
  check_coalesced("values", self);
  return ops::_values(self);
}

template <bool rows, bool compressed>
static Tensor compressed_part(const Tensor& self) {
  constexpr const char* op =
      rows ? (compressed ? "crow_indices" : "col_indices") : (compressed ? "ccol_indices" : "row_indices");
  RUSH_CHECK_VALUE(is_compressed(self.layout()) && compresses_rows(self.layout()) == rows, op, ": a tensor of layout ",
                   self.layout(), " has none");
  const SparseCsrTensorImpl& parts = compressed_parts(self);
  return detail::make_alias(compressed ? parts.compressed_indices() : parts.plain_indices());
}

static Tensor _coalesce(const Tensor& self) {
  const Tensor result = coalesced(self);
  return result.is_same(self) ? detail::make_alias(self) : result;
}
static Tensor coalesce(const Tensor& self) { return self.is_coalesced() ? self : ops::_coalesce(self); }
static Tensor& _coalesced_(Tensor& self, bool value) {
  coo_parts(self, "_coalesced_");
  static_cast<SparseTensorImpl*>(self.impl())->set_coalesced(value);
  return self;
}

}  // namespace native

void register_sparse_ops(Registry& r) {
  using native::compressed_tensor, native::compressed_tensor_parts, native::compressed_part;
  r.native(ops::sparse_coo_tensor_size, native::sparse_coo_tensor_size);
  r.composite(ops::sparse_coo_tensor_indices, native::sparse_coo_tensor_indices);
  r.composite(ops::sparse_coo_tensor, native::sparse_coo_tensor);
  r.native(ops::_sparse_coo_tensor_unsafe, native::_sparse_coo_tensor_unsafe);
  r.composite(ops::sparse_compressed_tensor, compressed_tensor<kStrided>);
  r.composite(ops::sparse_compressed_tensor_parts, compressed_tensor_parts<kStrided>);
  r.composite(ops::sparse_csr_tensor, compressed_tensor<kSparseCsr>);
  r.composite(ops::sparse_csr_tensor_parts, compressed_tensor_parts<kSparseCsr>);
  r.composite(ops::sparse_csc_tensor, compressed_tensor<kSparseCsc>);
  r.composite(ops::sparse_csc_tensor_parts, compressed_tensor_parts<kSparseCsc>);
  r.composite(ops::sparse_bsr_tensor, compressed_tensor<kSparseBsr>);
  r.composite(ops::sparse_bsr_tensor_parts, compressed_tensor_parts<kSparseBsr>);
  r.composite(ops::sparse_bsc_tensor, compressed_tensor<kSparseBsc>);
  r.composite(ops::sparse_bsc_tensor_parts, compressed_tensor_parts<kSparseBsc>);
  r.native(ops::_sparse_compressed_tensor_unsafe, native::_sparse_compressed_tensor_unsafe);
  r.sparse(ops::_nnz, native::_nnz);
  r.native(ops::sparse_dim, native::sparse_dim_of_dense);
  r.sparse(ops::sparse_dim, native::sparse_dim);
  r.native(ops::dense_dim, native::dense_dim_of_dense);
  r.sparse(ops::dense_dim, native::dense_dim);
  r.sparse(ops::is_coalesced, native::is_coalesced);
  r.sparse(ops::_indices, native::_indices);
  r.sparse(ops::indices, native::indices);
  r.sparse(ops::_values, native::_values);
  r.composite(ops::values, native::values);
  r.sparse(ops::crow_indices, compressed_part<true, true>);
  r.sparse(ops::col_indices, compressed_part<true, false>);
  r.sparse(ops::ccol_indices, compressed_part<false, true>);
  r.sparse(ops::row_indices, compressed_part<false, false>);
  r.sparse(ops::_coalesce, native::_coalesce);
  r.composite(ops::coalesce, native::coalesce);
  r.sparse(ops::_coalesced_, native::_coalesced_);
}

using detail::call_factory;

// Those of COO tensors end with is_coalesced.
template <class FactoryOp, class... Args>
static Tensor call_coo_factory(const FactoryOp& op, const TensorOptions& o, std::optional<bool> is_coalesced,
                               const Args&... args) {
  return detail::finish_factory(
      op(args..., o.dtype_opt(), o.layout_opt(), o.device_opt(), o.pinned_memory_opt(), is_coalesced), o);
}

Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntArrayRef size, const TensorOptions& o,
                         std::optional<bool> is_coalesced) {
  return call_coo_factory(ops::sparse_coo_tensor, o, is_coalesced, indices, values, size);
}
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const TensorOptions& o,
                         std::optional<bool> is_coalesced) {
  return call_coo_factory(ops::sparse_coo_tensor_indices, o, is_coalesced, indices, values);
}
Tensor sparse_coo_tensor(IntArrayRef size, const TensorOptions& o) {
  return call_factory(ops::sparse_coo_tensor_size, o, size);
}
Tensor _sparse_coo_tensor_unsafe(const Tensor& indices, const Tensor& values, IntArrayRef size, const TensorOptions& o,
                                 std::optional<bool> is_coalesced) {
  return call_coo_factory(ops::_sparse_coo_tensor_unsafe, o, is_coalesced, indices, values, size);
}

#define RUSH_COMPRESSED_FACTORY(name)                                                                        \
  Tensor name(const Tensor& compressed, const Tensor& plain, const Tensor& values, IntArrayRef size,         \
              const TensorOptions& o) {                                                                      \
    return call_factory(ops::name, o, compressed, plain, values, size);                                      \
  }                                                                                                          \
  Tensor name(const Tensor& compressed, const Tensor& plain, const Tensor& values, const TensorOptions& o) { \
    return call_factory(ops::name##_parts, o, compressed, plain, values);                                    \
  }
RUSH_COMPRESSED_FACTORY(sparse_compressed_tensor)
RUSH_COMPRESSED_FACTORY(sparse_csr_tensor)
RUSH_COMPRESSED_FACTORY(sparse_csc_tensor)
RUSH_COMPRESSED_FACTORY(sparse_bsr_tensor)
RUSH_COMPRESSED_FACTORY(sparse_bsc_tensor)
#undef RUSH_COMPRESSED_FACTORY
Tensor _sparse_compressed_tensor_unsafe(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                                        IntArrayRef size, const TensorOptions& o) {
  return call_factory(ops::_sparse_compressed_tensor_unsafe, o, compressed, plain, values, size);
}

Tensor Tensor::coalesce() const { return ops::coalesce(*this); }
Tensor& Tensor::_coalesced_(bool coalesced) const { return ops::_coalesced_(self(), coalesced); }
bool Tensor::is_coalesced() const { return ops::is_coalesced(*this); }
int64_t Tensor::_nnz() const { return ops::_nnz(*this); }
int64_t Tensor::sparse_dim() const { return ops::sparse_dim(*this); }
int64_t Tensor::dense_dim() const { return ops::dense_dim(*this); }
Tensor Tensor::indices() const { return ops::indices(*this); }
Tensor Tensor::values() const { return ops::values(*this); }
Tensor Tensor::_indices() const { return ops::_indices(*this); }
Tensor Tensor::_values() const { return ops::_values(*this); }
Tensor Tensor::crow_indices() const { return ops::crow_indices(*this); }
Tensor Tensor::col_indices() const { return ops::col_indices(*this); }
Tensor Tensor::ccol_indices() const { return ops::ccol_indices(*this); }
Tensor Tensor::row_indices() const { return ops::row_indices(*this); }

}  // namespace rush
