#include "core/ops/pointwise/binary.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"
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

void add(TensorIterator& it, const Scalar& alpha) { pick<AddLoop>(AllTypes(), it.common_dtype(), it.op())(it, alpha); }

}  // namespace

void register_binary() {
  set_kernels(functors::BinaryTable());
  kernels::add.set(kCUDA, add);
}

}  // namespace rush::cuda
