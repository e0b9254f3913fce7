// Mean and variance.
#include "core/ops/reduce/statistics.h"

#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/functors/reduce.h"

namespace rush::cuda {

namespace {

template <class T, class F>
struct StoreMoments {
  T *variance, *mean;  // mean may be null
  double correction;
  bool root;
  __device__ void operator()(int64_t at, const typename F::Acc& acc) const {
    const double value = F::variance(acc, correction);
    variance[at] = static_cast<T>(static_cast<opmath_t<T>>(root ? std::sqrt(value) : value));
    if (!mean) return;
    const opmath_t<T> average = static_cast<opmath_t<T>>(acc.mean);
    mean[at] = static_cast<T>(acc.count == 0 ? std::numeric_limits<opmath_t<T>>::quiet_NaN() : average);
  }
};

struct MomentsLoop {
  template <class T>
  static void run(const Tensor& variance, const Tensor& mean, const Tensor& input, IntArrayRef dims, double correction,
                  bool root) {
    using F = functors::Moments<opmath_t<T>, opmath_t<T>>;
    reduce_with<T>(
        "var", F(), variance, input, dims,
        StoreMoments<T, F>{variance.data_ptr<T>(), mean.defined() ? mean.data_ptr<T>() : nullptr, correction, root});
  }
};

}  // namespace

void register_statistics() { set_by_dtype<kernels::moments, MomentsLoop, RealFloatTypes, 2>(kCUDA); }

}  // namespace rush::cuda
