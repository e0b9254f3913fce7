// Views of parts of a tensor, and the gradients of such parts.
#include "core/integer.h"
#include "core/iterator/output_checks.h"
#include "core/ops/basic.h"
#include "core/ops/register.h"
#include "core/ops/view/read_integers.h"
#include "core/print/bracketed.h"

namespace rush {

namespace native {

// The geometry of a part: what a view of it and the gradient that fills its place share.
struct Part : detail::Geometry {
  explicit Part(const Tensor& self) : Geometry(geometry_of(self)) {}

  void select(int64_t dim, int64_t index) {
    RUSH_CHECK_INDEX(!sizes.empty(), "select: a 0-dimensional tensor has no dimension to select from");
    dim = wrap_dim(dim, static_cast<int64_t>(sizes.size()), "select");
    const int64_t size = sizes[dim];
    RUSH_CHECK_INDEX(index >= -size && index < size, "select: index ", index, " out of range for tensor of size ",
                     bracketed(sizes), " at dimension ", dim);
    Geometry::select(dim, index < 0 ? index + size : index);
  }

  void slice(int64_t dim, std::optional<int64_t> first, std::optional<int64_t> last, int64_t step) {
    RUSH_CHECK_INDEX(!sizes.empty(), "slice: a 0-dimensional tensor has no dimension to slice");
    RUSH_CHECK_VALUE(step > 0, "slice: the step must be positive, got ", step);
    dim = wrap_dim(dim, static_cast<int64_t>(sizes.size()), "slice");
    const int64_t size = sizes[dim];
    const auto clamped = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    const int64_t start = clamped(first.value_or(0));
    Geometry::slice(dim, start, std::max(start, last ? clamped(*last) : size), step);
  }

  void diagonal(int64_t shift, int64_t dim1, int64_t dim2) {
    const auto dims = static_cast<int64_t>(sizes.size());
    dim1 = wrap_dim(dim1, dims, "diagonal");
    dim2 = wrap_dim(dim2, dims, "diagonal");
    RUSH_CHECK_VALUE(dim1 != dim2, "diagonal: needs two different dimensions, got ", dim1, " twice");
    // From row max(-shift, 0) and column max(shift, 0) on.
    const int64_t rows = sizes[dim1] + std::min<int64_t>(shift, 0), columns = sizes[dim2] - std::max<int64_t>(shift, 0);
    const int64_t length = std::max<int64_t>(0, std::min(rows, columns));
    int64_t skipped = 0;  // overflows only where another size is 0
    const bool overflow = length > 0 && (shift >= 0 ? __builtin_mul_overflow(shift, strides[dim2], &skipped)
                                                    : __builtin_mul_overflow(-shift, strides[dim1], &skipped));
    if (!overflow) offset = wrap_add(offset, skipped);
    const int64_t stride = wrap_add(strides[dim1], strides[dim2]);
    for (int64_t dim : {std::max(dim1, dim2), std::min(dim1, dim2)}) {
      sizes.erase(sizes.begin() + dim);
      strides.erase(strides.begin() + dim);
    }
    sizes.push_back(length);
    strides.push_back(stride);
  }

  void unfold(int64_t dim, int64_t size, int64_t step) {
    RUSH_CHECK_VALUE(step > 0, "unfold: the step must be positive, got ", step);
    RUSH_CHECK_VALUE(size >= 0, "unfold: the size must be non-negative, got ", size);
    const bool scalar = sizes.empty();
    dim = wrap_dim(dim, static_cast<int64_t>(sizes.size()), "unfold");
    const int64_t length = scalar ? 1 : sizes[dim];
    RUSH_CHECK_VALUE(size <= length, "unfold: windows of size ", size, " do not fit dimension ", dim, " of size ",
                     length);
    const int64_t stride = scalar ? 1 : strides[dim];
    if (!scalar) {
      sizes[dim] = (length - size) / step + 1;
      // The stride of one window alone leads nowhere.
      if (__builtin_mul_overflow(stride, step, &strides[dim])) strides[dim] = 1;
    }
    sizes.push_back(size);
    strides.push_back(stride);
  }
};

Tensor part(const Tensor& self, int64_t dim, int64_t start, int64_t length, int64_t step) {
  const Tensor alias = detail::make_alias(self);
  DimVector sizes(self.sizes()), strides(self.strides());
  sizes[dim] = length;
  // The strides of a tensor without elements may be out of range.
  const int64_t skipped = wrap_mul(start, strides[dim]);
  strides[dim] = wrap_mul(strides[dim], step);
  alias.impl()->set_geometry(sizes, strides, wrap_add(self.storage_offset(), skipped));
  return alias;
}

static Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  Part part(self);
  part.select(dim, index);
  return view_of(self, part);
}

static Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                    int64_t step) {
  Part part(self);
  part.slice(dim, start, end, step);
  return view_of(self, part);
}

static Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  RUSH_CHECK_INDEX(self.dim() > 0, "narrow: a 0-dimensional tensor has no dimension to narrow");
  RUSH_CHECK_VALUE(length >= 0, "narrow: the length must be non-negative, got ", length);
  dim = wrap_dim(dim, self.dim(), "narrow");
  const int64_t size = self.sizes()[dim];
  RUSH_CHECK_INDEX(start >= -size && start <= size, "narrow: start ", start, " is out of range for dimension ", dim,
                   " of size ", size);
  if (start < 0) start += size;
  RUSH_CHECK_INDEX(length <= size - start, "narrow: start (", start, ") + length (", length,
                   ") exceeds dimension size (", size, ") of dimension ", dim);
  return ops::slice(self, dim, start, start + length, 1);
}

static Tensor narrow_Tensor(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  RUSH_CHECK_TYPE(start.dim() == 0 && is_integral(start.scalar_type(), false),
                  "narrow: start must be a 0-dimensional integer tensor, got ", start.scalar_type(), " of shape ",
                  start.sizes());
  return native::narrow(self, dim, start.item<int64_t>(), length);
}

static Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  Part part(self);
  part.diagonal(offset, dim1, dim2);
  return view_of(self, part);
}

static Tensor unfold(const Tensor& self, int64_t dim, int64_t size, int64_t step) {
  Part part(self);
  part.unfold(dim, size, step);
  return view_of(self, part);
}

// ---- several parts ----

// Parts cost memory, also those without elements and those of an expanded dimension, of which there may be any number.
constexpr int64_t kMostParts = 1 << 24;

static void check_part_count(const char* op, int64_t parts, int64_t dim, int64_t size) {
  RUSH_CHECK_VALUE(parts <= kMostParts, op, ": ", parts, " parts of dimension ", dim, " of size ", size,
                   " are more than ", kMostParts);
}

static std::vector<Tensor> parts_of_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  std::vector<Tensor> parts;
  parts.reserve(split_sizes.size());
  Part part(self);
  for (int64_t size : split_sizes) {
    part.sizes[dim] = size;
    parts.push_back(view_of(self, part, ViewOrigin::MultiOutput));
    part.offset = wrap_add(part.offset, wrap_mul(size, part.strides[dim]));  // behind the last part there is nothing
  }
  return parts;
}

static std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  RUSH_CHECK_INDEX(self.dim() > 0, "split: a 0-dimensional tensor has no dimension to split");
  dim = wrap_dim(dim, self.dim(), "split");
  int64_t left = self.sizes()[dim];
  for (int64_t size : split_sizes) {
    RUSH_CHECK_VALUE(size >= 0, "split_with_sizes expects split_sizes have only non-negative entries, but got ",
                     "split_sizes=", bracketed(split_sizes));
    left = size <= left ? left - size : -1;
  }
  RUSH_CHECK_VALUE(left == 0, "split_with_sizes expects split_sizes to sum exactly to ", self.sizes()[dim],
                   " (input tensor's size at dimension ", dim, "), but got split_sizes=", bracketed(split_sizes));
  return parts_of_sizes(self, split_sizes, dim);
}

