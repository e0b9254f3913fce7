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

// The leaf's accumulator, made when there is none alive.
intrusive_ptr<Node> grad_accumulator(const Tensor& leaf);

// The gradient of a leaf as a dense tensor whose elements are the gradient's: itself, or the values of a sparse one,
// which is coalesced first. What is written to it is written to the gradient.
Tensor gradient_values(const Tensor& leaf);

}  // namespace rush
