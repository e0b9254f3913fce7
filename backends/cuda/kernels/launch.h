// Element-wise kernels from functors and a TensorIterator, and loops over the indices of a tensor.
#pragma once
#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "backends/cuda/check.h"
#include "backends/cuda/kernels/loop_part.h"
#include "backends/cuda/kernels/pick.h"
#include "backends/cuda/launch_kernel.h"

namespace rush::cuda {

// Note [Two element-wise kernels]
// out = f(inputs...) has two kernels. One is for operands that lie element after element in the same order, or are one
// number: each thread moves 16 bytes an access and has kVectors accesses to each input in flight before it computes. It
// is compiled for the element types. The other, for any strides, finds each element by dividing its index, and is
// compiled for the types that are computed in: what is 16-bit is converted as it is read or written. Functors that take
// long to compute, and types that are not floating point or have 8 bytes anyway, gain little from wide accesses and
// have the second kernel only, which for contiguous operands divides nothing.
//
// A number, that is a 0-dimensional tensor on the CPU, travels in the launch's arguments. Nothing is allocated, copied
// or asked of the driver before a launch.
inline constexpr int kThreads = 256;
inline constexpr int kVectors = 2;

// ---- contiguous ----

template <class T, int kLanes>
struct alignas(sizeof(T) * kLanes) Lanes {
  T lane[kLanes];
};

// Elements in 16 bytes of the largest type.
template <class... T>
inline constexpr int kLanesOf = 16 / std::max({sizeof(T)...});

template <size_t, class T>
struct FlatInput {
  const T* data;  // null: `number` for all elements
  bool is_one;    // the same element for all
  T number;
};
template <class Indices, class... T>
struct FlatInputs;
template <size_t... I, class... T>
struct FlatInputs<std::index_sequence<I...>, T...> : FlatInput<I, T>... {};

template <size_t, class T, int kLanes>
struct Fetched {
  Lanes<T, kLanes> vector[kVectors];
};
template <class Indices, int kLanes, class... T>
struct AllFetched;
template <size_t... I, int kLanes, class... T>
struct AllFetched<std::index_sequence<I...>, kLanes, T...> : Fetched<I, T, kLanes>... {};

template <size_t I, class T>
__device__ T element(const FlatInput<I, T>& input, int64_t i) {
  return input.is_one ? (input.data ? *input.data : input.number) : input.data[i];
}

// The vectors of a thread; those beyond the last full one stay unset.
template <size_t I, class T, int kLanes>
__device__ void fetch(const FlatInput<I, T>& input, int64_t first, int64_t n, Fetched<I, T, kLanes>& to) {
  if (input.is_one) {
    const T number = input.data ? *input.data : input.number;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) to.vector[v].lane[l] = number;
    }
    return;
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int64_t i = first + v * (kThreads * kLanes);
    if (i + kLanes <= n) to.vector[v] = *reinterpret_cast<const Lanes<T, kLanes>*>(input.data + i);
  }
}

template <size_t I, class T, int kLanes>
__device__ opmath_t<T> lane_of(const Fetched<I, T, kLanes>& fetched, int v, int l) {
  return static_cast<opmath_t<T>>(fetched.vector[v].lane[l]);
}
template <size_t I, class T>
__device__ opmath_t<T> operand_of(const FlatInput<I, T>& input, int64_t i) {
  return static_cast<opmath_t<T>>(element(input, i));
}

template <class F, class Out, class... In, size_t... I>
__device__ void run_flat(const F& f, int64_t n, Out* out, const FlatInputs<std::index_sequence<I...>, In...>& in) {
  constexpr int kLanes = kLanesOf<Out, In...>;
  AllFetched<std::index_sequence<I...>, kLanes, In...> fetched;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * (kThreads * kVectors) + threadIdx.x) * kLanes;
  (fetch<I>(in, first, n, fetched), ...);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int64_t i = first + v * (kThreads * kLanes);
    if (i + kLanes <= n) {
      Lanes<Out, kLanes> result;
#pragma unroll
      for (int l = 0; l < kLanes; ++l) result.lane[l] = static_cast<Out>(f(lane_of<I>(fetched, v, l)...));
      *reinterpret_cast<Lanes<Out, kLanes>*>(out + i) = result;
    }
  }
  // What does not fill a vector.
  const int64_t rest = n - n % kLanes + threadIdx.x;
  if (kLanes > 1 && blockIdx.x == gridDim.x - 1 && rest < n)
    out[rest] = static_cast<Out>(f(operand_of<I>(in, rest)...));
}

template <class F, class Out, class Inputs>
__global__ void __launch_bounds__(kThreads) flat_kernel(F f, int64_t n, Out* out, Inputs in) {
  run_flat(f, n, out, in);
}

// ---- strided ----

