// AutogradMeta: what autograd keeps with a tensor.
#pragma once
#include <mutex>

#include "autograd/node.h"

namespace rush {

struct AutogradMeta final : AutogradMetaBase {
  Tensor grad;
  intrusive_ptr<Node> grad_fn;
  uint32_t output_nr = 0;
  bool requires_grad = false;  // of a leaf
  /// The gradient of a tensor that is not a leaf, when it is kept: shared with the hook that fills it, which must not
  /// keep its own output alive.
  std::shared_ptr<Tensor> retained;
  /// The storage's version when grad_fn was set, for views: see Note [Views and in-place writes].
  uint32_t version = 0;
  /// The leaf's AccumulateGrad while one is alive. It holds the leaf, so the leaf only points at it.
  Node* accumulator = nullptr;
  std::mutex accumulator_mutex;
  /// A leaf's hooks; those of other tensors go to their grad_fn at once.
  std::vector<std::shared_ptr<NodeHook>> hooks;
};

inline AutogradMeta* get_meta(const Tensor& tensor) {
  RUSH_CHECK(tensor.defined(), "expected a tensor with a gradient, got an undefined one");
  return static_cast<AutogradMeta*>(tensor.impl()->autograd_meta());
}
/// Makes it when there is none.
AutogradMeta& need_meta(const Tensor& tensor);
/// Has `retained` be filled with the gradient at grad_fn: after each change of it, if there is one, and by retain_grad.
void keep_gradient(AutogradMeta& meta);

}  // namespace rush
