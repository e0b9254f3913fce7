#include "core/ops/view/join.h"

#include <algorithm>

#include "core/iterator/tensor_iterator.h"
#include "core/ops/basic.h"
#include "core/ops/register.h"
#include "core/print/bracketed.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

// A one-dimensional tensor without elements joins anything, as in PyTorch, where it once was the only empty tensor.
static bool is_skipped(const Tensor& t) { return t.dim() == 1 && t.sizes()[0] == 0; }

// The sizes of the tensors side by side along `dim`, which `first` has.
static DimVector joined_sizes(TensorList tensors, const Tensor& first, int64_t dim) {
  DimVector sizes(first.sizes());
  sizes[dim] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (is_skipped(t)) continue;
    RUSH_CHECK_VALUE(t.dim() == first.dim(), "cat: Tensors must have same number of dimensions: got ", first.dim(),
                     " and ", t.dim(), ", of shapes ", first.sizes(), " and ", t.sizes());
    for (int64_t d = 0; d < t.dim(); ++d) {
      RUSH_CHECK_VALUE(d == dim || t.sizes()[d] == sizes[d], "cat: Sizes of tensors must match except in dimension ",
                       dim, ", expected size ", sizes[d], " but got size ", t.sizes()[d], " for tensor number ", i,
                       " in the list, of shape ", t.sizes(), " where an earlier one has ", first.sizes());
    }
    sizes[dim] = add_sizes("cat", sizes[dim], t.sizes()[dim]);
  }
  return sizes;
}

// The format of all, row-major where they differ.
static MemoryFormat common_format(TensorList tensors) {
  const MemoryFormat format = tensors[0].suggest_memory_format();
  for (const Tensor& t : tensors) {
    if (t.suggest_memory_format() != format) return MemoryFormat::Contiguous;
  }
  return format;
}

static Tensor cat(TensorList tensors, int64_t dim) {
  RUSH_CHECK_VALUE(!tensors.empty(), "cat: expected a non-empty list of Tensors");
  for (size_t i = 0; i < tensors.size(); ++i) {
    RUSH_CHECK_VALUE(tensors[i].defined(), "cat: tensor ", i, " is undefined");
    RUSH_CHECK_VALUE(tensors[i].dim() > 0, "cat: zero-dimensional tensor (at position ", i,
                     ") cannot be concatenated; use stack");
    RUSH_CHECK_VALUE(tensors[i].device() == tensors[0].device(), "cat: tensors are on ", tensors[0].device(),
                     " and on ", tensors[i].device());
  }
  const auto kept = std::find_if_not(tensors.begin(), tensors.end(), is_skipped);
  const Tensor& first = kept == tensors.end() ? tensors[0] : *kept;
  dim = wrap_dim(dim, first.dim(), "cat");
  const ScalarType dtype = result_type(tensors);
  Tensor out = detail::empty_format(joined_sizes(tensors, first, dim), dtype, first.device(), common_format(tensors));
  if (!out.is_meta() && kernels::cat.has(out.device().type)) {
    kernels::cat(out.device().type, out, tensors, dim);
    return out;
  }
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    if (is_skipped(t)) continue;
    Tensor place = part(out, dim, start, t.sizes()[dim]);
    native::copy_(place, t, false);
    start += t.sizes()[dim];
  }
  return out;
}

static Tensor stack(TensorList tensors, int64_t dim) {
  RUSH_CHECK_VALUE(!tensors.empty(), "stack expects a non-empty TensorList");
  for (size_t i = 1; i < tensors.size(); ++i) {
    RUSH_CHECK_VALUE(tensors[i].sizes() == tensors[0].sizes(), "stack expects each tensor to be equal size, but got ",
                     bracketed(tensors[0].sizes()), " at entry 0 and ", bracketed(tensors[i].sizes()), " at entry ", i);
  }
  dim = wrap_dim(dim, tensors[0].dim() + 1, "stack");
  std::vector<Tensor> slices;
  slices.reserve(tensors.size());
  for (const Tensor& t : tensors) slices.push_back(ops::unsqueeze(t, dim));
  return native::cat(slices, dim);
}

template <Tensor (*prepare)(const Tensor&)>
static std::vector<Tensor> each(TensorList tensors, const char* op) {
  RUSH_CHECK_VALUE(!tensors.empty(), op, ": expected at least one tensor");
  std::vector<Tensor> prepared;
  for (const Tensor& t : tensors) prepared.push_back(prepare(t));
  return prepared;
}

static Tensor hstack(TensorList tensors) {
  const std::vector<Tensor> rows = each<rush::atleast_1d>(tensors, "hstack");
  return ops::cat(rows, rows[0].dim() == 1 ? 0 : 1);
}
static Tensor vstack(TensorList tensors) { return ops::cat(each<rush::atleast_2d>(tensors, "vstack"), 0); }
static Tensor dstack(TensorList tensors) { return ops::cat(each<rush::atleast_3d>(tensors, "dstack"), 2); }

static Tensor as_column(const Tensor& t) { return t.dim() <= 1 ? t.reshape({t.numel(), 1}) : t; }
static Tensor column_stack(TensorList tensors) { return ops::hstack(each<as_column>(tensors, "column_stack")); }

