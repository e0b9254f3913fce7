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

template <class T>
struct MinMax {
  using In = T;
  struct Acc {
    T smallest, largest;
  };
  __device__ Acc identity() const { return {functors::Min<T>().identity(), functors::Max<T>().identity()}; }
  __device__ Acc take(const Acc& acc, In x) const { return combine(acc, {x, x}); }
  __device__ Acc combine(const Acc& a, const Acc& b) const {
    return {functors::TakeMin()(a.smallest, b.smallest), functors::TakeMax()(a.largest, b.largest)};
  }
};

template <class T>
struct StoreMinMax {
  T *smallest, *largest;
  __device__ void operator()(int64_t at, const typename MinMax<opmath_t<T>>::Acc& acc) const {
    smallest[at] = static_cast<T>(acc.smallest);
    largest[at] = static_cast<T>(acc.largest);
  }
};

struct MinMaxLoop {
  template <class T>
  static void run(const Tensor& smallest, const Tensor& largest, const Tensor& input, IntArrayRef dims) {
    const StoreMinMax<T> store{smallest.data_ptr<T>(), largest.data_ptr<T>()};
    reduce_with<T>("aminmax", MinMax<opmath_t<T>>(), smallest, input, dims, store);
  }
};

}  // namespace

void register_extrema() {
  set_by_dtype<kernels::amax, ExtremeValue<functors::Max>, RealAndBoolTypes, 1>(kCUDA);
  set_by_dtype<kernels::amin, ExtremeValue<functors::Min>, RealAndBoolTypes, 1>(kCUDA);
  set_by_dtype<kernels::aminmax, MinMaxLoop, RealAndBoolTypes, 2>(kCUDA);
}

}  // namespace rush::cuda
