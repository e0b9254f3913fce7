// Element-wise loops on the CPU.
#pragma once
#include <algorithm>
#include <utility>

#include "backends/functors/pick.h"
#include "core/iterator/tensor_iterator.h"

namespace rush::cpu {

// The values that a loop reads are handed to the functor in the type that it computes in.
template <class T>
RUSH_ALWAYS_INLINE opmath_t<T> load(const char* from) {
  return static_cast<opmath_t<T>>(*reinterpret_cast<const T*>(from));
}

// Element i of contiguous ones.
template <class T>
RUSH_ALWAYS_INLINE opmath_t<T> element(const char* first, int64_t i) {
  return static_cast<opmath_t<T>>(reinterpret_cast<const T*>(first)[i]);
}

// out[i] = f(in[i]...) for one run. With compile-time strides the compiler vectorises the loop.
template <class F, class Out, class... In, size_t... I>
void run(char** data, const int64_t* strides, int64_t n, const F& f, std::index_sequence<I...>) {
  char* out = data[0];
  const char* in[] = {data[I + 1]...};
  if (strides[0] == sizeof(Out) && ((strides[I + 1] == static_cast<int64_t>(sizeof(In))) && ...)) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      reinterpret_cast<Out*>(out)[i] = static_cast<Out>(f(element<In>(in[I], i)...));
    }
    return;
  }
  if (strides[0] == sizeof(Out) && ((strides[I + 1] == 0) && ...)) {  // one number, as the gradient of a sum is
    std::fill_n(reinterpret_cast<Out*>(out), n, static_cast<Out>(f(load<In>(in[I])...)));
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
        reinterpret_cast<Out*>(out)[i] = static_cast<Out>(f(element<First>(in[0], i), second));
      }
      return;
    }
    if (strides[0] == sizeof(Out) && strides[1] == 0 && strides[2] == sizeof(Second)) {
      const auto first = load<First>(in[0]);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        reinterpret_cast<Out*>(out)[i] = static_cast<Out>(f(first, element<Second>(in[1], i)));
      }
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<Out*>(out + i * strides[0]) = static_cast<Out>(f(load<In>(in[I] + i * strides[I + 1])...));
  }
}

// Whether one run on this thread covers all; if so, where its operands begin, and their strides.
template <size_t N>
RUSH_ALWAYS_INLINE bool is_one_run(const TensorIterator& it, int64_t grain, char* (&data)[N], int64_t (&strides)[N]) {
  if (!it.is_flat() || it.numel() > grain) return false;
  for (size_t t = 0; t < N; ++t) {
    data[t] = it.operand(static_cast<int>(t)).data;
    strides[t] = it.dim() ? it.operand(static_cast<int>(t)).strides[0] : 0;
  }
  return true;
}

// out = f(inputs...) over the iterator, with the operands' element types.
template <class Out, class... In, class F>
void pointwise(const TensorIterator& it, const F& f, int64_t grain = kGrain) {
  constexpr auto inputs = std::index_sequence_for<In...>();
  char* data[1 + sizeof...(In)];
  int64_t strides[1 + sizeof...(In)];
  if (is_one_run(it, grain, data, strides)) return run<F, Out, In...>(data, strides, it.numel(), f, inputs);
  it.for_each([&](char** data, const int64_t* strides, int64_t n) { run<F, Out, In...>(data, strides, n, f, inputs); },
              grain);
}

}  // namespace rush::cpu
