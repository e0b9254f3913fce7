#include "core/ops/linalg/distance.h"

#include <cmath>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/distance.h"

namespace rush::cpu {

namespace {

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
    using Math = opmath_t<T>;
    const int64_t n = x1.size(1), m = x2.size(1), d = x1.size(2);
    const T *first = x1.data_ptr<T>(), *second = x2.data_ptr<T>();
    T* to = out.data_ptr<T>();
    parallel_for(0, out.numel(), std::max<int64_t>(1, kGrain / std::max<int64_t>(d, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const T *a = first + i / m * d, *b = second + (i / m / n * m + i % m) * d;
                     Math sum(0);
                     for (int64_t k = 0; k < d; ++k) {
                       sum = norm.add(sum, std::abs(static_cast<Math>(a[k]) - static_cast<Math>(b[k])));
                     }
                     to[i] = static_cast<T>(norm.finish(sum));
                   }
                 });
  }
};

}  // namespace

void register_distance() { set_by_dtype<kernels::cdist, CdistLoop, RealFloatTypes>(kCPU); }

}  // namespace rush::cpu
