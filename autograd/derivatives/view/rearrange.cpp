#include "core/ops/view/rearrange.h"

#include "autograd/derivatives/register.h"

namespace rush {

namespace {

struct FlipBackward final : Node {
  DimVector dims;
  void save(const Tensor&, IntArrayRef flipped) { dims = flipped; }
  Tensors apply(const Tensors& g) override { return {g[0].flip(dims)}; }
};

struct RollBackward final : Node {
  DimVector shifts, dims;
  void save(const Tensor& self, IntArrayRef by, IntArrayRef along) {
    if (!along.empty() && along.size() != by.size()) return;  // the call will throw
    for (size_t i = 0; i < by.size(); ++i) {
      const int64_t size = along.empty() ? self.numel() : self.size(along[i]);
      shifts.push_back(size > 0 ? -(by[i] % size) : 0);  // the smallest integer has no negative
    }
    dims = along;
  }
  Tensors apply(const Tensors& g) override { return {g[0].roll(shifts, dims)}; }
};

}  // namespace

void register_rearrange_derivatives(Registry& r) {
  derive<ops::flip, FlipBackward>(r);
  derive<ops::roll, RollBackward>(r);
}

}  // namespace rush
