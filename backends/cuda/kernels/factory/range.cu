#include "core/ops/factory/range.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/range.h"

namespace rush::cuda {

namespace {

template <class T, class F>
struct GenerateElement {
  T* out;
  F f;
  __device__ void operator()(int64_t i) const { out[i] = f(i); }
};

struct Generate {
  template <class T, class F>
  static void run(const char* op, const Tensor& out, const F& f) {
    for_each_index(op, out.numel(), GenerateElement<T, F>{out.data_ptr<T>(), f});
  }
};

}  // namespace

void register_range() { functors::set_ranges<Generate>(kCUDA); }

}  // namespace rush::cuda
