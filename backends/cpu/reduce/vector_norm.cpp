#include "core/ops/reduce/vector_norm.h"

#include <cmath>

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/reduce_loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/reduce.h"

namespace rush::cpu {

namespace {

struct NormLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims, double ord) {
    using Math = opmath_t<T>;
    using Real = typename functors::RealPart<Math>::type;
    using Out = std::conditional_t<is_complex_v<T>, Real, T>;
    using namespace functors;
    const auto with = [&](const auto& f) { reduce_to<T, Out>(f, output, input, dims); };
    if (ord == 0) return with(NormZero<Math>());
    if (ord == 1) return with(NormOne<Math>());
    if (ord == 2) return with(NormTwo<Math>());
    if (std::isinf(ord)) return ord > 0 ? with(NormMax<Math>()) : with(NormMin<Math>());
    with(NormP<Math>(static_cast<Real>(ord)));
  }
};

}  // namespace

void register_vector_norm() { set_by_dtype<kernels::vector_norm, NormLoop, FloatTypes, 1>(kCPU); }

}  // namespace rush::cpu
