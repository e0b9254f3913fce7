// Element-wise loops on the CPU.
#pragma once
#include <utility>

#include "backends/functors/pick.h"
#include "core/iterator/tensor_iterator.h"

namespace rush::cpu {

// The values that a loop reads are handed to the functor in the type that it computes in.
template <class T>
RUSH_ALWAYS_INLINE opmath_t<T> load(const char* from) {
  return static_cast<opmath_t<T>>(*reinterpret_cast<const T*>(from));
}

// out[i] = f(in[i]...) for one run. With compile-time strides the compiler vectorises the loop.
template <class F, class Out, class... In, size_t... I>
void run(char** data, const int64_t* strides, int64_t n, const F& f, std::index_sequence<I...>) {
  char* out = data[0];
  const char* in[] = {data[I + 1]...};
  const bool contiguous =
      strides[0] == sizeof(Out) && ((strides[I + 1] == static_cast<int64_t>(sizeof(In))) && ... && true);
  if (contiguous) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      reinterpret_cast<Out*>(out)[i] =
          static_cast<Out>(f(static_cast<opmath_t<In>>(reinterpret_cast<const In*>(in[I])[i])...));
    }
    return;
  }
  if constexpr (sizeof...(In) == 2) {
    // One operand the same for the whole run, as a number or a broadcast dimension is.
    using First = std::tuple_element_t<0, std::tuple<In...>>;
    using Second = std::tuple_element_t<1, std::tuple<In...>>;
    if (strides[0] == sizeof(Out) && strides[1] == sizeof(First) && strides[2] == 0) {
      const auto second = load<Second>(in[1]);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        reinterpret_cast<Out*>(out)[i] =
            static_cast<Out>(f(static_cast<opmath_t<First>>(reinterpret_cast<const First*>(in[0])[i]), second));
      }
      return;
    }
    if (strides[0] == sizeof(Out) && strides[1] == 0 && strides[2] == sizeof(Second)) {
      const auto first = load<First>(in[0]);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        reinterpret_cast<Out*>(out)[i] =
            static_cast<Out>(f(first, static_cast<opmath_t<Second>>(reinterpret_cast<const Second*>(in[1])[i])));
      }
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<Out*>(out + i * strides[0]) = static_cast<Out>(f(load<In>(in[I] + i * strides[I + 1])...));
  }
}

// out = f(inputs...) over the iterator, with the operands' element types.
template <class Out, class... In, class F>
void pointwise(const TensorIterator& it, const F& f, int64_t grain = kGrain) {
  constexpr auto inputs = std::index_sequence_for<In...>();
  if (it.is_flat() && it.numel() <= grain) {
    char* data[1 + sizeof...(In)];
    int64_t strides[1 + sizeof...(In)];
    for (size_t t = 0; t <= sizeof...(In); ++t) {
      data[t] = it.operand(static_cast<int>(t)).data;
      strides[t] = it.dim() ? it.operand(static_cast<int>(t)).strides[0] : 0;
    }
    return run<F, Out, In...>(data, strides, it.numel(), f, inputs);
  }
  it.for_each([&](char** data, const int64_t* strides, int64_t n) { run<F, Out, In...>(data, strides, n, f, inputs); },
              grain);
}

}  // namespace rush::cpu
