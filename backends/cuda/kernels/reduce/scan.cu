// Running sums and products.
#include "core/ops/reduce/scan.h"

#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/reduce/scan_engine.h"
#include "backends/functors/reduce.h"

namespace rush::cuda {

namespace {

template <class Out, class F>
struct StoreScan {
  Out* out;
  F f;
  __device__ void operator()(int64_t at, const typename F::Acc& acc) const {
    out[at] = static_cast<Out>(f.result(acc));
  }
};

// Running sums of float keep their carry in double, as the CPU's do.
template <class T>
struct Carry {
  using type = std::conditional_t<std::is_same_v<T, float>, double,
                                  std::conditional_t<std::is_same_v<T, complex<float>>, complex<double>, opmath_t<T>>>;
};

template <template <class, class> class F>
struct AccumulateScan {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const AlongDim& shape) {
    using Acc = typename Carry<T>::type;
    using Function = std::conditional_t<std::is_integral_v<T>, F<T, int64_t>, F<Acc, Acc>>;
    using Out = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
    scan("cumsum", static_cast<const T*>(input.data_ptr()), Function(),
         StoreScan<Out, Function>{output.data_ptr<Out>(), Function()}, shape);
  }
};

}  // namespace

void register_scan() {
  set_by_dtype<kernels::cumsum, AccumulateScan<functors::Sum>, AllTypes, 1>(kCUDA);
  set_by_dtype<kernels::cumprod, AccumulateScan<functors::Prod>, AllTypes, 1>(kCUDA);
}

}  // namespace rush::cuda
