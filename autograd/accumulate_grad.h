// AccumulateGrad: the end of the graph at a leaf; it adds the gradient to the leaf's `grad`.
#pragma once
#include "autograd/node.h"

namespace rush {

struct AccumulateGrad final : Node {
  Tensor variable;

  explicit AccumulateGrad(const Tensor& leaf);
  ~AccumulateGrad() override;
  Tensors apply(const Tensors& grads) override;
};

// The leaf's accumulator, made when there is none alive.
intrusive_ptr<Node> grad_accumulator(const Tensor& leaf);

}  // namespace rush
