#include "core/ops/nn/recurrent_layer.h"

#include "autograd/derivatives/register.h"
#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "core/ops/basic.h"

namespace rush {

namespace {

// See Note [A layer over all steps], and Note [Fused backward passes] for the second derivative.
struct RecurrentLayerBackward final : Node {
  static constexpr size_t kDifferentiable = 3;
  Saved input, h, c, reserve;
  SavedList weights;
  int64_t mode = 0;
  bool reverse = false;
  DimVector batch_sizes;
  RUSH_SAVED(input, h, c, reserve, weights)
  auto saved_arguments() { return std::tie(input, weights, h, c, mode, reverse, std::ignore, batch_sizes); }
  auto saved_results() { return std::tie(std::ignore, std::ignore, std::ignore, reserve); }
  // Gradients of input, the weights, h, c.
  Tensors apply(const Tensors& g) override {
    const size_t count = weights.size();
    if (!g[0].defined() && !g[1].defined() && !g[2].defined()) return Tensors(count + 3);
    if (GradMode::is_enabled()) return by_operators(g);
    bool needs_weights = false;
    for (size_t i = 0; i < count; ++i) needs_weights = needs_weights || needs(1 + i);
    auto [grad_input, grad_h, grad_c, grad_weights] = ops::recurrent_layer_backward(
        native::if_defined(g[0]), native::if_defined(g[1]), native::if_defined(g[2]), input.get(), weights.get(),
        h.get(), native::if_defined(c.get()), reserve.get(), mode, reverse, batch_sizes, {needs(0), needs_weights});
    grad_weights.resize(count);
    Tensors grads = {grad_input};
    grads.insert(grads.end(), grad_weights.begin(), grad_weights.end());
    grads.insert(grads.end(), {grad_h, grad_c});
    return grads;
  }

 private:
  Tensors by_operators(const Tensors& g) {
    Tensors inputs = {input.get()};
    for (const Tensor& weight : weights.get()) inputs.push_back(weight);
    inputs.insert(inputs.end(), {h.get(), c.get()});
    // Views of its own: where one was computed from another, that is another node's matter.
    for (Tensor& t : inputs) {
      if (t.defined()) t = t.view(t.sizes());
    }
    const size_t count = inputs.size();
    const auto [output, h_n, c_n] =
        native::recurrent_layer_by_operators(inputs[0], TensorList(inputs).slice(1, count - 3), inputs[count - 2],
                                             inputs[count - 1], static_cast<RecurrentMode>(mode), reverse, batch_sizes);
    const Tensors results = {output, h_n, c_n};
    Tensors reached, through, asked, grads(count);
    for (size_t i = 0; i < 3; ++i) {
      if (g[i].defined() && results[i].requires_grad()) reached.push_back(results[i]), through.push_back(g[i]);
    }
    if (reached.empty()) return grads;  // as where weight_hr alone asks and c_n alone is reached, after one step
    for (size_t i = 0; i < count; ++i) {
      if (needs(i)) asked.push_back(inputs[i]);
    }
    const Tensors found = autograd::grad(reached, asked, through, true, true, true);
    for (size_t i = 0, next = 0; i < count; ++i) {
      if (needs(i)) grads[i] = found[next++];
    }
    return grads;
  }
};

}  // namespace

void register_recurrent_layer_derivatives(Registry& r) { derive<ops::recurrent_layer, RecurrentLayerBackward>(r); }

}  // namespace rush
