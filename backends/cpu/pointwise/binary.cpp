#include "core/ops/pointwise/binary.h"

#include "backends/cpu/pointwise/set_kernels.h"
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

struct CheckDivisorLoop {
  template <class T>
  static void run(TensorIterator& it) {
    it.for_each([&](char** data, const int64_t* strides, int64_t n) {
      bool zero = false;
      for (int64_t i = 0; i < n; ++i) zero |= *reinterpret_cast<const T*>(data[2] + i * strides[2]) == 0;
      RUSH_CHECK_VALUE(!zero, it.op(), ": an integer is divided by 0");
    });
  }
};

// Throws before anything is written.
void check_divisor(TensorIterator& it) {
  if (is_integral(it.common_dtype(), false)) pick<CheckDivisorLoop>(IntegerTypes(), it.common_dtype(), it.op())(it);
}

template <class F, unsigned how>
void divide(TensorIterator& it) {
  check_divisor(it);
  map<F, RealTypes, how>(it);
}

}  // namespace

void register_binary() {
  set_kernels(functors::BinaryTable());
  kernels::add.set(kCPU, add);
  kernels::div_trunc.set(kCPU, divide<OfStorage<functors::DivTrunc>, kCheap>);
  kernels::div_floor.set(kCPU, divide<functors::DivFloor, kVectors | kSlow>);
  kernels::fmod.set(kCPU, divide<functors::Fmod, kVectors>);
  kernels::remainder.set(kCPU, divide<functors::Remainder, kVectors>);
}

}  // namespace rush::cpu
