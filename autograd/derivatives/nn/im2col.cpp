#include "core/ops/nn/im2col.h"

#include "autograd/derivatives/register.h"

namespace rush {

namespace {

// Both are linear, and each is the other's transpose.
struct Windows {
  DimVector image, kernel, dilation, padding, stride;
};

struct Im2colBackward final : Node {
  Windows w;
  void save(const Tensor& self, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
    const IntArrayRef sizes = self.sizes();
    w = {sizes.slice(sizes.size() < 2 ? 0 : sizes.size() - 2), kernel, dilation, padding, stride};
  }
  Tensors apply(const Tensors& g) override {
    return {col2im(g[0], w.image, w.kernel, w.dilation, w.padding, w.stride)};
  }
};

struct Col2imBackward final : Node {
  Windows w;
  auto saved_arguments() { return std::tie(std::ignore, w.image, w.kernel, w.dilation, w.padding, w.stride); }
  Tensors apply(const Tensors& g) override { return {im2col(g[0], w.kernel, w.dilation, w.padding, w.stride)}; }
};

}  // namespace

void register_im2col_derivatives(Registry& r) {
  derive<ops::im2col, Im2colBackward>(r);
  derive<ops::col2im, Col2imBackward>(r);
}

}  // namespace rush
