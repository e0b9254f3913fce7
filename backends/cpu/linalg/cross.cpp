#include "backends/functors/cross.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "core/ops/linalg/matmul.h"

namespace rush::cpu {

namespace {

struct CrossLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& a, const Tensor& b, const AlongDim& shape) {
    const T *first = a.data_ptr<T>(), *second = b.data_ptr<T>();
    T* to = out.data_ptr<T>();
    const int64_t stride = shape.inner;
    parallel_for(0, shape.outer * stride, kGrain / 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i / stride * 3 * stride + i % stride;
        functors::cross(first + at, second + at, stride, to + at);
      }
    });
  }
};

}  // namespace

void register_cross() { set_by_dtype<kernels::cross, CrossLoop, NumberTypes>(kCPU); }

}  // namespace rush::cpu
