#include "core/ops/nn/upsample.h"

#include "autograd/derivatives/register.h"

namespace rush {

namespace {

// Interpolation is linear: its gradient scatters with the weights that it gathered with, and the gradient of that
// gathers again. Each struct holds the sizes of a call and the arguments behind them, whether corners are aligned and
// the scales, and passes them on.
template <auto& backward, class... Rest>
struct UpsampleNode : Node {
  SavedSizes input_size;
  DimVector output_size;
  std::tuple<Rest...> rest;
  auto saved_arguments() { return std::tuple_cat(std::tie(input_size, output_size), saved_each(rest)); }
  Tensors apply(const Tensors& g) override {
    return {std::apply([&](auto... r) { return backward(g[0], output_size, input_size, r...); }, rest)};
  }
};

template <auto& forward, class... Rest>
struct UpsampleBackwardNode : Node {
  DimVector output_size;
  std::tuple<Rest...> rest;
  auto saved_arguments() { return std::tuple_cat(std::tie(std::ignore, output_size, std::ignore), saved_each(rest)); }
  Tensors apply(const Tensors& g) override {
    return {std::apply([&](auto... r) { return forward(g[0], output_size, r...); }, rest)};
  }
};

using S = OptionalScale;
#define RUSH_FORALL_UPSAMPLE(X)                                 \
  X(UpsampleNearest1d, upsample_nearest1d, S)                   \
  X(UpsampleNearest2d, upsample_nearest2d, S, S)                \
  X(UpsampleNearest3d, upsample_nearest3d, S, S, S)             \
  X(UpsampleNearestExact1d, _upsample_nearest_exact1d, S)       \
  X(UpsampleNearestExact2d, _upsample_nearest_exact2d, S, S)    \
  X(UpsampleNearestExact3d, _upsample_nearest_exact3d, S, S, S) \
  X(UpsampleLinear1d, upsample_linear1d, bool, S)               \
  X(UpsampleBilinear2d, upsample_bilinear2d, bool, S, S)        \
  X(UpsampleBicubic2d, upsample_bicubic2d, bool, S, S)          \
  X(UpsampleBilinear2dAa, _upsample_bilinear2d_aa, bool, S, S)  \
  X(UpsampleBicubic2dAa, _upsample_bicubic2d_aa, bool, S, S)    \
  X(UpsampleTrilinear3d, upsample_trilinear3d, bool, S, S, S)

#define RUSH_UPSAMPLE_NODES(Name, op, ...)                                        \
  struct Name##Backward final : UpsampleNode<ops::op##_backward, __VA_ARGS__> {}; \
  struct Name##BackwardBackward final : UpsampleBackwardNode<ops::op, __VA_ARGS__> {};
RUSH_FORALL_UPSAMPLE(RUSH_UPSAMPLE_NODES)
#undef RUSH_UPSAMPLE_NODES

}  // namespace

void register_upsample_derivatives(Registry& r) {
#define RUSH_DERIVE(Name, op, ...)    \
  derive<ops::op, Name##Backward>(r); \
  derive<ops::op##_backward, Name##BackwardBackward>(r);
  RUSH_FORALL_UPSAMPLE(RUSH_DERIVE)
#undef RUSH_DERIVE
#undef RUSH_FORALL_UPSAMPLE
}

}  // namespace rush
