#include "core/ops/nn/grid_sampler.h"

#include "autograd/derivatives/register.h"
#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "core/ops/basic.h"

namespace rush {

namespace {

// See Note [Fused backward passes] for the second derivative.
template <auto& backward>
struct GridSamplerBackward final : Node {
  Saved input, grid;
  int64_t interpolation = 0, padding = 0;
  bool align_corners = false;
  RUSH_SAVED(input, grid)
  auto saved_arguments() { return std::tie(input, grid, interpolation, padding, align_corners); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = input.get(), points = grid.get();
    if (GradMode::is_enabled()) return by_operators(g[0], x, points);
    const auto [dx, dgrid] = backward(g[0], x, points, interpolation, padding, align_corners, {needs(0), needs(1)});
    return {dx, dgrid};
  }

 private:
  Tensors by_operators(const Tensor& g, const Tensor& x, const Tensor& points) const {
    // Views of its own: where the grid was computed from the input, that is another node's matter.
    const Tensors inputs = {x.view(x.sizes()), points.view(points.sizes())};
    const Tensor out = detail::grid_sampler_by_operators(inputs[0], inputs[1], interpolation, padding, align_corners);
    Tensors gradients(2), asked;
    for (size_t i = 0; i < 2; ++i) {
      if (needs(i)) asked.push_back(inputs[i]);
    }
    const Tensors found = autograd::grad({out}, asked, {g}, true, true);
    for (size_t i = 0, next = 0; i < 2; ++i) {
      if (needs(i)) gradients[i] = found[next++];
    }
    return gradients;
  }
};

}  // namespace

void register_grid_sampler_derivatives(Registry& r) {
  derive<ops::grid_sampler_2d, GridSamplerBackward<ops::grid_sampler_2d_backward>>(r);
  derive<ops::grid_sampler_3d, GridSamplerBackward<ops::grid_sampler_3d_backward>>(r);
}

}  // namespace rush
