// What views make, in memory of its own: *_copy, *_scatter, unsafe_*, and the splits along one named dimension.
#pragma once
#include "ATen/operator_names.h"

namespace rush {
inline namespace aten {

namespace aten_detail {
inline std::vector<Tensor> clones(std::vector<Tensor> views) {
  for (Tensor& view : views) view = view.clone(MemoryFormat::Contiguous);
  return views;
}
}  // namespace aten_detail

// ---- copies of views, row-major ----
#define RUSH_VIEW_COPY(name, declared, view)                             \
  inline Tensor name##_copy(const Tensor& self RUSH_UNPACKED declared) { \
    return self.view.clone(MemoryFormat::Contiguous);                    \
  }
#define RUSH_UNPACKED(...) __VA_OPT__(, ) __VA_ARGS__
RUSH_VIEW_COPY(alias, (), alias())
RUSH_VIEW_COPY(as_strided, (IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset = {}),
               as_strided(size, stride, storage_offset))
RUSH_VIEW_COPY(detach, (), detach())
RUSH_VIEW_COPY(diagonal, (int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1), diagonal(offset, dim1, dim2))
RUSH_VIEW_COPY(expand, (IntArrayRef size, bool implicit = false), expand(size, implicit))
RUSH_VIEW_COPY(narrow, (int64_t dim, int64_t start, int64_t length), narrow(dim, start, length))
RUSH_VIEW_COPY(permute, (IntArrayRef dims), permute(dims))
RUSH_VIEW_COPY(select, (int64_t dim, int64_t index), select(dim, index))
RUSH_VIEW_COPY(slice,
               (int64_t dim = 0, std::optional<int64_t> start = {}, std::optional<int64_t> end = {}, int64_t step = 1),
               slice(dim, start, end, step))
RUSH_VIEW_COPY(squeeze, (), squeeze())
RUSH_VIEW_COPY(squeeze, (int64_t dim), squeeze(dim))
RUSH_VIEW_COPY(squeeze, (IntArrayRef dim), squeeze(dim))
RUSH_VIEW_COPY(squeeze, (const std::initializer_list<int64_t>& dim), squeeze(dim))
RUSH_VIEW_COPY(t, (), t())
RUSH_VIEW_COPY(transpose, (int64_t dim0, int64_t dim1), transpose(dim0, dim1))
RUSH_VIEW_COPY(unfold, (int64_t dimension, int64_t size, int64_t step), unfold(dimension, size, step))
RUSH_VIEW_COPY(unsqueeze, (int64_t dim), unsqueeze(dim))
RUSH_VIEW_COPY(view, (IntArrayRef size), view(size))
RUSH_VIEW_COPY(view, (ScalarType dtype), view(dtype))
// The parts of a sparse tensor.
RUSH_VIEW_COPY(indices, (), indices())
RUSH_VIEW_COPY(values, (), values())
RUSH_VIEW_COPY(crow_indices, (), crow_indices())
RUSH_VIEW_COPY(col_indices, (), col_indices())
RUSH_VIEW_COPY(ccol_indices, (), ccol_indices())
RUSH_VIEW_COPY(row_indices, (), row_indices())
#undef RUSH_UNPACKED
#undef RUSH_VIEW_COPY
inline Tensor view_as_complex_copy(const Tensor& self) { return view_as_complex(self).clone(); }
inline Tensor view_as_real_copy(const Tensor& self) { return view_as_real(self).clone(); }
inline std::vector<Tensor> split_copy(const Tensor& self, int64_t split_size, int64_t dim = 0) {
  return aten_detail::clones(self.split(split_size, dim));
}
inline std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntArrayRef split_sizes, int64_t dim = 0) {
  return aten_detail::clones(self.split_with_sizes(split_sizes, dim));
}
inline std::vector<Tensor> unbind_copy(const Tensor& self, int64_t dim = 0) {
  return aten_detail::clones(self.unbind(dim));
}

inline Tensor alias(const Tensor& self) { return self.alias(); }
// "Unsafe" because writes to the results are not checked against each other. Here they are.
inline std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim = 0) {
  return self.chunk(chunks, dim);
}
inline std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim = 0) {
  return self.split(split_size, dim);
}
inline std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim = 0) {
  return self.split_with_sizes(split_sizes, dim);
}

// ---- self with `src` where a view of it lies ----
namespace aten_detail {
inline Tensor with_part(const Tensor& self, const Tensor& src, const char* name,
                        const std::function<Tensor(const Tensor&)>& view) {
  const Tensor out = self.clone();
  const Tensor part = view(out);
  RUSH_CHECK_VALUE(part.sizes() == src.sizes(), name, ": src has sizes ", src.sizes(), ", the part of self has ",
                   part.sizes());
  part.copy_(src);
  return out;
}
}  // namespace aten_detail

