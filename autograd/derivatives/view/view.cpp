#include "core/ops/view/view.h"

#include "autograd/derivatives/register.h"
#include "core/integer.h"
#include "core/ops/basic.h"

namespace rush {

namespace {

// ---- shapes ----

template <class... Rest>
struct SameElementsBackward : Node {
  DimVector sizes;
  void save(const Tensor& self, Rest...) { sizes = self.sizes(); }
  Tensors apply(const Tensors& g) override { return {g[0].reshape(sizes)}; }
};
struct ViewBackward final : SameElementsBackward<IntArrayRef> {};
struct SqueezeBackward final : SameElementsBackward<> {};
struct SqueezeDimBackward final : SameElementsBackward<int64_t> {};
struct SqueezeDimsBackward final : SameElementsBackward<IntArrayRef> {};
struct UnsqueezeBackward final : SameElementsBackward<int64_t> {};

struct AliasBackward final : Node {
  Tensors apply(const Tensors& g) override { return {g[0]}; }
};

struct ExpandBackward final : Node {  // the engine sums over what was repeated
  Tensors apply(const Tensors& g) override { return {g[0]}; }
};

struct ViewAsRealBackward final : Node {
  Tensors apply(const Tensors& g) override { return {view_as_complex(g[0].contiguous())}; }
};

struct ViewAsComplexBackward final : Node {
  Tensors apply(const Tensors& g) override { return {view_as_real(g[0])}; }
};

// Note [The derivative of as_strided]
// Input and output are two strided views of one range of a storage. The output's gradient is summed into the storage
// at the output's places, and the input's gradient is read from there at the input's places. An element of the storage
// that the input shows n times gives each of them an nth.
struct AsStridedBackward final : Node {
  DimVector input_sizes, input_strides, strides;
  int64_t input_offset = 0, offset = 0;
  void save(const Tensor& self, IntArrayRef, IntArrayRef stride, std::optional<int64_t> storage_offset) {
    input_sizes = self.sizes();
    input_strides = self.strides();
    strides = stride;
    // Relative to where the storage that both see begins. A negative offset is refused after this.
    const int64_t input_start = self.storage_offset(), start = storage_offset.value_or(input_start);
    input_offset = std::max<int64_t>(0, wrap_sub(input_start, start));
    offset = std::max<int64_t>(0, wrap_sub(start, input_start));
  }
  Tensors apply(const Tensors& g) override {
    const int64_t length = std::max(storage_extent(input_sizes, input_strides, input_offset),
                                    storage_extent(g[0].sizes(), strides, offset));
    Tensor storage = ops::strided_sum(g[0], strides, offset, length);
    if (!may_overlap(input_sizes, input_strides)) return {window_of_input(storage)};
    // Where the input shows nothing this divides by zero, and nothing is read from there.
    const Tensor times = ops::strided_sum(ones(input_sizes, g[0].options()), input_strides, input_offset, length);
    return {window_of_input(storage / times).clone(MemoryFormat::Contiguous)};
  }
  Tensor window_of_input(const Tensor& storage) const {
    return storage.as_strided(input_sizes, input_strides, input_offset);
  }
};

struct StridedSumBackward final : Node {
  SavedSizes sizes;
  DimVector strides;
  int64_t offset = 0;
  auto saved_arguments() { return std::tie(sizes, strides, offset, std::ignore); }
  Tensors apply(const Tensors& g) override {
    const Tensor grad = g[0].contiguous();
    return {grad.as_strided(sizes, strides, offset + grad.storage_offset())};
  }
};

// ---- the order of dimensions ----

struct TransposeBackward final : Node {
  int64_t dim0 = 0, dim1 = 0;
  auto saved_arguments() { return std::tie(std::ignore, dim0, dim1); }
  Tensors apply(const Tensors& g) override { return {g[0].transpose(dim0, dim1)}; }
};

struct PermuteBackward final : Node {
  DimVector inverse;
  void save(const Tensor& self, IntArrayRef dims) {
    inverse.resize(dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      inverse[wrap_dim(dims[d], self.dim(), "permute")] = static_cast<int64_t>(d);
    }
  }
  Tensors apply(const Tensors& g) override { return {g[0].permute(inverse)}; }
};

// ---- parts ----

struct SelectBackward final : Node {
  SavedSizes sizes;
  int64_t dim = 0, index = 0;
  auto saved_arguments() { return std::tie(sizes, dim, index); }
  Tensors apply(const Tensors& g) override { return {ops::select_backward(g[0], sizes, dim, index)}; }
};

struct SelectBackwardBackward final : Node {
  int64_t dim = 0, index = 0;
  auto saved_arguments() { return std::tie(std::ignore, std::ignore, dim, index); }
  Tensors apply(const Tensors& g) override { return {g[0].select(dim, index)}; }
};

struct SliceBackward final : Node {
  DimVector sizes;
  int64_t dim = 0, start = 0, end = 0, step = 1;
  void save(const Tensor& self, int64_t d, std::optional<int64_t> first, std::optional<int64_t> last, int64_t s) {
    sizes = self.sizes();
    dim = d;
    start = first.value_or(0);
    end = last.value_or(std::numeric_limits<int64_t>::max());
    step = s;
  }
  Tensors apply(const Tensors& g) override { return {ops::slice_backward(g[0], sizes, dim, start, end, step)}; }
};

struct SliceBackwardBackward final : Node {
  int64_t dim = 0, start = 0, end = 0, step = 1;
  auto saved_arguments() { return std::tie(std::ignore, std::ignore, dim, start, end, step); }
  Tensors apply(const Tensors& g) override { return {g[0].slice(dim, start, end, step)}; }
};

struct DiagonalBackward final : Node {
  SavedSizes sizes;
  int64_t offset = 0, dim1 = 0, dim2 = 1;
  auto saved_arguments() { return std::tie(sizes, offset, dim1, dim2); }
  Tensors apply(const Tensors& g) override { return {ops::diagonal_backward(g[0], sizes, offset, dim1, dim2)}; }
};

struct DiagonalBackwardBackward final : Node {
  int64_t offset = 0, dim1 = 0, dim2 = 1;
  auto saved_arguments() { return std::tie(std::ignore, std::ignore, offset, dim1, dim2); }
  Tensors apply(const Tensors& g) override { return {g[0].diagonal(offset, dim1, dim2)}; }
};

struct UnfoldBackward final : Node {
  SavedSizes sizes;
  int64_t dim = 0, size = 0, step = 1;
  auto saved_arguments() { return std::tie(sizes, dim, size, step); }
  Tensors apply(const Tensors& g) override { return {ops::unfold_backward(g[0], sizes, dim, size, step)}; }
};

// The gradients of several outputs, with zeros for those that no gradient reached.
Tensors defined_gradients(const Node& node, const Tensors& g) {
  const auto known = std::find_if(g.begin(), g.end(), [](const Tensor& t) { return t.defined(); });
  Tensors grads(g);
  for (size_t i = 0; i < g.size(); ++i) {
    if (!g[i].defined()) grads[i] = zeros(node.output_metadata(i).sizes, known->options());
  }
  return grads;
}

// What lies side by side along `dim` in one storage, as one tensor; undefined where they do not. See Note [Gradients of
// a packed projection].
Tensor side_by_side(const Tensors& parts, int64_t dim) {
  const Tensor& first = parts[0];
  const auto d = static_cast<size_t>(wrap_dim(dim, first.dim(), "split"));
  DimVector sizes(first.sizes());
  sizes[d] = 0;
  for (const Tensor& part : parts) {
    const int64_t at = first.storage_offset() + sizes[d] * first.strides()[d];
    const bool follows = part.is_alias_of(first) && part.scalar_type() == first.scalar_type() &&
                         part.strides() == first.strides() && part.storage_offset() == at;
    if (!follows || part.requires_grad()) return {};
    sizes[d] += part.sizes()[d];
  }
  return detail::make_view(first, sizes, first.strides(), first.storage_offset());
}

// The gradient of a tensor from those of its parts along `dim`.
Tensor joined_gradients(const Node& node, const Tensors& g, int64_t dim) {
  const Tensors grads = defined_gradients(node, g);
  const Tensor whole = side_by_side(grads, dim);
  return whole.defined() ? whole : cat(grads, dim);
}

template <class Sizes>
struct PartsBackward : Node {
  int64_t dim = 0;
  void save(const Tensor&, Sizes, int64_t d) { dim = d; }
  Tensors apply(const Tensors& g) override { return {joined_gradients(*this, g, dim)}; }
};
struct SplitBackward final : PartsBackward<int64_t> {};
struct SplitWithSizesBackward final : PartsBackward<IntArrayRef> {};

struct UnbindBackward final : Node {
  int64_t dim = 0;
  void save(const Tensor& self, int64_t d) { dim = wrap_dim(d, self.dim(), "unbind"); }
  Tensors apply(const Tensors& g) override { return {stack(defined_gradients(*this, g), dim)}; }
};

}  // namespace

void register_view_derivatives(Registry& r) {
  derive<ops::as_strided, AsStridedBackward>(r);
  derive<ops::strided_sum, StridedSumBackward>(r);
  derive<ops::view, ViewBackward>(r);
  derive<ops::squeeze, SqueezeBackward>(r);
  derive<ops::squeeze_dim, SqueezeDimBackward>(r);
  derive<ops::squeeze_dims, SqueezeDimsBackward>(r);
  derive<ops::unsqueeze, UnsqueezeBackward>(r);
  derive<ops::alias, AliasBackward>(r);
  derive<ops::expand, ExpandBackward>(r);
  derive<ops::view_as_real, ViewAsRealBackward>(r);
  derive<ops::view_as_complex, ViewAsComplexBackward>(r);
  derive<ops::transpose, TransposeBackward>(r);
  derive<ops::permute, PermuteBackward>(r);
  derive<ops::select, SelectBackward>(r);
  derive<ops::select_backward, SelectBackwardBackward>(r);
  derive<ops::slice, SliceBackward>(r);
  derive<ops::slice_backward, SliceBackwardBackward>(r);
  derive<ops::diagonal, DiagonalBackward>(r);
  derive<ops::diagonal_backward, DiagonalBackwardBackward>(r);
  derive<ops::unfold, UnfoldBackward>(r);
  derive<ops::split, SplitBackward>(r);
  derive<ops::split_with_sizes, SplitWithSizesBackward>(r);
  derive<ops::unbind, UnbindBackward>(r);
}

}  // namespace rush
