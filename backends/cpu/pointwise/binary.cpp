#include "core/ops/pointwise/binary.h"

#include "backends/cpu/pointwise/vec_math.h"
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

template <class F>
void rest_of_division(TensorIterator& it) {
  check_divisor(it);
  map_vec<F, RealTypes>(it);
}

void div_trunc(TensorIterator& it) {
  check_divisor(it);
  map_by_storage<functors::DivTrunc, functors::DivTruncOf, RealTypes>(it);
}

void div_floor(TensorIterator& it) {
  check_divisor(it);
  map<functors::DivFloor, RealTypes, kSlowGrain>(it);
}

}  // namespace

void register_binary() {
  kernels::add.set(kCPU, add);
  kernels::mul.set(kCPU, binary<functors::Mul, AllTypes>);
  kernels::div.set(kCPU, binary<functors::Div, FloatTypes>);
  kernels::div_trunc.set(kCPU, div_trunc);
  kernels::div_floor.set(kCPU, div_floor);
  kernels::fmod.set(kCPU, rest_of_division<functors::Fmod>);
  kernels::remainder.set(kCPU, rest_of_division<functors::Remainder>);
}

}  // namespace rush::cpu