inline Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntArrayRef size, IntArrayRef stride,
                                 std::optional<int64_t> storage_offset = std::nullopt) {
  return aten_detail::with_part(self, src, "as_strided_scatter",
                                [&](const Tensor& out) { return out.as_strided(size, stride, storage_offset); });
}
inline Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset = 0, int64_t dim1 = 0,
                               int64_t dim2 = 1) {
  return aten_detail::with_part(self, src, "diagonal_scatter",
                                [&](const Tensor& out) { return out.diagonal(offset, dim1, dim2); });
}
inline Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  return aten_detail::with_part(self, src, "select_scatter", [&](const Tensor& out) { return out.select(dim, index); });
}
inline Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim = 0,
                            std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end = std::nullopt,
                            int64_t step = 1) {
  return aten_detail::with_part(self, src, "slice_scatter",
                                [&](const Tensor& out) { return out.slice(dim, start, end, step); });
}
/// The view of `src` that `self`, which a slice of it is, has in its memory: `src` with self's values.
inline Tensor slice_inverse(const Tensor& self, const Tensor& src, int64_t /*dim*/ = 0,
                            std::optional<int64_t> /*start*/ = std::nullopt,
                            std::optional<int64_t> /*end*/ = std::nullopt, int64_t /*step*/ = 1) {
  return self.as_strided(src.sizes(), src.strides(), src.storage_offset());
}

// ---- NumPy's splits: into equal sections, or before each index ----
namespace aten_detail {
inline void check_split(const Tensor& self, const char* name, int64_t dims, int64_t dim, int64_t sections = 1) {
  RUSH_CHECK_VALUE(self.dim() >= dims, name, ": needs a tensor of at least ", dims, " dimensions, got ", self.dim());
  RUSH_CHECK_VALUE(sections > 0 && self.size(dim) % sections == 0, name, ": cannot split ", self.size(dim),
                   " elements into ", sections, " equal sections");
}
}  // namespace aten_detail

#define RUSH_SPLIT_ALONG(name, dims, along)                                                            \
  inline std::vector<Tensor> name(const Tensor& self, int64_t sections) {                              \
    aten_detail::check_split(self, #name, dims, along, sections);                                      \
    return self.tensor_split(sections, along);                                                         \
  }                                                                                                    \
  inline std::vector<Tensor> name(const Tensor& self, IntArrayRef indices) {                           \
    aten_detail::check_split(self, #name, dims, along);                                                \
    return self.tensor_split(indices, along);                                                          \
  }                                                                                                    \
  inline std::vector<Tensor> name(const Tensor& self, const std::initializer_list<int64_t>& indices) { \
    return name(self, IntArrayRef(indices));                                                           \
  }
RUSH_SPLIT_ALONG(hsplit, 1, (self.dim() == 1 ? 0 : 1))
RUSH_SPLIT_ALONG(vsplit, 2, 0)
RUSH_SPLIT_ALONG(dsplit, 3, 2)
#undef RUSH_SPLIT_ALONG

// ---- joined and combined ----
inline std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  std::vector<int64_t> sizes;
  for (const Tensor& tensor : tensors) {
    const auto dims = static_cast<size_t>(tensor.dim());
    if (dims > sizes.size()) sizes.insert(sizes.begin(), dims - sizes.size(), 1);
    for (size_t i = 0; i < dims; ++i) {
      int64_t& size = sizes[sizes.size() - dims + i];
      if (size == 1) size = tensor.size(static_cast<int64_t>(i));
    }
  }
  std::vector<Tensor> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.expand(sizes));
  return views;
}
/// Rows of one element of each vector, in lexicographic order of their indices. One vector is returned as it is.
inline Tensor cartesian_prod(TensorList tensors) {
  for (const Tensor& tensor : tensors) {
    RUSH_CHECK_VALUE(tensor.dim() == 1, "cartesian_prod: needs vectors, got a tensor of sizes ", tensor.sizes());
  }
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> columns = meshgrid(tensors, "ij");
  for (Tensor& column : columns) column = column.flatten();
  return stack(columns, 1);
}
/// Rows of r elements of a vector, in order, each at most once unless `with_replacement`.
inline Tensor combinations(const Tensor& self, int64_t r = 2, bool with_replacement = false) {
  RUSH_CHECK_VALUE(self.dim() == 1 && r >= 0, "combinations: needs a vector and r >= 0, got ", self.dim(),
                   " dimensions and r = ", r);
  if (r == 0) return empty({0}, self.options());
  const Tensor index = arange(self.numel(), TensorOptions(kInt64).device(self.device()));
  const std::vector<Tensor> grids = meshgrid(std::vector<Tensor>(static_cast<size_t>(r), index), "ij");
  Tensor mask = full(grids[0].sizes(), true, TensorOptions(kBool).device(self.device()));
  for (size_t i = 0; i + 1 < grids.size(); ++i) {
    mask = mask.logical_and(with_replacement ? grids[i].le(grids[i + 1]) : grids[i].lt(grids[i + 1]));
  }
  std::vector<Tensor> columns;
  for (const Tensor& grid : grids) columns.push_back(self.index_select(0, grid.masked_select(mask)));
  return stack(columns, 1);
}

}  // namespace aten
}  // namespace rush
