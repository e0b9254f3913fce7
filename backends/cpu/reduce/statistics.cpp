// Mean and variance. A chunk of elements is read twice while it is in the cache, first for its mean; the moments of
// chunks are combined in double.
#include "core/ops/reduce/statistics.h"

#include <cmath>

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/reduce_loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/reduce.h"

namespace rush::cpu {

namespace {

// The moments of n numbers from their sums of distances and squared distances from `center`, which is near their mean
// (Chan, Golub and LeVeque, equation 1.7).
template <class F>
typename F::Acc moments_about(double center, double distances, double squares, double n) {
  return {n, center + distances / n, squares - distances * distances / n};
}

// The sum of term(x) over runs.
template <class Math, class Term>
struct SumOfTerms : functors::Sum<Math> {
  Term term;
  explicit SumOfTerms(const Term& t) : term(t) {}
  Math take(Math acc, Math x) const { return acc + term(x); }
};

template <class Math, class T, class Term>
Math sum_terms(const char* x, Runs runs, const Term& term) {
  const SumOfTerms<Math, Term> f(term);
  Math total;
  reduce::block<SumOfTerms<Math, Term>, T>(&f, x, runs, &total);
  return total;
}

template <class F, class T>
void moments_block(const void*, const char* x, Runs runs, void* acc) {
  using Math = opmath_t<T>;
  const int64_t n = runs.n * runs.count;
  const Math center = sum_terms<Math, T>(x, runs, [](Math v) { return v; }) / static_cast<Math>(n);
  const Math distances = sum_terms<Math, T>(x, runs, [=](Math v) { return v - center; });
  const Math squares = sum_terms<Math, T>(x, runs, [=](Math v) { return (v - center) * (v - center); });
  *static_cast<typename F::Acc*>(acc) = moments_about<F>(center, distances, squares, static_cast<double>(n));
}

template <class F, class T>
void moments_rows(const void* functor, const char* data, int64_t row_stride, int64_t rows, int64_t stride,
                  int64_t columns, void* accumulators) {
  using Math = opmath_t<T>;
  if (rows == 0) return;
  const F& f = *static_cast<const F*>(functor);
  const T* x = reinterpret_cast<const T*>(data);
  auto* acc = static_cast<typename F::Acc*>(accumulators);
  constexpr int64_t kTile = 128;
  for (int64_t first = 0; first < columns; first += kTile) {
    const int64_t width = std::min(kTile, columns - first);
    Math center[kTile] = {}, distances[kTile] = {}, squares[kTile] = {};
    const auto each_row = [&](const auto& visit) {
      for (int64_t r = 0; r < rows; ++r) {
        const T* row = x + r * row_stride + first * stride;
        if (stride == 1) {
#pragma GCC ivdep
          for (int64_t c = 0; c < width; ++c) visit(c, static_cast<Math>(row[c]));
        } else {
          for (int64_t c = 0; c < width; ++c) visit(c, static_cast<Math>(row[c * stride]));
        }
      }
    };
    each_row([&](int64_t c, Math v) { center[c] += v; });
    for (int64_t c = 0; c < width; ++c) center[c] /= static_cast<Math>(rows);
    each_row([&](int64_t c, Math v) {
      const Math distance = v - center[c];
      distances[c] += distance;
      squares[c] += distance * distance;
    });
    for (int64_t c = 0; c < width; ++c) {
      acc[first + c] =
          f.combine(acc[first + c], moments_about<F>(center[c], distances[c], squares[c], static_cast<double>(rows)));
    }
  }
}

struct MomentsLoop {
  template <class T>
  static void run(const Tensor& variance, const Tensor& mean, const Tensor& input, IntArrayRef dims, double correction,
                  bool root) {
    using F = functors::Moments<opmath_t<T>>;
    T* var_out = variance.data_ptr<T>();
    T* mean_out = mean.defined() ? mean.data_ptr<T>() : nullptr;
    const auto write = [=](int64_t at, const typename F::Acc& acc) {
      const double value = F::variance(acc, correction);
      var_out[at] = static_cast<T>(static_cast<opmath_t<T>>(root ? std::sqrt(value) : value));
      const double average = acc.count == 0 ? std::numeric_limits<double>::quiet_NaN() : acc.mean;
      if (mean_out) mean_out[at] = static_cast<T>(static_cast<opmath_t<T>>(average));
    };
    using Write = decltype(write);
    static constexpr ErasedFunctor functor{
        sizeof(T),          sizeof(typename F::Acc), reduce::identity<F>,    moments_block<F, T>,
        moments_rows<F, T>, reduce::combine<F>,      reduce::write<F, Write>};
    const F f;
    reduce::run(functor, &f, &write, variance, input, dims);
  }
};

}  // namespace

void register_statistics() { set_by_dtype<kernels::moments, MomentsLoop, RealFloatTypes, 2>(kCPU); }

}  // namespace rush::cpu
