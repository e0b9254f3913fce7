#include "core/ops/factory/range.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/range.h"

namespace rush::cpu {

namespace {

// out[i] = f(i)
template <class T, class F>
void generate(const Tensor& out, const F& f) {
  T* data = out.data_ptr<T>();
  parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) data[i] = f(i);
  });
}

struct ArangeLoop {
  template <class T>
  static void run(const Tensor& out, const Scalar& start, const Scalar& step) {
    using Math = functors::range_math_t<T>;
    generate<T>(out, functors::Arange<T>{start.to<Math>(), step.to<Math>()});
  }
};

struct LinspaceLoop {
  template <class T>
  static void run(const Tensor& out, const Scalar& start, const Scalar& end) {
    using End = opmath_t<T>;
    generate<T>(out, functors::Linspace<T>(start.to<End>(), end.to<End>(), out.numel()));
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
      *out.data_ptr<T>() = static_cast<T>(pow(Scalar(base).to<Step>(), start.to<Step>()));
      return;
    }
    generate<T>(out, functors::Logspace<T>{functors::Linspace<T>(start.to<End>(), end.to<End>(), out.numel()),
                                           Scalar(base).to<Step>()});
  }
};

}  // namespace

void register_range() {
  set_by_dtype<kernels::arange, ArangeLoop, RealTypes>(kCPU);
  set_by_dtype<kernels::linspace, LinspaceLoop, NumberTypes>(kCPU);
  set_by_dtype<kernels::logspace, LogspaceLoop, NumberTypes>(kCPU);
}

}  // namespace rush::cpu
