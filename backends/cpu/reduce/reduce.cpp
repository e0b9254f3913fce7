// Sums and products, and whether elements are zero.
#include "core/ops/reduce/reduce.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/reduce_loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/reduce.h"
#include "backends/functors/reduce_dims.h"

namespace rush::cpu {

namespace {

// Integers and bool are summed and multiplied as int64, everything else in its own type.
template <template <class, class> class F>
struct Accumulate {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims) {
    if constexpr (std::is_integral_v<T>) {
      reduce_to<T, int64_t>(F<T, int64_t>(), output, input, dims);
    } else {
      reduce_to<T, T>(F<opmath_t<T>, opmath_t<T>>(), output, input, dims);
    }
  }
};

struct MeanLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims) {
    using Math = opmath_t<T>;
    using Real = typename functors::RealPart<Math>::type;
    const Math count(static_cast<Real>(functors::elements_each(input, dims)));
    reduce_to<T, T>(functors::Mean<Math>(count), output, input, dims);
  }
};

struct NanSumLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims) {
    reduce_to<T, T>(functors::NanSum<opmath_t<T>>(), output, input, dims);
  }
};

// any, all and count_nonzero are all a count of what is not zero.
enum class Ask { HowMany, Any, All };

struct CountLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims, Ask ask) {
    const int64_t all = functors::elements_each(input, dims);
    void* out = output.data_ptr();
    reduce_with<T>(functors::CountNonzero<opmath_t<T>>(), output, input, dims, [=](int64_t at, int64_t count) {
      if (ask == Ask::HowMany) {
        static_cast<int64_t*>(out)[at] = count;
      } else {
        static_cast<bool*>(out)[at] = ask == Ask::Any ? count > 0 : count == all;
      }
    });
  }
};

template <Ask ask>
void count(const Tensor& output, const Tensor& input, IntArrayRef dims) {
  pick<CountLoop>(AllTypes(), input.scalar_type(), "count_nonzero")(output, input, dims, ask);
}

}  // namespace

void register_reduce() {
  set_by_dtype<kernels::sum, Accumulate<functors::Sum>, AllTypes, 1>(kCPU);
  set_by_dtype<kernels::prod, Accumulate<functors::Prod>, AllTypes, 1>(kCPU);
  set_by_dtype<kernels::mean, MeanLoop, FloatTypes, 1>(kCPU);
  set_by_dtype<kernels::nansum, NanSumLoop, RealFloatTypes, 1>(kCPU);
  kernels::any.set(kCPU, count<Ask::Any>);
  kernels::all.set(kCPU, count<Ask::All>);
  kernels::count_nonzero.set(kCPU, count<Ask::HowMany>);
}

}  // namespace rush::cpu
