#include "core/ops/factory/range.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/range.h"

namespace rush::cuda {

namespace {

template <class T, class F>
struct Generate {
  T* out;
  F f;
  __device__ void operator()(int64_t i) const { out[i] = f(i); }
};

// out[i] = f(i)
template <class T, class F>
void generate(const char* op, const Tensor& out, const F& f) {
  for_each_index(op, out.numel(), Generate<T, F>{out.data_ptr<T>(), f});
}

template <class T, class Power>
struct Constant {
  Power value;
  RUSH_HD T operator()(int64_t) const { return static_cast<T>(value); }
};

struct ArangeLoop {
  template <class T>
  static void run(const Tensor& out, const Scalar& start, const Scalar& step) {
    using Math = functors::range_math_t<T>;
    generate<T>("arange", out, functors::Arange<T>{start.to<Math>(), step.to<Math>()});
  }
};

struct LinspaceLoop {
  template <class T>
  static void run(const Tensor& out, const Scalar& start, const Scalar& end) {
    using End = opmath_t<T>;
    generate<T>("linspace", out, functors::Linspace<T>(start.to<End>(), end.to<End>(), out.numel()));
  }
};

struct LogspaceLoop {
  template <class T>
  static void run(const Tensor& out, const Scalar& start, const Scalar& end, double base) {
    using End = opmath_t<T>;
    using Step = typename functors::Linspace<T>::Step;
    using std::pow;
    // A single power is that of the start as it is, even where the result is an integer.
    if (out.numel() == 1) {
      return generate<T>("logspace", out, Constant<T, Step>{pow(Scalar(base).to<Step>(), start.to<Step>())});
    }
    generate<T>("logspace", out,
                functors::Logspace<T>{functors::Linspace<T>(start.to<End>(), end.to<End>(), out.numel()),
                                      Scalar(base).to<Step>()});
  }
};

}  // namespace

void register_range() {
  set_by_dtype<kernels::arange, ArangeLoop, RealTypes>(kCUDA);
  set_by_dtype<kernels::linspace, LinspaceLoop, NumberTypes>(kCUDA);
  set_by_dtype<kernels::logspace, LogspaceLoop, NumberTypes>(kCUDA);
}

}  // namespace rush::cuda
