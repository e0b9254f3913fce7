#include "core/ops/view.h"

#include "autograd/derivatives/register.h"
#include "autograd/derive.h"
#include "core/ops/factories.h"

namespace rush {

namespace {

struct ViewBackward final : Node {  // any view of the same elements in order
  DimVector sizes;
  void save(const Tensor& self, IntArrayRef) { sizes = self.sizes(); }
  Tensors apply(const Tensors& g) override { return {g[0].reshape(sizes)}; }
};

struct ExpandBackward final : Node {  // the engine sums over what was repeated
  Tensors apply(const Tensors& g) override { return {g[0]}; }
};

struct SelectBackward final : Node {
  DimVector sizes;
  int64_t dim = 0, index = 0;
  void save(const Tensor& self, int64_t d, int64_t i) {
    sizes = self.sizes();
    dim = d;
    index = i;
  }
  Tensors apply(const Tensors& g) override {
    Tensor grad = zeros(sizes, g[0].options());
    grad.select(dim, index).copy_(g[0]);
    return {grad};
  }
};

struct TransposeBackward final : Node {
  int64_t dim0 = 0, dim1 = 0;
  void save(const Tensor&, int64_t a, int64_t b) {
    dim0 = a;
    dim1 = b;
  }
  Tensors apply(const Tensors& g) override { return {g[0].transpose(dim0, dim1)}; }
};

// The gradient is written at the view's place in zeros of the input. Elements that the view shows twice would need
// their gradients summed, which a strided write cannot do.
struct AsStridedBackward final : Node {
  DimVector input_sizes, input_strides, sizes, strides;
  int64_t input_offset = 0, offset = 0;
  void save(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) {
    input_sizes = self.sizes();
    input_strides = self.strides();
    input_offset = self.storage_offset();
    sizes = size;
    strides = stride;
    offset = storage_offset.value_or(input_offset);
  }
  Tensors apply(const Tensors& g) override {
    Tensor grad = empty_strided(input_sizes, input_strides, g[0].options());
    grad.zero_();
    grad.as_strided(sizes, strides, offset - input_offset).copy_(g[0]);
    return {grad};
  }
};

}  // namespace

void register_view_derivatives(Registry& r) {
  derive<ops::view, ViewBackward>(r);
  derive<ops::expand, ExpandBackward>(r);
  derive<ops::select, SelectBackward>(r);
  derive<ops::transpose, TransposeBackward>(r);
  derive<ops::as_strided, AsStridedBackward>(r);
}

}  // namespace rush
