// The CPU's kernels of Note [Tables of element-wise kernels].
#pragma once
#include "backends/cpu/pointwise/vec_math.h"
#include "backends/functors/table.h"

namespace rush::cpu {

template <unsigned how, class T, class F>
constexpr BlockFn block_for() {
  if constexpr ((how & kVectors) != 0) {
    return vec_block_of<T, F>();
  } else {
    return block_of<T, F>();
  }
}

template <class F, unsigned how, class... Numbers>
struct MapLoop {
  template <class T>
  static void run(TensorIterator& it, Numbers... numbers) {
    const auto functor = make_functor<T>(std::type_identity<F>(), numbers...);
    if constexpr ((how & kEveryLayout) != 0) {
      pointwise<T, T, T>(it, functor);
    } else {
      constexpr int64_t grain = how & kVectors ? kGrain / 4 : how & kSlow ? kSlowGrain : kGrain;
      run_blocks(it, block_for<how, opmath_t<T>, std::remove_const_t<decltype(functor)>>(), &functor, grain);
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
  kernel.set(kCPU, map<F, Types, how, Numbers...>);
}
template <class... Rows>
void set_kernels(Table<Rows...>) {
  (set_kernel(Rows(), Rows::kernel), ...);
}

}  // namespace rush::cpu
