#include "ATen/operators/view_copies.h"

namespace rush {
inline namespace aten {

namespace {
std::vector<Tensor> clones(std::vector<Tensor> views) {
  for (Tensor& view : views) view = view.clone(MemoryFormat::Contiguous);
  return views;
}
}  // namespace

std::vector<Tensor> split_copy(const Tensor& self, int64_t split_size, int64_t dim) {
  return clones(self.split(split_size, dim));
}
std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  return clones(self.split_with_sizes(split_sizes, dim));
}
std::vector<Tensor> unbind_copy(const Tensor& self, int64_t dim) { return clones(self.unbind(dim)); }
std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) { return self.chunk(chunks, dim); }
std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim) {
  return self.split(split_size, dim);
}
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  return self.split_with_sizes(split_sizes, dim);
}

// ---- self with `src` where a view of it lies ----
namespace {
Tensor with_part(const Tensor& self, const Tensor& src, const char* name,
                 const std::function<Tensor(const Tensor&)>& view) {
  const Tensor out = self.clone();
  const Tensor part = view(out);
  RUSH_CHECK_VALUE(part.sizes() == src.sizes(), name, ": src has sizes ", src.sizes(), ", the part of self has ",
                   part.sizes());
  part.copy_(src);
  return out;
}
}  // namespace

Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntArrayRef size, IntArrayRef stride,
                          std::optional<int64_t> storage_offset) {
  // `size` and `stride` tell about self's memory, which the copy is of.
  const int64_t held = static_cast<int64_t>(self.storage()->nbytes()) / self.element_size();
  const Tensor memory = with_part(self.as_strided({held}, {1}, 0), src, "as_strided_scatter", [&](const Tensor& out) {
    return out.as_strided(size, stride, storage_offset.value_or(self.storage_offset()));
  });
  return memory.as_strided(self.sizes(), self.strides(), self.storage_offset());
}
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
  return with_part(self, src, "diagonal_scatter", [&](const Tensor& out) { return out.diagonal(offset, dim1, dim2); });
}
Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  return with_part(self, src, "select_scatter", [&](const Tensor& out) { return out.select(dim, index); });
}
Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
  return with_part(self, src, "slice_scatter", [&](const Tensor& out) { return out.slice(dim, start, end, step); });
}
Tensor slice_inverse(const Tensor& self, const Tensor& src, int64_t /*dim*/, std::optional<int64_t> /*start*/,
                     std::optional<int64_t> /*end*/, int64_t /*step*/) {
  return self.as_strided(src.sizes(), src.strides(), src.storage_offset());
}

// ---- NumPy's splits: into equal sections, or before each index ----
namespace {
void check_split(const Tensor& self, const char* name, int64_t dims, int64_t dim, int64_t sections = 1) {
  RUSH_CHECK_VALUE(self.dim() >= dims, name, ": needs a tensor of at least ", dims, " dimensions, got ", self.dim());
  RUSH_CHECK_VALUE(sections > 0 && self.size(dim) % sections == 0, name, ": cannot split ", self.size(dim),
                   " elements into ", sections, " equal sections");
}
}  // namespace

#define RUSH_SPLIT_ALONG(name, dims, along)                           \
  std::vector<Tensor> name(const Tensor& self, int64_t sections) {    \
    check_split(self, #name, dims, along, sections);                  \
    return self.tensor_split(sections, along);                        \
  }                                                                   \
  std::vector<Tensor> name(const Tensor& self, IntArrayRef indices) { \
    check_split(self, #name, dims, along);                            \
    return self.tensor_split(indices, along);                         \
  }
RUSH_SPLIT_ALONG(hsplit, 1, (self.dim() == 1 ? 0 : 1))
RUSH_SPLIT_ALONG(vsplit, 2, 0)
RUSH_SPLIT_ALONG(dsplit, 3, 2)
#undef RUSH_SPLIT_ALONG

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
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
#define RUSH_OF_EACH(name)                                                    \
  std::vector<Tensor> name(TensorList tensors) {                              \
    std::vector<Tensor> views;                                                \
    for (const Tensor& tensor : tensors) views.push_back(rush::name(tensor)); \
    return views;                                                             \
  }
RUSH_OF_EACH(atleast_1d)
RUSH_OF_EACH(atleast_2d)
RUSH_OF_EACH(atleast_3d)
#undef RUSH_OF_EACH
Tensor cartesian_prod(TensorList tensors) {
  for (const Tensor& tensor : tensors) {
    RUSH_CHECK_VALUE(tensor.dim() == 1, "cartesian_prod: needs vectors, got a tensor of sizes ", tensor.sizes());
  }
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> columns = meshgrid(tensors, "ij");
  for (Tensor& column : columns) column = column.flatten();
  return stack(columns, 1);
}
Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
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
