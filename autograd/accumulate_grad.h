// AccumulateGrad: the end of the graph at a leaf; it adds the gradient to the leaf's `grad`.
#pragma once
#include <mutex>

#include "autograd/node.h"

namespace rush {

struct AccumulateGrad final : Node {
  Tensor variable;

  explicit AccumulateGrad(const Tensor& leaf);
  ~AccumulateGrad() override;
  Tensors apply(const Tensors& grads) override;

 private:
  std::mutex mutex_;  // several threads may run backward passes that end here
};

/// The leaf's accumulator, made when there is none alive.
intrusive_ptr<Node> grad_accumulator(const Tensor& leaf);

/// Whether a gradient's dtype can become that of its leaf: floating or complex, and no imaginary part is lost.
inline bool can_be_gradient(ScalarType grad, ScalarType leaf) {
  return is_differentiable(grad) && (is_complex(leaf) || !is_complex(grad));
}

// Note [Gradients that do not fit]
// `mutable_grad()` is a reference, so anything can be assigned to it, and set_data gives a leaf another shape under a
// gradient that it has. So a gradient is looked at where it is used: before the backward pass adds to it, before an
// optimiser's step, before it is clipped or unscaled; and what a hook returns, where it returns it.
/// Throws unless `grad` can be the gradient of `leaf`: ValueError for another shape or device, TypeError for a dtype
/// that cannot be converted. The message starts with `who...`, which says whose gradient it is.
template <class... Who>
void check_gradient(const Tensor& grad, const Tensor& leaf, Who... who) {
  RUSH_CHECK_VALUE(grad.sizes() == leaf.sizes(), who..., " has shape ", grad.sizes(), ", the parameter ", leaf.sizes());
  RUSH_CHECK_TYPE(can_be_gradient(grad.scalar_type(), leaf.scalar_type()), who..., " is of ", grad.scalar_type(),
                  ", which cannot be converted to the parameter's ", leaf.scalar_type());
  RUSH_CHECK_VALUE(grad.device() == leaf.device(), who..., " is on ", grad.device(), ", the parameter on ",
                   leaf.device());
}

/// The gradient of a leaf as a dense tensor whose elements are the gradient's: itself, or the values of a sparse one,
/// which is coalesced first. What is written to it is written to the gradient.
Tensor gradient_values(const Tensor& leaf);

}  // namespace rush