// How an operand of the strided kernel is stored: as what it is computed in, or as one of the types converted to it.
enum class Stored : uint8_t { Plain, AsHalf, AsBFloat16, Number };

inline Stored stored_as(ScalarType dtype) {
  return dtype == kFloat16 ? Stored::AsHalf : dtype == kBFloat16 ? Stored::AsBFloat16 : Stored::Plain;
}

template <size_t, class Math>
struct StridedInput {
  const char* data;
  Stored stored;
  Math number;
};
template <class Indices, class... Math>
struct StridedInputs;
template <size_t... I, class... Math>
struct StridedInputs<std::index_sequence<I...>, Math...> : StridedInput<I, Math>... {};

template <class Math>
RUSH_HD Math read_as(const char* from, Stored stored) {
  if constexpr (std::is_same_v<Math, float>) {
    if (stored == Stored::AsHalf) return *reinterpret_cast<const Half*>(from);
    if (stored == Stored::AsBFloat16) return *reinterpret_cast<const BFloat16*>(from);
  }
  return *reinterpret_cast<const Math*>(from);
}

template <class Math>
__device__ void write_as(char* to, Stored stored, Math value) {
  if constexpr (std::is_same_v<Math, float>) {
    if (stored == Stored::AsHalf) {
      *reinterpret_cast<Half*>(to) = value;
      return;
    }
    if (stored == Stored::AsBFloat16) {
      *reinterpret_cast<BFloat16*>(to) = value;
      return;
    }
  }
  *reinterpret_cast<Math*>(to) = value;
}

template <size_t I, class Math>
__device__ Math strided_operand(const StridedInput<I, Math>& input, const uint32_t* offsets) {
  return input.stored == Stored::Number ? input.number : read_as<Math>(input.data + offsets[I + 1], input.stored);
}

template <size_t, class Math, int kEach>
struct StridedFetched {
  Math value[kEach];
};
template <class Indices, int kEach, class... Math>
struct AllStridedFetched;
template <size_t... I, int kEach, class... Math>
struct AllStridedFetched<std::index_sequence<I...>, kEach, Math...> : StridedFetched<I, Math, kEach>... {};
template <size_t I, class Math, int kEach>
__device__ Math& slot_of(StridedFetched<I, Math, kEach>& fetched, int e) {
  return fetched.value[e];
}

template <int kEach, class F, class Out, class... In, size_t... I>
__device__ void run_strided(const F& f, uint32_t n, const Offsets<1 + sizeof...(In)>& where, char* out, Stored stored,
                            const StridedInputs<std::index_sequence<I...>, In...>& in, Out*) {
  AllStridedFetched<std::index_sequence<I...>, kEach, In...> fetched;
  const uint32_t first = blockIdx.x * (kThreads * kEach) + threadIdx.x;
  uint32_t index[kEach], offsets[kEach][1 + sizeof...(In)];
#pragma unroll
  for (int e = 0; e < kEach; ++e) index[e] = first + e * kThreads;
  where.of(index, offsets);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (first + e * kThreads < n) ((slot_of<I>(fetched, e) = strided_operand<I>(in, offsets[e])), ...);
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (first + e * kThreads < n) {
      write_as<Out>(out + offsets[e][0], stored, static_cast<Out>(f(slot_of<I>(fetched, e)...)));
    }
  }
}

template <int kEach, class Out, class F, class Where, class Inputs>
__global__ void __launch_bounds__(kThreads)
    strided_kernel(F f, uint32_t n, const __grid_constant__ Where where, char* out, Stored stored, Inputs in) {
  run_strided<kEach>(f, n, where, out, stored, in, static_cast<Out*>(nullptr));
}

// ---- launches ----

