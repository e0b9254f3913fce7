#include "core/ops/nn/upsample.h"

#include <array>

#include "autograd/derivatives/register.h"
#include "autograd/derive.h"

namespace rush {

namespace {

// Interpolation is linear: its gradient scatters with the weights that it gathered with, and the gradient of that
// gathers again. Each struct holds the sizes and scales of a call and passes them on.
template <auto& backward, class... Scales>
struct NearestNode : Node {
  DimVector output_size, input_size;
  std::tuple<Scales...> scales;
  void save(const Tensor& self, IntArrayRef size, Scales... s) {
    output_size = size;
    input_size = self.sizes();
    scales = {s...};
  }
  Tensors apply(const Tensors& g) override {
    return {std::apply([&](auto... s) { return backward(g[0], output_size, input_size, s...); }, scales)};
  }
};

template <auto& forward, class... Scales>
struct NearestBackwardNode : Node {
  DimVector output_size;
  std::tuple<Scales...> scales;
  void save(const Tensor&, IntArrayRef size, IntArrayRef, Scales... s) {
    output_size = size;
    scales = {s...};
  }
  Tensors apply(const Tensors& g) override {
    return {std::apply([&](auto... s) { return forward(g[0], output_size, s...); }, scales)};
  }
};

template <auto& backward, class... Scales>
struct SmoothNode : Node {
  DimVector output_size, input_size;
  bool align_corners = false;
  std::tuple<Scales...> scales;
  void save(const Tensor& self, IntArrayRef size, bool align, Scales... s) {
    output_size = size;
    input_size = self.sizes();
    align_corners = align;
    scales = {s...};
  }
  Tensors apply(const Tensors& g) override {
    return {
        std::apply([&](auto... s) { return backward(g[0], output_size, input_size, align_corners, s...); }, scales)};
  }
};

template <auto& forward, class... Scales>
struct SmoothBackwardNode : Node {
  DimVector output_size;
  bool align_corners = false;
  std::tuple<Scales...> scales;
  void save(const Tensor&, IntArrayRef size, IntArrayRef, bool align, Scales... s) {
    output_size = size;
    align_corners = align;
    scales = {s...};
  }
  Tensors apply(const Tensors& g) override {
    return {std::apply([&](auto... s) { return forward(g[0], output_size, align_corners, s...); }, scales)};
  }
};

#define RUSH_UPSAMPLE_NODES(kind, Name, op, ...)                                \
  struct Name##Backward final : kind##Node<ops::op##_backward, __VA_ARGS__> {}; \
  struct Name##BackwardBackward final : kind##BackwardNode<ops::op, __VA_ARGS__> {};

using S = OptionalScale;
RUSH_UPSAMPLE_NODES(Nearest, UpsampleNearest1d, upsample_nearest1d, S)
RUSH_UPSAMPLE_NODES(Nearest, UpsampleNearest2d, upsample_nearest2d, S, S)
RUSH_UPSAMPLE_NODES(Nearest, UpsampleNearest3d, upsample_nearest3d, S, S, S)
RUSH_UPSAMPLE_NODES(Nearest, UpsampleNearestExact1d, _upsample_nearest_exact1d, S)
RUSH_UPSAMPLE_NODES(Nearest, UpsampleNearestExact2d, _upsample_nearest_exact2d, S, S)
RUSH_UPSAMPLE_NODES(Nearest, UpsampleNearestExact3d, _upsample_nearest_exact3d, S, S, S)
RUSH_UPSAMPLE_NODES(Smooth, UpsampleLinear1d, upsample_linear1d, S)
RUSH_UPSAMPLE_NODES(Smooth, UpsampleBilinear2d, upsample_bilinear2d, S, S)
RUSH_UPSAMPLE_NODES(Smooth, UpsampleBicubic2d, upsample_bicubic2d, S, S)
RUSH_UPSAMPLE_NODES(Smooth, UpsampleBilinear2dAa, _upsample_bilinear2d_aa, S, S)
RUSH_UPSAMPLE_NODES(Smooth, UpsampleBicubic2dAa, _upsample_bicubic2d_aa, S, S)
RUSH_UPSAMPLE_NODES(Smooth, UpsampleTrilinear3d, upsample_trilinear3d, S, S, S)
#undef RUSH_UPSAMPLE_NODES

template <auto& op, auto& backward, class NodeT, class BackwardNodeT>
void derive_both(Registry& r) {
  derive<op, NodeT>(r);
  derive<backward, BackwardNodeT>(r);
}

}  // namespace

void register_upsample_derivatives(Registry& r) {
#define RUSH_DERIVE(Name, op) derive_both<ops::op, ops::op##_backward, Name##Backward, Name##BackwardBackward>(r);
  RUSH_DERIVE(UpsampleNearest1d, upsample_nearest1d)
  RUSH_DERIVE(UpsampleNearest2d, upsample_nearest2d)
  RUSH_DERIVE(UpsampleNearest3d, upsample_nearest3d)
  RUSH_DERIVE(UpsampleNearestExact1d, _upsample_nearest_exact1d)
  RUSH_DERIVE(UpsampleNearestExact2d, _upsample_nearest_exact2d)
  RUSH_DERIVE(UpsampleNearestExact3d, _upsample_nearest_exact3d)
  RUSH_DERIVE(UpsampleLinear1d, upsample_linear1d)
  RUSH_DERIVE(UpsampleBilinear2d, upsample_bilinear2d)
  RUSH_DERIVE(UpsampleBicubic2d, upsample_bicubic2d)
  RUSH_DERIVE(UpsampleBilinear2dAa, _upsample_bilinear2d_aa)
  RUSH_DERIVE(UpsampleBicubic2dAa, _upsample_bicubic2d_aa)
  RUSH_DERIVE(UpsampleTrilinear3d, upsample_trilinear3d)
#undef RUSH_DERIVE
}

}  // namespace rush
