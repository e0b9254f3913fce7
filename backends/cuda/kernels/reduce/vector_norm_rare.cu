#include "backends/cuda/kernels/reduce/vector_norm.h"

#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/functors/reduce.h"

namespace rush::cuda {

namespace {

struct RareNorm {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims, double ord) {
    using Math = opmath_t<T>;
    using namespace functors;
    if (ord == 0) return with<T>(Narrow<NormZero<Math>>(), output, input, dims);
    if (std::isinf(ord)) return with<T>(Narrow<NormMin<Math>>(), output, input, dims);
    const auto power = static_cast<typename RealPart<Math>::type>(ord);
    with<T>(Narrow<NormP<Math>>{NormP<Math>(power)}, output, input, dims);
  }

  template <class T, class F>
  static void with(const F& f, const Tensor& output, const Tensor& input, IntArrayRef dims) {
    using Real = typename functors::RealPart<opmath_t<T>>::type;
    reduce_to<T, std::conditional_t<is_complex_v<T>, Real, T>>("linalg_vector_norm", f, output, input, dims);
  }
};

}  // namespace

void rare_vector_norm(const Tensor& output, const Tensor& input, IntArrayRef dims, double ord) {
  pick<RareNorm>(FloatTypes(), input.scalar_type(), "linalg_vector_norm")(output, input, dims, ord);
}

}  // namespace rush::cuda
