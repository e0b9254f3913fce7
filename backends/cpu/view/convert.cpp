#include "backends/cpu/view/convert.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/loops.h"
#include "backends/functors/convert.h"

namespace rush::cpu {

namespace {

using functors::converted;

// The compiler vectorises the other conversions itself; this one takes instructions that it does not choose.
#if defined(__F16C__)
using Float8 __attribute__((vector_size(32))) = float;
using Short8 __attribute__((vector_size(16))) = short;

Float8 numbers_of(Short8 halves) {
#ifdef __clang__  // as in core/half.h
  using Half8 __attribute__((vector_size(16))) = _Float16;
  return __builtin_convertvector(__builtin_bit_cast(Half8, halves), Float8);
#else
  return __builtin_ia32_vcvtph2ps256(halves);
#endif
}

void convert_run(Half* out, const float* in, int64_t n) {
  constexpr int kNearestEven = 0;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    Float8 numbers;
    std::memcpy(&numbers, in + i, sizeof(numbers));
    const Short8 halves = __builtin_ia32_vcvtps2ph256(numbers, kNearestEven);
    std::memcpy(static_cast<void*>(out + i), &halves, sizeof(halves));
  }
  for (; i < n; ++i) out[i] = in[i];
}

void convert_run(float* out, const Half* in, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    Short8 halves;
    std::memcpy(&halves, in + i, sizeof(halves));
    const Float8 numbers = numbers_of(halves);
    std::memcpy(out + i, &numbers, sizeof(numbers));
  }
  for (; i < n; ++i) out[i] = in[i];
}
#endif

template <class To, class From>
void convert_run(To* out, const From* in, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = converted<To>(in[i]);
}

// Note [Conversions]
// A loop for every pair of dtypes would be hundreds of loops, of which few ever run. A type that is as wide as vectors
// convert well is converted to any other directly. The others are converted through such a type, which holds all their
// values: a block is widened into a buffer in the L1 cache, and narrowed from there.
template <class T>
using WideInteger = std::conditional_t<sizeof(T) == 1 && std::is_unsigned_v<T>, uint8_t,
                                       std::conditional_t<(sizeof(T) < 4 || std::is_same_v<T, int32_t>), int32_t,
                                                          std::conditional_t<sizeof(T) == 4, int64_t, T>>>;
template <class T>
using Wide = std::conditional_t<
    is_complex_v<T>, complex<double>,
    std::conditional_t<is_floating_v<T>, std::conditional_t<std::is_same_v<T, double>, double, float>, WideInteger<T>>>;

constexpr int64_t kBlock = 512;

// Gives the wide numbers: those of `in` where they lie, if they are, and otherwise `buffer` with the widened ones.
using Widen = const void* (*)(const char* in, int64_t stride, int64_t n, void* buffer);
using Narrow = void (*)(const void* wide, int64_t n, char* out, int64_t stride);

struct WidenLoop {
  template <class From>
  static const void* run(const char* in, int64_t stride, int64_t n, void* buffer) {
    auto* to = static_cast<Wide<From>*>(buffer);
    if (stride != sizeof(From)) {
      for (int64_t i = 0; i < n; ++i) to[i] = converted<Wide<From>>(*reinterpret_cast<const From*>(in + i * stride));
      return buffer;
    }
    if constexpr (std::is_same_v<From, Wide<From>>) return in;
    convert_run(to, reinterpret_cast<const From*>(in), n);
    return buffer;
  }
};

template <class From>
struct NarrowLoop {
  template <class To>
  static void run(const void* wide, int64_t n, char* out, int64_t stride) {
    const auto* from = static_cast<const From*>(wide);
    if (stride != sizeof(To)) {
      for (int64_t i = 0; i < n; ++i) *reinterpret_cast<To*>(out + i * stride) = converted<To>(from[i]);
    } else if constexpr (std::is_same_v<To, Half> && !std::is_same_v<From, float> && !is_complex_v<From>) {
      float numbers[kBlock];
      convert_run(numbers, from, n);
      convert_run(reinterpret_cast<Half*>(out), numbers, n);
    } else {
      convert_run(reinterpret_cast<To*>(out), from, n);
    }
  }
};

struct PickNarrow {
  template <class From>
  static Narrow run(ScalarType to, const char* op) {
    return pick<NarrowLoop<Wide<From>>>(EveryType(), to, op);
  }
};

}  // namespace

void convert(const TensorIterator& it) {
  const Widen widen = pick<WidenLoop>(EveryType(), it.dtype(1), it.op());
  const Narrow narrow = pick<PickNarrow>(EveryType(), it.dtype(1), it.op())(it.dtype(0), it.op());
  it.for_each([=](char** data, const int64_t* strides, int64_t n) {
    alignas(64) char buffer[kBlock * sizeof(complex<double>)];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      const void* wide = widen(data[1] + i * strides[1], strides[1], count, buffer);
      narrow(wide, count, data[0] + i * strides[0], strides[0]);
    }
  });
}

}  // namespace rush::cpu
