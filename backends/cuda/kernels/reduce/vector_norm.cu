#include "backends/cuda/kernels/reduce/vector_norm.h"

#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/functors/reduce.h"
#include "core/ops/reduce/vector_norm.h"

namespace rush::cuda {

namespace {

struct CommonNorm {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims, double ord) {
    using Math = opmath_t<T>;
    using namespace functors;
    if (ord == 1) return with<T>(NormOne<Math>(), output, input, dims);
    if (ord == 2) return with<T>(NormTwo<Math>(), output, input, dims);
    with<T>(NormMax<Math>(), output, input, dims);
  }

  template <class T, class F>
  static void with(const F& f, const Tensor& output, const Tensor& input, IntArrayRef dims) {
    using Real = typename functors::RealPart<opmath_t<T>>::type;
    reduce_to<T, std::conditional_t<is_complex_v<T>, Real, T>>("linalg_vector_norm", f, output, input, dims);
  }
};

void vector_norm(const Tensor& output, const Tensor& input, IntArrayRef dims, double ord) {
  const bool common = ord == 1 || ord == 2 || ord == std::numeric_limits<double>::infinity();
  (common ? common_vector_norm : rare_vector_norm)(output, input, dims, ord);
}

}  // namespace

void common_vector_norm(const Tensor& output, const Tensor& input, IntArrayRef dims, double ord) {
  pick<CommonNorm>(FloatTypes(), input.scalar_type(), "linalg_vector_norm")(output, input, dims, ord);
}

void register_vector_norm() { kernels::vector_norm.set(kCUDA, vector_norm); }

}  // namespace rush::cuda
