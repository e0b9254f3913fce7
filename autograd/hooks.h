// Hooks on tensors: callables that see, and may replace, a gradient.
#pragma once
#include <type_traits>

#include "autograd/node.h"

namespace rush {
namespace detail {

struct NoHook final : NodeHook {
  void operator()(Tensors&) override {}
};

// What a hook was given. What it leaves has to be alike, as in PyTorch.
class HookedGradient {
 public:
  explicit HookedGradient(const Tensor& grad)
      : sizes_(grad.sizes()), dtype_(grad.scalar_type()), device_(grad.device()) {}
  // Throws ValueError or TypeError unless `grad` has the same shape, dtype and device.
  void check(const Tensor& grad) const;

 private:
  DimVector sizes_;
  ScalarType dtype_;
  Device device_;
};

// Applies a user's callable to the gradient of one forward output.
template <class Fn>
struct TensorHook final : NodeHook {
  Fn fn;
  uint32_t slot;
  TensorHook(Fn fn, uint32_t slot) : fn(std::move(fn)), slot(slot) {}
  void operator()(Tensors& grads) override {
    if (!grads[slot].defined()) return;
    const HookedGradient given(grads[slot]);
    if constexpr (std::is_void_v<std::invoke_result_t<Fn&, Tensor>>) {
      fn(grads[slot]);
    } else {
      Tensor replaced = fn(grads[slot]);
      if (replaced.defined()) grads[slot] = std::move(replaced);
    }
    given.check(grads[slot]);
  }
};

unsigned add_tensor_hook(const Tensor& tensor, std::unique_ptr<NodeHook> hook);

}  // namespace detail

/// A gradient that the hook returns, or that it has changed in place, has the shape, dtype and device of the one that
/// it was given: the backward pass throws ValueError or TypeError otherwise.
template <class Hook>
unsigned Tensor::register_hook(Hook&& hook) const {
  const uint32_t slot = is_leaf() ? 0 : static_cast<uint32_t>(output_nr());
  return detail::add_tensor_hook(
      *this, std::make_unique<detail::TensorHook<std::decay_t<Hook>>>(std::forward<Hook>(hook), slot));
}

}  // namespace rush
