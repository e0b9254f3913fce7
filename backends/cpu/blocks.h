// Element-wise kernels from functors, block by block.
#pragma once
#include <utility>

#include "backends/cpu/loops.h"

namespace rush::cpu {

// Note [Blocks]
// loops.h makes a loop for every functor, dtype and layout. That is worth its compile time for a + b. All other
// element-wise kernels run on blocks: a functor is compiled once for each type that it computes in, as a plain loop
// over contiguous numbers, and `run_blocks`, compiled once for all, brings the operands into that form. What is
// contiguous and of the computing type is used where it lies; what is strided or 16-bit is gathered or converted into a
// buffer of 4 KiB that stays in the L1 cache, and the result is scattered or converted back.
using BlockFn = void (*)(const void* functor, void* out, const void* const* in, int64_t n);

// Calls fn(functor, out, in, n) for all elements; the dtypes of the iterator's operands say what is converted. `grain`
// is how many elements are worth a thread.
void run_blocks(const TensorIterator& it, BlockFn fn, const void* functor, int64_t grain = kGrain);

// Elements worth a thread where one takes tens of nanoseconds.
inline constexpr int64_t kSlowGrain = kGrain / 16;

// Truth values are read as bytes: GCC vectorises no loop that reads and writes bool.
template <class T>
RUSH_ALWAYS_INLINE T number_at(const T* first, int64_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return reinterpret_cast<const uint8_t*>(first)[i] != 0;
  } else {
    return first[i];
  }
}

// The inputs are arguments of their own, and the functor is a copy: what is written to `out` might change what an array
// of pointers or a functor elsewhere holds.
template <class F, class Out, class... In>
void block_loop(const F f, Out* out, int64_t n, const In*... in) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = f(number_at(in, i)...);
}

template <class F, class Out, class... In, size_t... I>
void block_loop_of(const F& f, Out* out, const void* const* in, int64_t n, std::index_sequence<I...>) {
  block_loop<F, Out, In...>(f, out, n, static_cast<const In*>(in[I])...);
}

template <class F, class Out, class... In>
void block(const void* functor, void* out, const void* const* in, int64_t n) {
  block_loop_of<F, Out, In...>(*static_cast<const F*>(functor), static_cast<Out*>(out), in, n,
                               std::index_sequence_for<In...>());
}

// The block function of a functor of one to three numbers of type T.
template <class T, class F>
constexpr BlockFn block_of() {
  if constexpr (std::is_invocable_v<const F&, T>) {
    return block<F, std::invoke_result_t<const F&, T>, T>;
  } else if constexpr (std::is_invocable_v<const F&, T, T>) {
    return block<F, std::invoke_result_t<const F&, T, T>, T, T>;
  } else {
    return block<F, std::invoke_result_t<const F&, T, T, T>, T, T, T>;
  }
}

}  // namespace rush::cpu
