// The operator isrlu, whole: declaration, functor, kernel, fronts, derivative, registration.
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

namespace ops {
inline constinit ScalarOp isrlu{"lab::isrlu(Tensor self, Scalar alpha=1) -> Tensor"};
inline constinit ScalarInplaceOp isrlu_{"lab::isrlu_(Tensor(a!) self, Scalar alpha=1) -> Tensor(a!)"};
}  // namespace ops

namespace kernels {
inline constinit ScalarKernel isrlu{"isrlu"};
}

// x where x >= 0, x / sqrt(1 + alpha x^2) below; NaN stays.
template <class T>
struct Isrlu {
  T alpha;
  T operator()(T x) const { return x < T(0) ? x / std::sqrt(T(1) + alpha * x * x) : x; }
};

struct IsrluLoop {
  template <class T>
  static void run(TensorIterator& it, const Scalar& alpha) {
    cpu::pointwise<T, T>(it, Isrlu<opmath_t<T>>{alpha.to<opmath_t<T>>()});
  }
};

// The CPU's kernel: the loop for the dtype of the iterator's operands.
void isrlu_kernel(TensorIterator& it, const Scalar& alpha) {
  pick<IsrluLoop>(RealFloatTypes(), it.common_dtype(), it.op())(it, alpha);
}

static void check_alpha(const Scalar& alpha) {
  RUSH_CHECK_VALUE(alpha.to<double>() >= 0, "isrlu: alpha must be at least 0, got ", alpha);
}

// Integers become the default floating dtype.
Tensor isrlu_front(const Tensor& self, const Scalar& alpha) {
  check_alpha(alpha);
  auto it = TensorIterator::pointwise("isrlu", Tensor(), {&self}, Promotion::Float);
  kernels::isrlu(it.device_type(), it, alpha);
  return it.take_output();
}

Tensor& isrlu_front_(Tensor& self, const Scalar& alpha) {
  check_alpha(alpha);
  auto it = TensorIterator::pointwise("isrlu", self, {&self}, Promotion::Float);
  kernels::isrlu(it.device_type(), it, alpha);
  it.finish();
  return self;
}

// 1 where x >= 0, (1 + alpha x^2)^(-3/2) below.
struct IsrluBackward final : Node {
  Saved self;
  Scalar alpha;
  RUSH_SAVED(self)
  auto saved_arguments() { return std::tie(self, alpha); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    return {g[0] * where(x < 0, (x * x * alpha + 1).pow(-1.5), 1)};
  }
};

void register_isrlu(Registry& registry) {
  registry.native(ops::isrlu, isrlu_front);
  registry.native(ops::isrlu_, isrlu_front_);
  kernels::isrlu.set(kCPU, isrlu_kernel);
  derive<ops::isrlu, IsrluBackward>(registry);
  derive<ops::isrlu_, IsrluBackward>(registry);
}

}  // namespace rush::labs
