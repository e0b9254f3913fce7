#include "backends/functors/cross.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "core/ops/linalg/matmul.h"

namespace rush::cuda {

namespace {

template <class T>
struct CrossVectors {
  T* out;
  const T *a, *b;
  int64_t stride;
  __device__ void operator()(int64_t i) const {
    const int64_t at = stride == 1 ? 3 * i : i / stride * 3 * stride + i % stride;
    functors::cross(a + at, b + at, stride, out + at);
  }
};

struct CrossLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& a, const Tensor& b, const AlongDim& shape) {
    for_each_index("linalg_cross", shape.outer * shape.inner,
                   CrossVectors<T>{out.data_ptr<T>(), a.data_ptr<T>(), b.data_ptr<T>(), shape.inner});
  }
};

}  // namespace

void register_cross() { set_by_dtype<kernels::cross, CrossLoop, NumberTypes>(kCUDA); }

}  // namespace rush::cuda
