#include "core/ops/linalg/distance.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/distance.h"

namespace rush::cuda {

namespace {

// out[b, i, j] = norm(x1[b, i] - x2[b, j]), by one thread.
template <class T, class Norm>
struct PairDistance {
  using Math = opmath_t<T>;
  T* out;
  const T *x1, *x2;
  int64_t n, m, d;
  Norm norm;
  __device__ void operator()(int64_t i) const {
    const T *a = x1 + i / m * d, *b = x2 + (i / m / n * m + i % m) * d;
    Math sum(0);
    for (int64_t k = 0; k < d; ++k) {
      const Math difference = static_cast<Math>(a[k]) - static_cast<Math>(b[k]);
      sum = norm.add(sum, difference < 0 ? -difference : difference);
    }
    out[i] = static_cast<T>(norm.finish(sum));
  }
};

struct CdistLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& x1, const Tensor& x2, double p) {
    using Math = opmath_t<T>;
    if (p == 0) return pairs<T>(out, x1, x2, functors::DistanceZero<Math>());
    if (p == 1) return pairs<T>(out, x1, x2, functors::DistanceOne<Math>());
    if (p == 2) return pairs<T>(out, x1, x2, functors::DistanceTwo<Math>());
    if (std::isinf(p)) return pairs<T>(out, x1, x2, functors::DistanceInfinity<Math>());
    pairs<T>(out, x1, x2, functors::DistanceP<Math>{static_cast<Math>(p)});
  }

  template <class T, class Norm>
  static void pairs(const Tensor& out, const Tensor& x1, const Tensor& x2, const Norm& norm) {
    for_each_index("cdist", out.numel(),
                   PairDistance<T, Norm>{out.data_ptr<T>(), x1.data_ptr<T>(), x2.data_ptr<T>(), x1.size(1), x2.size(1),
                                         x1.size(2), norm});
  }
};

}  // namespace

void register_distance() { set_by_dtype<kernels::cdist, CdistLoop, RealFloatTypes>(kCUDA); }

}  // namespace rush::cuda
