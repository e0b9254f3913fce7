#include "core/ops/binary.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/binary.h"

namespace rush::cpu {

namespace {

struct AddLoop {
  template <class T>
  static void run(TensorIterator& it, const Scalar& alpha) {
    if (alpha.equal(1)) return pointwise<T, T, T>(it, functors::Add{});
    using Math = opmath_t<T>;
    pointwise<T, T, T>(it, functors::AddScaled<Math>{alpha.to<Math>()});
  }
};

void add(TensorIterator& it, const Scalar& alpha) { pick<AddLoop>(AllTypes(), it.common_dtype(), it.op())(it, alpha); }

}  // namespace

void register_binary() {
  kernels::add.set(kCPU, add);
  kernels::mul.set(kCPU, binary<functors::Mul, AllTypes>);
  kernels::div.set(kCPU, binary<functors::Div, FloatTypes>);
}

}  // namespace rush::cpu
