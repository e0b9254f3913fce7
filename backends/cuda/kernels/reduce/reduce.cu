// Sums and means.
#include "core/ops/reduce/reduce.h"

#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/functors/reduce.h"

namespace rush::cuda {

namespace {

// Integers and bool are summed as int64, everything else in its own type.
struct SumLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims) {
    using Math = opmath_t<T>;
    if constexpr (std::is_integral_v<T>) {
      reduce_to<T, int64_t>("sum", functors::Sum<T, int64_t>(), output, input, dims);
    } else if constexpr (is_complex_v<T>) {
      reduce_to<T, T>("sum", functors::Sum<T>(), output, input, dims);
    } else {
      // Divided by one, so that sum and mean are one kernel.
      reduce_to<T, T>("sum", functors::Mean<Math>(1), output, input, dims);
    }
  }
};

struct MeanLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims) {
    using Math = opmath_t<T>;
    using Real = typename functors::RealPart<Math>::type;
    const Math count(static_cast<Real>(functors::elements_each(input, dims)));
    reduce_to<T, T>("mean", functors::Mean<Math>(count), output, input, dims);
  }
};

struct NanSumLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims) {
    reduce_to<T, T>("nansum", functors::NanSum<opmath_t<T>>(), output, input, dims);
  }
};

}  // namespace

void register_reduce() {
  set_by_dtype<kernels::sum, SumLoop, AllTypes, 1>(kCUDA);
  set_by_dtype<kernels::mean, MeanLoop, FloatTypes, 1>(kCUDA);
  set_by_dtype<kernels::nansum, NanSumLoop, RealFloatTypes, 1>(kCUDA);
}

}  // namespace rush::cuda
