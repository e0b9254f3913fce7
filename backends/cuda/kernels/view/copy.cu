#include "backends/cuda/kernels/view/copy.h"

#include "backends/cuda/kernels/factory/fill.h"
#include "backends/cuda/kernels/view/transpose.h"
#include "core/scalar.h"

namespace rush::cuda {

namespace {

template <class T>
__global__ void __launch_bounds__(kThreads)
    move_kernel(uint32_t n, const __grid_constant__ Offsets<2> where, char* out, const char* in) {
  constexpr int kEach = 4;
  const uint32_t first = blockIdx.x * (kThreads * kEach) + threadIdx.x;
  uint32_t index[kEach], offsets[kEach][2];
#pragma unroll
  for (int e = 0; e < kEach; ++e) index[e] = first + e * kThreads;
  where.of(index, offsets);
  T value[kEach];
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (first + e * kThreads < n) value[e] = *reinterpret_cast<const T*>(in + offsets[e][1]);
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (first + e * kThreads < n) *reinterpret_cast<T*>(out + offsets[e][0]) = value[e];
  }
}

// Whether rows of the innermost dimension can be copied as elements of `bytes` bytes; `size` is that of an element.
bool is_made_of(const LoopPart& loop, int64_t size, int64_t bytes) {
  if (loop.shape.empty() || loop.shape[0] * size % bytes != 0) return false;
  for (int t = 0; t < 2; ++t) {
    if (loop.strides[t][0] != size || reinterpret_cast<uintptr_t>(loop.data[t]) % static_cast<uintptr_t>(bytes) != 0) {
      return false;
    }
    for (size_t d = 1; d < loop.shape.size(); ++d) {
      if (loop.strides[t][d] % bytes != 0) return false;
    }
  }
  return true;
}

// The element size to move the loop in, which is changed to count such elements.
int64_t widen(LoopPart& loop, int64_t size) {
  for (int64_t bytes = 16; bytes > size; bytes /= 2) {
    if (!is_made_of(loop, size, bytes)) continue;
    loop.shape[0] = loop.shape[0] * size / bytes;
    loop.strides[0][0] = loop.strides[1][0] = bytes;
    return bytes;
  }
  return size;
}

struct MoveLoop {
  template <class T>
  static void run(const LoopPart& loop, const char* op) {
    if (transpose<T>(loop, op)) return;
    for_each_part(loop, [&](const LoopPart& part) {
      const auto n = static_cast<uint32_t>(part.numel());
      constexpr uint32_t kWork = 4 * kThreads;
      launch_kernel(op, move_kernel<T>, {(n + kWork - 1) / kWork, kThreads}, n, Offsets<2>(part), part.data[0],
                    part.data[1]);
    });
  }
};

void move(const TensorIterator& it) {
  const int64_t size = element_size(it.dtype());
  if (it.is_flat() && (it.numel() == 1 || (it.operand(0).strides[0] == size && it.operand(1).strides[0] == size))) {
    // With unified addressing, it may be on another device, too.
    RUSH_CUDA_CHECK(cudaMemcpyAsync(it.operand(0).data, it.operand(1).data, static_cast<size_t>(it.numel() * size),
                                    cudaMemcpyDeviceToDevice, current_stream()));
    return;
  }
  LoopPart loop(it);
  const int64_t moved = widen(loop, size);
  pick_bytes<MoveLoop>(moved)(loop, it.op());
}

struct NumberOf {
  template <class T>
  static Scalar run(const char* data) {
    return Scalar(*reinterpret_cast<const T*>(data));
  }
};

}  // namespace

void copy_strided(const TensorIterator& it) {
  if (it.numel() == 0) return;
  const TensorIterator::Operand& source = it.operand(1);
  if (source.tensor.is_cpu()) {
    return fill_strided(it, pick<NumberOf>(EveryType(), source.dtype, it.op())(source.data));
  }
  if (it.dtype(0) == it.dtype(1)) return move(it);
  convert_strided(it);
}

}  // namespace rush::cuda