static std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  RUSH_CHECK_INDEX(self.dim() > 0, "split: a 0-dimensional tensor has no dimension to split");
  RUSH_CHECK_VALUE(split_size >= 0, "split expects split_size be non-negative, but got split_size=", split_size);
  dim = wrap_dim(dim, self.dim(), "split");
  const int64_t size = self.sizes()[dim];
  RUSH_CHECK_VALUE(split_size > 0 || size == 0, "split: parts of size 0 do not cover dimension ", dim, " of size ",
                   size);
  check_part_count("split", size == 0 ? 1 : (size - 1) / split_size + 1, dim, size);
  DimVector sizes;
  for (int64_t start = 0; start < size; start += std::min(split_size, size - start)) {
    sizes.push_back(std::min(split_size, size - start));
  }
  if (size == 0) sizes.push_back(0);
  return parts_of_sizes(self, sizes, dim);
}

// Parts without elements cost memory all the same.
constexpr int64_t kMostEmptyParts = 1 << 16;

static std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  RUSH_CHECK_INDEX(self.dim() > 0, "chunk: a 0-dimensional tensor has no dimension to split");
  RUSH_CHECK_VALUE(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  dim = wrap_dim(dim, self.dim(), "chunk");
  const int64_t size = self.sizes()[dim];
  RUSH_CHECK_VALUE(size > 0 || chunks <= kMostEmptyParts, "chunk: expected at most ", kMostEmptyParts,
                   " chunks of an empty dimension, got ", chunks);
  if (size == 0) return ops::split_with_sizes(self, DimVector(static_cast<size_t>(chunks), 0), dim);
  return ops::split(self, (size - 1) / chunks + 1, dim);
}

static std::vector<Tensor> tensor_split_indices(const Tensor& self, IntArrayRef indices, int64_t dim) {
  RUSH_CHECK_INDEX(self.dim() > 0, "tensor_split: a 0-dimensional tensor has no dimension to split");
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t end : indices) {
    parts.push_back(ops::slice(self, dim, start, end, 1));
    start = end;
  }
  parts.push_back(ops::slice(self, dim, start, std::nullopt, 1));
  return parts;
}

static std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  RUSH_CHECK_INDEX(self.dim() > 0, "tensor_split: a 0-dimensional tensor has no dimension to split");
  dim = wrap_dim(dim, self.dim(), "tensor_split");
  const int64_t size = self.sizes()[dim];
  const int64_t most = std::max(size, kMostEmptyParts);
  RUSH_CHECK_VALUE(sections > 0 && sections <= most, "tensor_split: expected 1 to ", most,
                   " sections of a dimension of size ", size, ", got ", sections);
  check_part_count("tensor_split", sections, dim, size);
  const int64_t smaller = size / sections, larger = size % sections;
  DimVector ends;
  for (int64_t i = 1; i < sections; ++i) ends.push_back(i * smaller + std::min(i, larger));
  return tensor_split_indices(self, ends, dim);
}

static std::vector<Tensor> tensor_split_Tensor(const Tensor& self, const Tensor& indices_or_sections, int64_t dim) {
  RUSH_CHECK_TYPE(indices_or_sections.scalar_type() == kInt64 && indices_or_sections.dim() <= 1,
                  "tensor_split: indices or sections must be int64 of at most one dimension, got ",
                  indices_or_sections.scalar_type(), " of shape ", indices_or_sections.sizes());
  if (indices_or_sections.dim() == 0) return native::tensor_split(self, indices_or_sections.item<int64_t>(), dim);
  RUSH_CHECK_NOT_IMPLEMENTED(!indices_or_sections.is_meta(), "tensor_split: meta indices have no values");
  return tensor_split_indices(self, read_integers(indices_or_sections), dim);
}

static std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  RUSH_CHECK_INDEX(self.dim() > 0, "unbind: a 0-dimensional tensor has no dimension to unbind");
  dim = wrap_dim(dim, self.dim(), "unbind");
  check_part_count("unbind", self.sizes()[dim], dim, self.sizes()[dim]);
  std::vector<Tensor> slices;
  slices.reserve(static_cast<size_t>(self.sizes()[dim]));
  for (int64_t i = 0; i < self.sizes()[dim]; ++i) {
    Part part(self);
    part.select(dim, i);
    slices.push_back(view_of(self, part, ViewOrigin::MultiOutput));
  }
  return slices;
}

