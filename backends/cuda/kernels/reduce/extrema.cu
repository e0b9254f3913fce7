// The largest and the smallest element. Where they are is found in extreme_index.cu.
#include "core/ops/reduce/extrema.h"

#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/functors/reduce.h"

namespace rush::cuda {

namespace {

template <template <class> class F>
struct ExtremeValue {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims) {
    reduce_to<T, T>("amax", F<opmath_t<T>>(), output, input, dims);
  }
};

}  // namespace

void register_extrema() {
  set_by_dtype<kernels::amax, ExtremeValue<functors::Max>, RealAndBoolTypes, 1>(kCUDA);
  set_by_dtype<kernels::amin, ExtremeValue<functors::Min>, RealAndBoolTypes, 1>(kCUDA);
}

}  // namespace rush::cuda
