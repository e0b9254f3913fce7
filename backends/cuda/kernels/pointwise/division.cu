// Division with a rounded quotient, and its remainder.
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"
#include "backends/cuda/kernels/reduce/found_any.h"
#include "backends/functors/binary.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

template <class T>
struct IsZero {
  const T* data;
  __device__ bool operator()(int64_t i) const { return data[i] == 0; }
};

struct DivisorHasZero {
  template <class T>
  static bool run(const Tensor& divisor, const char* op) {
    if (divisor.is_cpu()) return *divisor.data_ptr<T>() == 0;
    const Tensor dense = native::contiguous(divisor);
    return found_any(op, dense.numel(), IsZero<T>{dense.data_ptr<T>()});
  }
};

// Throws before anything is written.
void check_divisor(TensorIterator& it) {
  if (!is_integral(it.common_dtype(), false) || it.numel() == 0) return;
  const bool zero = pick<DivisorHasZero>(IntegerTypes(), it.common_dtype(), it.op())(it.operand(2).tensor, it.op());
  RUSH_CHECK_VALUE(!zero, it.op(), ": an integer is divided by 0");
}

template <class F>
void divide(TensorIterator& it) {
  check_divisor(it);
  map<F, RealTypes, kSlow>(it);
}

}  // namespace

void register_division() {
  kernels::div_trunc.set(kCUDA, divide<OfStorage<functors::DivTrunc>>);
  kernels::div_floor.set(kCUDA, divide<functors::DivFloor>);
  kernels::fmod.set(kCUDA, divide<functors::Fmod>);
  kernels::remainder.set(kCUDA, divide<functors::Remainder>);
}

}  // namespace rush::cuda