// Each matrix widened by zeros on both sides, then all below one another.
static Tensor block_diag(TensorList tensors) {
  const std::vector<Tensor> blocks = each<rush::atleast_2d>(tensors, "block_diag");
  int64_t width = 0;
  for (const Tensor& block : blocks) {
    RUSH_CHECK_VALUE(block.dim() == 2, "block_diag: expected at most 2 dimensions, got sizes ", block.sizes());
    width = add_sizes("block_diag", width, block.sizes()[1]);
  }
  std::vector<Tensor> rows;
  int64_t left = 0;
  for (const Tensor& block : blocks) {
    const int64_t height = block.sizes()[0], right = left + block.sizes()[1];
    const Tensor beside = zeros({height, width - block.sizes()[1]}, block.options());
    rows.push_back(ops::cat({beside.narrow(1, 0, left), block, beside.narrow(1, left, width - right)}, 1));
    left = right;
  }
  return ops::cat(rows, 0);
}

// (s0, s1, ...) -> (1, s0, 1, s1, ...), expanded to (r0, s0, r1, s1, ...), -> (r0 s0, r1 s1, ...)
static Tensor repeat(const Tensor& self, IntArrayRef repeats) {
  RUSH_CHECK_VALUE(repeats.size() >= self.sizes().size(),
                   "repeat: Number of dimensions of repeat dims can not be smaller than "
                   "number of dimensions of tensor, got ",
                   repeats, " for ", self.dim(), " dimensions");
  DimVector apart, expanded, merged;
  const size_t lead = repeats.size() - self.sizes().size();
  for (size_t d = 0; d < repeats.size(); ++d) {
    RUSH_CHECK_VALUE(repeats[d] >= 0, "repeat: repeats must be non-negative, got ", repeats);
    const int64_t size = d < lead ? 1 : self.sizes()[d - lead];
    for (int64_t s : {int64_t{1}, size}) apart.push_back(s);
    for (int64_t s : {repeats[d], size}) expanded.push_back(s);
    merged.push_back(multiply_sizes("repeat", repeats[d], size));
  }
  const Tensor result = self.reshape(apart).expand(expanded).reshape(merged);
  return result.is_alias_of(self) ? result.clone() : result;
}

static Tensor tile(const Tensor& self, IntArrayRef dims) {
  if (dims.size() >= self.sizes().size()) return ops::repeat(self, dims);
  DimVector repeats(self.sizes().size() - dims.size(), 1);
  for (int64_t times : dims) repeats.push_back(times);
  return ops::repeat(self, repeats);
}

static std::vector<Tensor> meshgrid(TensorList tensors) {
  RUSH_CHECK_VALUE(!tensors.empty(), "meshgrid: expected at least one tensor");
  DimVector sizes;
  for (const Tensor& t : tensors) {
    RUSH_CHECK_VALUE(t.dim() <= 1, "meshgrid: expected vectors, got sizes ", t.sizes());
    RUSH_CHECK_VALUE(t.scalar_type() == tensors[0].scalar_type() && t.device() == tensors[0].device(),
                     "meshgrid: expected tensors of one dtype on one device");
    sizes.push_back(t.numel());
  }
  std::vector<Tensor> grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    DimVector along(sizes.size(), 1);
    along[i] = sizes[i];
    grids.push_back(tensors[i].view(along).expand(sizes));
  }
  return grids;
}

static std::vector<Tensor> meshgrid_indexing(TensorList tensors, std::string_view indexing) {
  RUSH_CHECK_VALUE(indexing == "ij" || indexing == "xy", "meshgrid: indexing must be \"ij\" or \"xy\", got \"",
                   indexing, "\"");
  if (indexing == "ij" || tensors.size() < 2) return ops::meshgrid(tensors);
  std::vector<Tensor> swapped(tensors.begin(), tensors.end());
  std::swap(swapped[0], swapped[1]);
  std::vector<Tensor> grids = ops::meshgrid(swapped);
  std::swap(grids[0], grids[1]);
  return grids;
}

}  // namespace native

void register_join_ops(Registry& r) {
  r.native(ops::cat, native::cat);
  r.composite(ops::concat, native::same_as<ops::cat>);
  r.composite(ops::concatenate, native::same_as<ops::cat>);
  r.native(ops::stack, native::stack);
  r.composite(ops::hstack, native::hstack);
  r.composite(ops::vstack, native::vstack);
  r.composite(ops::row_stack, native::vstack);
  r.composite(ops::dstack, native::dstack);
  r.composite(ops::column_stack, native::column_stack);
  r.composite(ops::block_diag, native::block_diag);
  r.composite(ops::repeat, native::repeat);
  r.composite(ops::tile, native::tile);
  r.composite(ops::meshgrid, native::meshgrid);
  r.composite(ops::meshgrid_indexing, native::meshgrid_indexing);
}

Tensor Tensor::repeat(IntArrayRef repeats) const { return ops::repeat(*this, repeats); }
Tensor Tensor::tile(IntArrayRef dims) const { return ops::tile(*this, dims); }

}  // namespace rush
