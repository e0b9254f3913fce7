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

// Of a number on the CPU it throws before anything is written; what the GPU finds is thrown later.
struct CheckDivisor {
  template <class T>
  static void run(const Tensor& divisor, const char* op) {
    static constexpr const char* kProblem = "an integer is divided by 0";
    if (divisor.is_cpu()) {
      RUSH_CHECK_VALUE(*divisor.data_ptr<T>() != 0, op, ": ", kProblem);
      return;
    }
    const Tensor dense = native::contiguous(divisor);
    report_if_any(op, kProblem, dense.numel(), IsZero<T>{dense.data_ptr<T>()});
  }
};

void check_divisor(TensorIterator& it) {
  if (!is_integral(it.common_dtype(), false) || it.numel() == 0) return;
  pick<CheckDivisor>(IntegerTypes(), it.common_dtype(), it.op())(it.operand(2).tensor, it.op());
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
