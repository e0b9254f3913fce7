#include "core/ops/view/pad.h"

#include "autograd/derivatives/register.h"
#include "core/ops/factory/factories.h"

namespace rush {

namespace {

struct ConstantPadBackward final : Node {  // what was added is cut off, what was cut off gets zeros
  DimVector pad;
  void save(const Tensor&, IntArrayRef padding, const Scalar&) { pad = padding; }
  Tensors apply(const Tensors& g) override {
    DimVector inverse(pad);
    for (int64_t& n : inverse) n = -n;
    return {constant_pad_nd(g[0], inverse)};
  }
};

template <const PadBackwardOp& backward>
struct BorderPadBackward final : Node {
  Saved self;  // for its shape
  DimVector pad;
  RUSH_SAVED(self)
  void save(const Tensor& input, IntArrayRef padding) {
    self = input.detach();
    pad = padding;
  }
  Tensors apply(const Tensors& g) override { return {backward(g[0], self.get(), pad)}; }
};

template <const PadOp& forward>
struct BorderPadBackwardBackward final : Node {  // linear in the gradient, and of the input only the shape counts
  SavedSizes input_sizes;
  DimVector pad;
  auto saved_arguments() { return std::tie(std::ignore, input_sizes, pad); }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? forward(g[0], pad) : Tensor(), needs(1) ? zeros(input_sizes, g[0].options()) : Tensor()};
  }
};

}  // namespace

void register_pad_derivatives(Registry& r) {
  derive<ops::constant_pad_nd, ConstantPadBackward>(r);
#define RUSH_BORDER_PAD(name)                                    \
  derive<ops::name, BorderPadBackward<ops::name##_backward>>(r); \
  derive<ops::name##_backward, BorderPadBackwardBackward<ops::name>>(r);
  RUSH_BORDER_PAD(reflection_pad1d)
  RUSH_BORDER_PAD(reflection_pad2d)
  RUSH_BORDER_PAD(reflection_pad3d)
  RUSH_BORDER_PAD(replication_pad1d)
  RUSH_BORDER_PAD(replication_pad2d)
  RUSH_BORDER_PAD(replication_pad3d)
#undef RUSH_BORDER_PAD
}

}  // namespace rush
