#include "backends/cuda/kernels/factory/fill.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/convert.h"
#include "core/ops/factory/factories.h"

namespace rush::cuda {

namespace {

template <class T>
__global__ void __launch_bounds__(kThreads)
    fill_strided_kernel(uint32_t n, const __grid_constant__ Offsets<1> where, char* out, T value) {
  uint32_t index[1] = {blockIdx.x * kThreads + threadIdx.x}, offset[1][1];
  if (index[0] >= n) return;
  where.of(index, offset);
  *reinterpret_cast<T*>(out + offset[0][0]) = value;
}

// 16 bytes at a time, `words` of them; the elements after those one by one.
template <class T>
__global__ void __launch_bounds__(kThreads) fill_kernel(T* out, int64_t n, int64_t words, T value) {
  constexpr int kLanes = 16 / sizeof(T);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (4 * kThreads) + threadIdx.x;
  Lanes<T, kLanes> pattern;
#pragma unroll
  for (int l = 0; l < kLanes; ++l) pattern.lane[l] = value;
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    const int64_t i = first + v * kThreads;
    if (i < words) reinterpret_cast<Lanes<T, kLanes>*>(out)[i] = pattern;
  }
  const int64_t rest = words * kLanes + threadIdx.x;
  if (blockIdx.x == 0 && rest < n) out[rest] = value;
}

struct FillBytesLoop {
  template <class T>
  static void run(const TensorIterator& it, const void* bytes) {
    T value;
    std::memcpy(static_cast<void*>(&value), bytes, sizeof value);
    const int64_t n = it.numel();
    char* data = it.operand(0).data;
    const bool dense = it.is_flat() && (n == 1 || it.operand(0).strides[0] == static_cast<int64_t>(sizeof(T)));
    if (dense && is_zero(value)) {
      RUSH_CUDA_CHECK(cudaMemsetAsync(data, 0, static_cast<size_t>(n) * sizeof(T), current_stream()));
    } else if (dense && reinterpret_cast<uintptr_t>(data) % 16 == 0) {
      const int64_t words = n * static_cast<int64_t>(sizeof(T)) / 16;
      const int64_t blocks = std::max<int64_t>(1, (words + 4 * kThreads - 1) / (4 * kThreads));
      launch_kernel(it.op(), fill_kernel<T>, {static_cast<unsigned>(blocks), kThreads}, reinterpret_cast<T*>(data), n,
                    words, value);
    } else {
      fill_each(it, value);
    }
  }

 private:
  template <class T>
  static bool is_zero(const T& value) {
    const T zero{};
    return std::memcmp(&value, &zero, sizeof value) == 0;
  }

  template <class T>
  static void fill_each(const TensorIterator& it, T value) {
    LoopPart loop(it);
    loop.operands = 1;
    for_each_part(loop, [&](const LoopPart& part) {
      const auto n = static_cast<uint32_t>(part.numel());
      launch_kernel(it.op(), fill_strided_kernel<T>, {(n + kThreads - 1) / kThreads, kThreads}, n, Offsets<1>(part),
                    part.data[0], value);
    });
  }
};

// The value's bytes as T, zero beyond them.
struct BytesOf {
  template <class T>
  static Bytes16 run(const Scalar& value) {
    Bytes16 bytes{};
    T number{};
    if constexpr (is_complex_v<T>) {
      number = value.to<T>();
    } else {
      number = value.is_complex() ? functors::converted<T>(value.to<complex<double>>()) : value.to<T>();
    }
    std::memcpy(static_cast<void*>(&bytes), &number, sizeof number);
    return bytes;
  }
};

void fill(TensorIterator& it, const Scalar& value) {
  if (value.is_complex() && !is_complex(it.dtype())) static_cast<void>(value.to<double>());  // throws
  fill_strided(it, value);
}

}  // namespace

void fill_strided(const TensorIterator& it, const Scalar& value) {
  if (it.numel() == 0) return;
  const Bytes16 bytes = pick<BytesOf>(EveryType(), it.dtype(0), it.op())(value);
  pick_bytes<FillBytesLoop>(element_size(it.dtype(0)))(it, &bytes);
}

void register_fill() { kernels::fill.set(kCUDA, fill); }

}  // namespace rush::cuda
