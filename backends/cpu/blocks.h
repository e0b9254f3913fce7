// Element-wise kernels from functors, block by block.
#pragma once
#include <tuple>
#include <utility>

#include "backends/cpu/loops.h"

namespace rush::cpu {

// Note [Blocks]
// loops.h makes a loop for every functor, dtype and layout. That is worth its compile time for a + b. All other
// element-wise kernels run on blocks: a functor is compiled once for each type that it computes in, as a plain loop
// over contiguous numbers, and `run_blocks`, compiled once for all, brings the operands into that form. What is
// contiguous and of the computing type is used where it lies; what is strided or 16-bit is gathered or converted into a
// buffer of 256 numbers that stays in the L1 cache, and the result is scattered or converted back.
using BlockFn = void (*)(const void* functor, void* out, const void* const* in, int64_t n);

// Calls fn(functor, out, in, n) for all elements; the dtypes of the iterator's operands say what is converted. `grain`
// is how many elements are worth a thread.
void run_blocks(const TensorIterator& it, BlockFn fn, const void* functor, int64_t grain = kGrain);

// Elements worth a thread where one takes tens of nanoseconds.
inline constexpr int64_t kSlowGrain = kGrain / 16;

template <class F, class Out, class... In, size_t... I>
void block_loop(const F& f, Out* out, const void* const* in, int64_t n, std::index_sequence<I...>) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = f(static_cast<const In*>(in[I])[i]...);
}

template <class F, class Out, class... In>
void block(const void* functor, void* out, const void* const* in, int64_t n) {
  block_loop<F, Out, In...>(*static_cast<const F*>(functor), static_cast<Out*>(out), in, n,
                            std::index_sequence_for<In...>());
}

// The block function of a functor of one to three numbers of type T.
template <class Out, class T, class F>
constexpr BlockFn block_of() {
  if constexpr (std::is_invocable_v<const F&, T>) {
    return block<F, Out, T>;
  } else if constexpr (std::is_invocable_v<const F&, T, T>) {
    return block<F, Out, T, T>;
  } else {
    return block<F, Out, T, T, T>;
  }
}

// Kernels whose operands all have one dtype, computed in opmath_t of it:
//   map<functors::Sin, FloatTypes>             out = f(in...)
//   map_by_storage<functors::Nextafter, functors::NextafterOf, RealFloatTypes>
//                                              functors::NextafterOf<Half>, which is given floats, for Half
//   map_to_bool<functors::Eq, AllTypes>        the output is bool
//   map_with<functors::Threshold, RealTypes>   functors::Threshold<T>{number.to<T>()...}
// kSlowGrain as the last argument splits among threads earlier.
template <class F>
struct MapLoop {
  template <class T>
  static void run(TensorIterator& it, int64_t grain) {
    using Math = opmath_t<T>;
    const F functor{};
    run_blocks(it, block_of<Math, Math, F>(), &functor, grain);
  }
};
template <class F, class Types, int64_t grain = kGrain>
void map(TensorIterator& it) {
  pick<MapLoop<F>>(Types(), it.common_dtype(), it.op())(it, grain);
}

template <class F, template <class> class Of>
struct MapByStorageLoop {
  template <class T>
  static void run(TensorIterator& it) {
    using Math = opmath_t<T>;
    using Functor = std::conditional_t<is_reduced_float_v<T>, Of<T>, F>;
    const Functor functor{};
    run_blocks(it, block_of<Math, Math, Functor>(), &functor);
  }
};
template <class F, template <class> class Of, class Types>
void map_by_storage(TensorIterator& it) {
  pick<MapByStorageLoop<F, Of>>(Types(), it.common_dtype(), it.op())(it);
}

template <class F>
struct MapToBoolLoop {
  template <class T>
  static void run(TensorIterator& it) {
    const F functor{};
    run_blocks(it, block_of<bool, opmath_t<T>, F>(), &functor);
  }
};
template <class F, class Types>
void map_to_bool(TensorIterator& it) {
  pick<MapToBoolLoop<F>>(Types(), it.common_dtype(), it.op())(it);
}

template <template <class> class F, class... Numbers>
struct MapWithLoop {
  template <class T>
  static void run(TensorIterator& it, const Numbers&... numbers) {
    using Math = opmath_t<T>;
    const F<Math> functor{numbers.template to<Math>()...};
    run_blocks(it, block_of<Math, Math, F<Math>>(), &functor);
  }
};
template <template <class> class F, class Types, class... Numbers>
void map_with(TensorIterator& it, const Numbers&... numbers) {
  pick<MapWithLoop<F, Numbers...>>(Types(), it.common_dtype(), it.op())(it, numbers...);
}

}  // namespace rush::cpu
