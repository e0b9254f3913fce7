#include "core/ops/pointwise/binary.h"

#include "backends/cuda/kernels/pointwise/broadcast.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/binary.h"

namespace rush::cuda {

namespace {

struct AddLoop {
  template <class T>
  static void run(TensorIterator& it, const Scalar& alpha) {
    if (alpha.equal(1)) return binary_elementwise<T>(it, functors::Add{});
    using Math = opmath_t<T>;
    binary_elementwise<T>(it, functors::AddScaled<Math>{alpha.to<Math>()});
  }
};

template <class F>
struct BinaryLoop {
  template <class T>
  static void run(TensorIterator& it) {
    binary_elementwise<T>(it, F{});
  }
};
template <class F, class Types>
void map_binary(TensorIterator& it) {
  pick<BinaryLoop<F>>(Types(), it.common_dtype(), it.op())(it);
}

void add(TensorIterator& it, const Scalar& alpha) { pick<AddLoop>(AllTypes(), it.common_dtype(), it.op())(it, alpha); }

}  // namespace

void register_binary() {
  kernels::add.set(kCUDA, add);
  kernels::mul.set(kCUDA, map_binary<functors::Mul, AllTypes>);
  kernels::div.set(kCUDA, map_binary<functors::Div, FloatTypes>);
}

}  // namespace rush::cuda
