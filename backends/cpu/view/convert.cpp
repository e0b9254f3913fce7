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

template <class To, class From>
bool convert_halves(const TensorIterator& it) {
  if (it.dtype(0) != scalar_type_of<To> || it.dtype(1) != scalar_type_of<From> || it.dim() == 0) return false;
  if (it.operand(0).strides[0] != sizeof(To) || it.operand(1).strides[0] != sizeof(From)) return false;
  it.for_each([](char** data, const int64_t*, int64_t n) {
    convert_run(reinterpret_cast<To*>(data[0]), reinterpret_cast<const From*>(data[1]), n);
  });
  return true;
}
#endif

// Note [Conversions]
// A loop for every pair of dtypes would be hundreds of loops, of which few ever run. The common ones, between float and
// another dtype that has arithmetic, have one each. Any other is converted through the widest type of its source's
// kind, which holds all its values: a block is widened into a buffer in the L1 cache, and narrowed from there.
template <class T>
using WideInteger = std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>;
template <class T>
using Wide =
    std::conditional_t<is_complex_v<T>, complex<double>, std::conditional_t<is_floating_v<T>, double, WideInteger<T>>>;

constexpr int64_t kBlock = 256;

using Widen = void (*)(const char* in, int64_t stride, int64_t n, void* wide);
using Narrow = void (*)(const void* wide, int64_t n, char* out, int64_t stride);

struct WidenLoop {
  template <class From>
  static void run(const char* in, int64_t stride, int64_t n, void* wide) {
    auto* to = static_cast<Wide<From>*>(wide);
    for (int64_t i = 0; i < n; ++i) to[i] = converted<Wide<From>>(*reinterpret_cast<const From*>(in + i * stride));
  }
};

template <class From>
struct NarrowLoop {
  template <class To>
  static void run(const void* wide, int64_t n, char* out, int64_t stride) {
    const auto* from = static_cast<const From*>(wide);
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<To*>(out + i * stride) = converted<To>(from[i]);
  }
};

Narrow pick_narrow(ScalarType from, ScalarType to, const char* op) {
  if (is_complex(from)) return pick<NarrowLoop<complex<double>>>(EveryType(), to, op);
  if (is_floating_point(from)) return pick<NarrowLoop<double>>(EveryType(), to, op);
  if (from == kUInt64) return pick<NarrowLoop<uint64_t>>(EveryType(), to, op);
  return pick<NarrowLoop<int64_t>>(EveryType(), to, op);
}

void convert_by_blocks(const TensorIterator& it) {
  const Widen widen = pick<WidenLoop>(EveryType(), it.dtype(1), it.op());
  const Narrow narrow = pick_narrow(it.dtype(1), it.dtype(0), it.op());
  it.for_each([=](char** data, const int64_t* strides, int64_t n) {
    alignas(64) char wide[kBlock * sizeof(complex<double>)];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      widen(data[1] + i * strides[1], strides[1], count, wide);
      narrow(wide, count, data[0] + i * strides[0], strides[0]);
    }
  });
}

struct FromFloatLoop {
  template <class To>
  static void run(const TensorIterator& it) {
    pointwise<To, float>(it, [](float value) { return converted<To>(value); });
  }
};
struct ToFloatLoop {
  template <class From>
  static void run(const TensorIterator& it) {
    pointwise<float, From>(it, [](opmath_t<From> value) { return converted<float>(value); });
  }
};

}  // namespace

void convert(const TensorIterator& it) {
#if defined(__F16C__)
  if (convert_halves<Half, float>(it) || convert_halves<float, Half>(it)) return;
#endif
  if (!has_arithmetic(it.dtype(0)) || !has_arithmetic(it.dtype(1))) return convert_by_blocks(it);
  if (it.dtype(1) == kFloat32) return pick<FromFloatLoop>(AllTypes(), it.dtype(0), it.op())(it);
  if (it.dtype(0) == kFloat32) return pick<ToFloatLoop>(AllTypes(), it.dtype(1), it.op())(it);
  convert_by_blocks(it);
}

}  // namespace rush::cpu
