// Lab 3, an operator end to end: this file takes the place of tests/labs/solutions/isrlu.cpp. What each part has to do
// stands in docs/labs/isrlu.md. Begin with register_isrlu; `./rush lab 3` checks the parts in the order of that page.
#include "tests/labs/solutions/isrlu.h"

#include <cmath>

#include "autograd/derive.h"
#include "backends/cpu/loops.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/compare.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/power.h"
#include "core/ops/pointwise/ternary.h"

namespace rush::labs {

// The operators' declarations come here: an Op for isrlu, and one for isrlu_, each with its schema.

// isrlu of one number.
template <class T>
struct Isrlu {
  T alpha;
  T operator()(T x) const {
    RUSH_THROW(NotImplementedError, "next: return isrlu of x, which is ", x, "; alpha is ", alpha);
  }
};

// The CPU's kernel: applies Isrlu to all elements, in the dtype of the operands.
void isrlu_kernel(TensorIterator& it, const Scalar& alpha) {
  RUSH_THROW(NotImplementedError, "next: apply Isrlu with alpha ", alpha, " to the ", it.numel(), " elements of dtype ",
             it.common_dtype());
}

// Checks alpha, makes the iterator and with it the result, and calls the kernel.
Tensor isrlu_front(const Tensor& self, const Scalar& alpha) {
  RUSH_THROW(NotImplementedError, "next: make a TensorIterator for `self` of sizes ", self.sizes(),
             ", and call isrlu_kernel with it and alpha, which is ", alpha);
}

// The same in place.
Tensor& isrlu_front_(Tensor& self, const Scalar& alpha) {
  RUSH_THROW(NotImplementedError, "next: do the same with `self`, of dtype ", self.scalar_type(),
             ", as the iterator's output; alpha is ", alpha);
}

// The derivative. What it needs of the call is kept in members.
struct IsrluBackward final : Node {
  Tensors apply(const Tensors& g) override {
    RUSH_THROW(NotImplementedError,
               "next: return the gradient of isrlu's input, by the gradient of its output of sizes ", g[0].sizes());
  }
};

// Gives the operators their fronts and derivatives.
void register_isrlu(Registry& registry) {
  RUSH_THROW(NotImplementedError, "begin here: declare the operators above, then register them; the registry has ",
             registry.operators().size(), " others");
}

}  // namespace rush::labs
