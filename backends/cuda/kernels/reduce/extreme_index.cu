// Where the largest and the smallest element are.
#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/functors/reduce.h"
#include "core/ops/reduce/extrema.h"

namespace rush::cuda {

namespace {

// The best element and its number; of equals the first. No element has the number -1.
template <class Math, class Better>
struct BestOf {
  using In = Math;
  struct Acc {
    Math value;
    int64_t index;
  };
  __device__ Acc identity() const { return {Math(), -1}; }
  __device__ Acc take_at(const Acc& acc, In x, int64_t, int64_t i) const { return combine(acc, {x, i}); }
  __device__ Acc combine(const Acc& a, const Acc& b) const {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    if (Better()(b.value, a.value)) return b;
    if (Better()(a.value, b.value)) return a;
    return a.index < b.index ? a : b;
  }
};

template <class T, class F>
struct StoreBest {
  T* value;  // null: not wanted
  int64_t* index;
  __device__ void operator()(int64_t at, const typename F::Acc& best) const {
    if (value) value[at] = static_cast<T>(best.value);
    index[at] = best.index;
  }
};

template <class Better>
struct ExtremeIndex {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape) {
    using F = Narrow<BestOf<opmath_t<T>, Better>>;
    const ReduceDims dims = {{shape.outer, shape.size * shape.inner, shape.inner, false},
                             {shape.size, shape.inner, 0, true},
                             {shape.inner, 1, 1, false}};
    reduce_dims("max", input.data_ptr<T>(), F(),
                StoreBest<T, F>{values.defined() ? values.data_ptr<T>() : nullptr, indices.data_ptr<int64_t>()}, dims);
  }
};

void extreme(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, bool largest) {
  const ScalarType dtype = input.scalar_type();
  (largest ? pick<ExtremeIndex<functors::IsLarger>>(RealAndBoolTypes(), dtype, "max")
           : pick<ExtremeIndex<functors::IsSmaller>>(RealAndBoolTypes(), dtype, "min"))(values, indices, input, shape);
}

}  // namespace

void register_extreme_index() { kernels::extreme.set(kCUDA, extreme); }

}  // namespace rush::cuda