// ---- gradients of parts ----

static Tensor zeros_below(IntArrayRef sizes, ScalarType dtype, Device device) {
  const Tensor out = detail::empty_contiguous(sizes, dtype, device);
  auto it = TensorIterator::nullary("zero_", out);
  kernels::fill(it.device_type(), it, 0);
  return out;
}

template <class Cut>
static Tensor zeros_around(const Tensor& grad, IntArrayRef input_sizes, Cut cut) {
  const Tensor whole = zeros_below(input_sizes, grad.scalar_type(), grad.device());
  Part part(whole);
  cut(part);
  Tensor place = detail::make_alias(whole);
  place.impl()->set_geometry(part.sizes, part.strides, part.offset);
  RUSH_CHECK_VALUE(place.sizes() == grad.sizes(), "backward of a part: expected a gradient of shape ", place.sizes(),
                   ", got ", grad.sizes());
  native::copy_(place, grad, false);
  return whole;
}

static Tensor select_backward(const Tensor& grad, IntArrayRef input_sizes, int64_t dim, int64_t index) {
  return zeros_around(grad, input_sizes, [&](Part& part) { part.select(dim, index); });
}

static Tensor slice_backward(const Tensor& grad, IntArrayRef input_sizes, int64_t dim, int64_t start, int64_t end,
                             int64_t step) {
  return zeros_around(grad, input_sizes, [&](Part& part) { part.slice(dim, start, end, step); });
}

static Tensor diagonal_backward(const Tensor& grad, IntArrayRef input_sizes, int64_t offset, int64_t dim1,
                                int64_t dim2) {
  return zeros_around(grad, input_sizes, [&](Part& part) { part.diagonal(offset, dim1, dim2); });
}

// Windows may overlap: what falls on one element is summed.
static Tensor unfold_backward(const Tensor& grad, IntArrayRef input_sizes, int64_t dim, int64_t size, int64_t step) {
  const int64_t dims = static_cast<int64_t>(input_sizes.size());
  dim = wrap_dim(dim, dims, "unfold_backward");
  DimVector strides = contiguous_strides(input_sizes);
  const int64_t stride = strides.empty() ? 1 : strides[dim];
  RUSH_CHECK_VALUE(step > 0 && size >= 0, "unfold_backward: step must be positive and size not negative, got ", step,
                   " and ", size);
  const bool overflow = !strides.empty() && __builtin_mul_overflow(strides[dim], step, &strides[dim]);
  RUSH_CHECK_VALUE(!overflow, "unfold_backward: step ", step, " is too large for sizes ", input_sizes);
  strides.push_back(stride);
  DimVector windows(input_sizes);
  if (dims > 0) windows[static_cast<size_t>(dim)] = (input_sizes[static_cast<size_t>(dim)] - size) / step + 1;
  windows.push_back(size);
  check_expands("unfold_backward", grad.sizes(), windows);
  return ops::strided_sum(grad.expand(windows), strides, 0, checked_numel(input_sizes)).view(input_sizes);
}

static Tensor strided_sum(const Tensor& values, IntArrayRef strides, int64_t offset, int64_t numel) {
  RUSH_CHECK_VALUE(strides.size() == values.sizes().size(), "strided_sum: got ", strides.size(), " strides for values ",
                   values.sizes());
  const bool forward = std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride >= 0; });
  RUSH_CHECK_VALUE(forward, "strided_sum: strides must be non-negative, got ", strides);
  const int64_t extent = values.numel() == 0 ? 0 : storage_extent(values.sizes(), strides, offset);
  RUSH_CHECK_VALUE(offset >= 0 && extent <= numel, "strided_sum: values of sizes ", values.sizes(), " with strides ",
                   strides, " at offset ", offset, " need ", extent, " elements, the result has ", numel);
  // Sums of many 16-bit numbers are made in float.
  const ScalarType dtype = values.scalar_type();
  const bool overlap = may_overlap(values.sizes(), strides);
  const bool reduced = overlap && (dtype == kFloat16 || dtype == kBFloat16);
  const Tensor out = zeros_below(numel, reduced ? kFloat32 : dtype, values.device());
  if (overlap) {
    kernels::strided_sum(values.device().type, out, reduced ? to_dtype(values, kFloat32) : values, strides, offset);
  } else {
    Tensor place = detail::make_alias(out);
    place.impl()->set_geometry(values.sizes(), strides, offset);
    native::copy_(place, values, false);
  }
  return reduced ? to_dtype(out, dtype) : out;
}

}  // namespace native

