// What views make, in memory of its own: *_copy, *_scatter, unsafe_*, and the splits along one named dimension.
#pragma once
#include "ATen/operators/operator_names.h"

namespace rush {
inline namespace aten {

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
RUSH_VIEW_COPY(view, (IntArrayRef size), reshape(size))
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
std::vector<Tensor> split_copy(const Tensor& self, int64_t split_size, int64_t dim = 0);
std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntArrayRef split_sizes, int64_t dim = 0);
std::vector<Tensor> unbind_copy(const Tensor& self, int64_t dim = 0);

inline Tensor alias(const Tensor& self) { return self.alias(); }
// "Unsafe" because writes to the results are not checked against each other. Here they are.
std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim = 0);
std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim = 0);
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim = 0);

Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntArrayRef size, IntArrayRef stride,
                          std::optional<int64_t> storage_offset = std::nullopt);
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index);
Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim = 0,
                     std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end = std::nullopt,
                     int64_t step = 1);
/// The view of `src` that `self`, which a slice of it is, has in its memory: `src` with self's values.
Tensor slice_inverse(const Tensor& self, const Tensor& src, int64_t /*dim*/ = 0,
                     std::optional<int64_t> /*start*/ = std::nullopt, std::optional<int64_t> /*end*/ = std::nullopt,
                     int64_t /*step*/ = 1);

// ---- NumPy's splits: into equal sections, or before each index ----
#define RUSH_SPLIT_ALONG(name)                                                                         \
  std::vector<Tensor> name(const Tensor& self, int64_t sections);                                      \
  std::vector<Tensor> name(const Tensor& self, IntArrayRef indices);                                   \
  inline std::vector<Tensor> name(const Tensor& self, const std::initializer_list<int64_t>& indices) { \
    return name(self, IntArrayRef(indices));                                                           \
  }
RUSH_SPLIT_ALONG(hsplit)
RUSH_SPLIT_ALONG(vsplit)
RUSH_SPLIT_ALONG(dsplit)
#undef RUSH_SPLIT_ALONG

// ---- joined and combined ----
std::vector<Tensor> broadcast_tensors(TensorList tensors);
std::vector<Tensor> atleast_1d(TensorList tensors);
std::vector<Tensor> atleast_2d(TensorList tensors);
std::vector<Tensor> atleast_3d(TensorList tensors);
/// Rows of one element of each vector, in lexicographic order of their indices. One vector is returned as it is.
Tensor cartesian_prod(TensorList tensors);
/// Rows of r elements of a vector, in order, each at most once unless `with_replacement`.
Tensor combinations(const Tensor& self, int64_t r = 2, bool with_replacement = false);

}  // namespace aten
}  // namespace rush
