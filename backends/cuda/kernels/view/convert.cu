// Copies between dtypes.
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/view/copy.h"
#include "backends/functors/convert.h"

namespace rush::cuda {

namespace {

// Between the floating types that networks use: wide accesses.
template <class To>
struct Cast {
  template <class From>
  __device__ opmath_t<To> operator()(From value) const {
    return static_cast<opmath_t<To>>(value);
  }
};

template <class To, class From>
bool cast(const TensorIterator& it) {
  if (it.dtype(0) != scalar_type_of<To> || it.dtype(1) != scalar_type_of<From>) return false;
  elementwise<To, From>(it, Cast<To>{});
  return true;
}

// Any other pair is converted through the widest type of its source's kind, which holds all its values: see Note
// [Conversions] in backends/cpu/view/convert.cpp. Here one kernel a kind reads and writes by dtypes known at run time:
// those that have arithmetic, or in a kernel that takes longer, every one.
template <class Wide, bool every>
__device__ Wide read_wide(const char* from, ScalarType dtype) {
  switch (dtype) {
#define RUSH_READ(enumerator, type, ...)                                      \
  case ScalarType::enumerator:                                                \
    if constexpr (every || has_arithmetic(ScalarType::enumerator)) {          \
      return functors::converted<Wide>(*reinterpret_cast<const type*>(from)); \
    }                                                                         \
    break;
    RUSH_FORALL_SCALAR_TYPES(RUSH_READ)
#undef RUSH_READ
  }
  return Wide(0);
}

template <class Wide, bool every>
__device__ void write_narrow(char* to, ScalarType dtype, Wide value) {
  switch (dtype) {
#define RUSH_WRITE(enumerator, type, ...)                              \
  case ScalarType::enumerator:                                         \
    if constexpr (every || has_arithmetic(ScalarType::enumerator)) {   \
      *reinterpret_cast<type*>(to) = functors::converted<type>(value); \
    }                                                                  \
    break;
    RUSH_FORALL_SCALAR_TYPES(RUSH_WRITE)
#undef RUSH_WRITE
  }
}

template <class Wide, bool every>
__global__ void __launch_bounds__(kThreads)
    convert_kernel(uint32_t n, const __grid_constant__ Offsets<2> where, char* out, ScalarType out_dtype,
                   const char* in, ScalarType in_dtype) {
  constexpr int kEach = 2;
  const uint32_t first = blockIdx.x * (kThreads * kEach) + threadIdx.x;
  uint32_t index[kEach], offsets[kEach][2];
#pragma unroll
  for (int e = 0; e < kEach; ++e) index[e] = first + e * kThreads;
  where.of(index, offsets);
  Wide value[kEach];
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (first + e * kThreads < n) value[e] = read_wide<Wide, every>(in + offsets[e][1], in_dtype);
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (first + e * kThreads < n) write_narrow<Wide, every>(out + offsets[e][0], out_dtype, value[e]);
  }
}

template <class Wide, bool every>
void convert_by_way_of(const TensorIterator& it) {
  for_each_part(LoopPart(it), [&](const LoopPart& part) {
    const auto n = static_cast<uint32_t>(part.numel());
    constexpr uint32_t kWork = 2 * kThreads;
    launch_kernel(it.op(), convert_kernel<Wide, every>, {(n + kWork - 1) / kWork, kThreads}, n, Offsets<2>(part),
                  part.data[0], it.dtype(0), part.data[1], it.dtype(1));
  });
}

template <bool every>
void convert_any(const TensorIterator& it) {
  if (is_complex(it.dtype(1))) return convert_by_way_of<complex<double>, every>(it);
  if (is_floating_point(it.dtype(1))) return convert_by_way_of<double, every>(it);
  if constexpr (every) {
    if (it.dtype(1) == kUInt64) return convert_by_way_of<uint64_t, true>(it);
  }
  convert_by_way_of<int64_t, every>(it);
}

}  // namespace

void convert_strided(const TensorIterator& it) {
  if (cast<Half, float>(it) || cast<float, Half>(it) || cast<BFloat16, float>(it) || cast<float, BFloat16>(it)) return;
  if (cast<float, bool>(it) || cast<Half, bool>(it) || cast<BFloat16, bool>(it)) return;
  const bool have_arithmetic = has_arithmetic(it.dtype(0)) && has_arithmetic(it.dtype(1));
  have_arithmetic ? convert_any<false>(it) : convert_any<true>(it);
}

}  // namespace rush::cuda
