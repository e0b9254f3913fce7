#include "core/ops/binary.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/register_pointwise.h"
#include "backends/functors/binary.h"

namespace rush::cuda {

namespace {

struct AddLoop {
  template <class T>
  static void run(TensorIterator& it, const Scalar& alpha) {
    if (alpha.equal(1)) return elementwise<T, T, T>(it, functors::Add{});
    using Math = opmath_t<T>;
    elementwise<T, T, T>(it, functors::AddScaled<Math>{alpha.to<Math>()});
  }
};

void add(TensorIterator& it, const Scalar& alpha) { pick<AddLoop>(AllTypes(), it.common_dtype(), it.op())(it, alpha); }

}  // namespace

void register_binary() {
  kernels::add.set(kCUDA, add);
  kernels::mul.set(kCUDA, map<functors::Mul, AllTypes>);
  kernels::div.set(kCUDA, map<functors::Div, FloatTypes>);
}

}  // namespace rush::cuda
