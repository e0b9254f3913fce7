// CUDA's kernels of Note [Tables of element-wise kernels].
#pragma once
#include "backends/cuda/kernels/pointwise/broadcast.h"
#include "backends/functors/table.h"

namespace rush::cuda {

template <class F, unsigned how, class... Numbers>
struct MapLoop {
  template <class T>
  static void run(TensorIterator& it, Numbers... numbers) {
    const auto functor = make_functor<T>(std::type_identity<F>(), numbers...);
    if constexpr ((how & kEveryLayout) != 0) {
      binary_elementwise<T>(it, functor);
    } else {
      apply<T, (how & kSlow) != 0>(it, functor);
    }
  }
};
// out = F(in...), all inputs having one dtype, computed in opmath_t of it.
template <class F, class Types, unsigned how = kCheap, class... Numbers>
void map(TensorIterator& it, Numbers... numbers) {
  pick<MapLoop<F, how, Numbers...>>(Types(), it.common_dtype(), it.op())(it, numbers...);
}

template <auto& kernel, class F, class Types, unsigned how, class... Numbers>
void set_kernel(Row<kernel, F, Types, how>, const Kernel<void(TensorIterator&, Numbers...)>&) {
  kernel.set(kCUDA, map<F, Types, how, Numbers...>);
}
template <class... Rows>
void set_kernels(Table<Rows...>) {
  (set_kernel(Rows(), Rows::kernel), ...);
}

}  // namespace rush::cuda