void register_split_ops(Registry& r) {
  r.native(ops::select, native::select);
  r.native(ops::slice, native::slice);
  r.composite(ops::narrow, native::narrow);
  r.composite(ops::narrow_Tensor, native::narrow_Tensor);
  r.native(ops::diagonal, native::diagonal);
  r.native(ops::unfold, native::unfold);
  r.native(ops::split, native::split);
  r.composite(ops::split_sizes, native::same_as<ops::split_with_sizes>);
  r.native(ops::split_with_sizes, native::split_with_sizes);
  r.composite(ops::chunk, native::chunk);
  r.composite(ops::tensor_split, native::tensor_split);
  r.composite(ops::tensor_split_indices, native::tensor_split_indices);
  r.composite(ops::tensor_split_Tensor, native::tensor_split_Tensor);
  r.native(ops::unbind, native::unbind);
  r.native(ops::select_backward, native::select_backward);
  r.native(ops::slice_backward, native::slice_backward);
  r.native(ops::diagonal_backward, native::diagonal_backward);
  r.composite(ops::unfold_backward, native::unfold_backward);
  r.native(ops::strided_sum, native::strided_sum);
}

Tensor Tensor::select(int64_t dim, int64_t index) const { return ops::select(*this, dim, index); }
Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) const {
  return ops::slice(*this, dim, start, end, step);
}
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  return ops::narrow(*this, dim, start, length);
}
Tensor Tensor::narrow(int64_t dim, const Tensor& start, int64_t length) const {
  return ops::narrow_Tensor(*this, dim, start, length);
}
Tensor Tensor::diagonal(int64_t offset, int64_t dim1, int64_t dim2) const {
  return ops::diagonal(*this, offset, dim1, dim2);
}
Tensor Tensor::unfold(int64_t dimension, int64_t size, int64_t step) const {
  return ops::unfold(*this, dimension, size, step);
}
std::vector<Tensor> Tensor::split(int64_t split_size, int64_t dim) const { return ops::split(*this, split_size, dim); }
std::vector<Tensor> Tensor::split(IntArrayRef split_sizes, int64_t dim) const {
  return ops::split_sizes(*this, split_sizes, dim);
}
std::vector<Tensor> Tensor::split(std::initializer_list<int64_t> split_sizes, int64_t dim) const {
  return ops::split_sizes(*this, split_sizes, dim);
}
std::vector<Tensor> Tensor::split_with_sizes(IntArrayRef split_sizes, int64_t dim) const {
  return ops::split_with_sizes(*this, split_sizes, dim);
}
std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const { return ops::chunk(*this, chunks, dim); }
std::vector<Tensor> Tensor::tensor_split(int64_t sections, int64_t dim) const {
  return ops::tensor_split(*this, sections, dim);
}
std::vector<Tensor> Tensor::tensor_split(IntArrayRef indices, int64_t dim) const {
  return ops::tensor_split_indices(*this, indices, dim);
}
std::vector<Tensor> Tensor::tensor_split(std::initializer_list<int64_t> indices, int64_t dim) const {
  return ops::tensor_split_indices(*this, indices, dim);
}
std::vector<Tensor> Tensor::tensor_split(const Tensor& indices_or_sections, int64_t dim) const {
  return ops::tensor_split_Tensor(*this, indices_or_sections, dim);
}
std::vector<Tensor> Tensor::unbind(int64_t dim) const { return ops::unbind(*this, dim); }

}  // namespace rush