namespace detail {

template <size_t I, class T>
bool set_flat_input(const TensorIterator& it, FlatInput<I, T>& input) {
  const TensorIterator::Operand& operand = it.operand(static_cast<int>(I) + 1);
  input.data = reinterpret_cast<const T*>(operand.data);
  input.is_one = it.numel() == 1 || operand.strides[0] == 0;
  if (input.is_one) {
    if (operand.tensor.is_cpu()) {
      std::memcpy(static_cast<void*>(&input.number), operand.data, sizeof(T));
      input.data = nullptr;
    }
    return true;
  }
  return operand.strides[0] == static_cast<int64_t>(sizeof(T));
}

// Whether `data` may be accessed as vectors of a kernel whose widest type has kLanes in 16 bytes.
template <int kLanes, class T>
bool is_aligned(const T* data) {
  return reinterpret_cast<uintptr_t>(data) % (kLanes * sizeof(T)) == 0;
}

template <class F, class Out, class... In, size_t... I>
bool launch_flat(const TensorIterator& it, const F& f, std::index_sequence<I...>) {
  constexpr int kLanes = kLanesOf<Out, In...>;
  const int64_t n = it.numel();
  if (!it.is_flat() || (n != 1 && it.operand(0).strides[0] != static_cast<int64_t>(sizeof(Out)))) return false;
  FlatInputs<std::index_sequence<I...>, In...> in;
  if (!(set_flat_input<I, In>(it, in) && ...)) return false;
  Out* out = reinterpret_cast<Out*>(it.operand(0).data);
  const bool aligned =
      is_aligned<kLanes>(out) && ((static_cast<const FlatInput<I, In>&>(in).is_one ||
                                   is_aligned<kLanes>(static_cast<const FlatInput<I, In>&>(in).data)) &&
                                  ...);
  if (!aligned && n >= kLanes) return false;
  constexpr int64_t kWork = kThreads * kVectors * kLanes;
  launch_kernel(it.op(), flat_kernel<F, Out, decltype(in)>, {static_cast<unsigned>((n + kWork - 1) / kWork), kThreads},
                f, n, out, in);
  return true;
}

template <size_t I, class Math>
bool set_strided_input(const TensorIterator& it, StridedInput<I, Math>& input) {
  const TensorIterator::Operand& operand = it.operand(static_cast<int>(I) + 1);
  input.stored = stored_as(operand.dtype);
  if (operand.tensor.is_cpu()) {
    input.number = read_as<Math>(operand.data, input.stored);
    input.stored = Stored::Number;
  }
  return true;
}

template <int kEach, class F, class Out, class... In, size_t... I>
void launch_strided(const TensorIterator& it, const F& f, std::index_sequence<I...>) {
  StridedInputs<std::index_sequence<I...>, In...> in;
  (set_strided_input<I, In>(it, in), ...);
  for_each_part(LoopPart(it), [&](const LoopPart& part) {
    const auto n = static_cast<uint32_t>(part.numel());
    ((static_cast<StridedInput<I, In>&>(in).data = part.data[I + 1]), ...);
    constexpr uint32_t kWork = kThreads * kEach;
    using Where = Offsets<1 + sizeof...(In)>;
    launch_kernel(it.op(), strided_kernel<kEach, Out, F, Where, decltype(in)>, {(n + kWork - 1) / kWork, kThreads}, f,
                  n, Where(part), part.data[0], stored_as(it.dtype(0)), in);
  });
}

}  // namespace detail

template <class T>
inline constexpr bool is_wide = std::is_same_v<T, float> || is_reduced_float_v<T> || std::is_same_v<T, bool>;

template <bool slow, class Out, class... In, class F>
void elementwise_as(const TensorIterator& it, const F& f) {
  if (it.numel() == 0) return;
  constexpr auto inputs = std::index_sequence_for<In...>();
  if constexpr (!slow && is_wide<Out> && (is_wide<In> && ...)) {
    if (detail::launch_flat<F, Out, In...>(it, f, inputs)) return;
  }
  detail::launch_strided<slow ? 1 : 4, F, opmath_t<Out>, opmath_t<In>...>(it, f, inputs);
}

// out = f(inputs...) over the iterator, with the operands' element types; f takes and gives opmath_t of them.
template <class Out, class... In, class F>
void elementwise(const TensorIterator& it, const F& f) {
  elementwise_as<false, Out, In...>(it, f);
}
// The same for a functor that takes long to compute.
template <class Out, class... In, class F>
void elementwise_slow(const TensorIterator& it, const F& f) {
  elementwise_as<true, Out, In...>(it, f);
}

template <class T, class Result>
using stored_t = std::conditional_t<std::is_same_v<Result, opmath_t<T>>, T, Result>;

// out = f(in...), f taking one to three numbers of opmath_t<T>. Its result is stored as T, or where it is of another
// type, bool or the real type of a complex one, as that.
template <class T, bool slow, class F>
void apply(TensorIterator& it, const F& f) {
  using Math = opmath_t<T>;
  if constexpr (std::is_invocable_v<const F&, Math>) {
    elementwise_as<slow, stored_t<T, std::invoke_result_t<const F&, Math>>, T>(it, f);
  } else if constexpr (std::is_invocable_v<const F&, Math, Math>) {
    elementwise_as<slow, stored_t<T, std::invoke_result_t<const F&, Math, Math>>, T, T>(it, f);
  } else {
    elementwise_as<slow, stored_t<T, std::invoke_result_t<const F&, Math, Math, Math>>, T, T, T>(it, f);
  }
}

// ---- over indices ----

template <class Body>
__global__ void __launch_bounds__(kThreads) index_kernel(const __grid_constant__ Body body, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) body(i);
}

// Calls body(i) on the GPU for every i in [0, n). `op` is the operator's name.
template <class Body>
void for_each_index(const char* op, int64_t n, const Body& body) {
  if (n == 0) return;
  launch_kernel(op, index_kernel<Body>, {static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads}, body, n);
}

}  // namespace rush::cuda
