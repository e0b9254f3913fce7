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

template <template <class> class F>
void extreme_value(const Tensor& output, const Tensor& input, IntArrayRef dims) {
  pick<ExtremeValue<F>>(RealAndBoolTypes(), input.scalar_type(), "amax")(output, input, dims);
}

}  // namespace

void register_extrema() {
  kernels::amax.set(kCUDA, extreme_value<functors::Max>);
  kernels::amin.set(kCUDA, extreme_value<functors::Min>);
}

}  // namespace rush::cuda
