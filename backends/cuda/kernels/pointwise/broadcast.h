// Binary element-wise kernels of 16-bit numbers of which one operand repeats.
#pragma once
#include "backends/cuda/kernels/launch.h"

namespace rush::cuda {

// Note [Broadcasts of 16-bit numbers]
// Of the two kernels of Note [Two element-wise kernels] the strided one moves an element an access. With 4 bytes a
// thread that keeps up with the memory; 2-byte elements take it as long as 4-byte ones. Where the operands lie along
// the innermost dimension without gaps or repeat one number along it, which a row or a column added to a matrix does,
// this one moves 16 bytes a thread, and divides the indices of vectors. A second vector a thread makes it 7 % slower.
template <class T>
struct BroadcastOperand {
  static constexpr int kLanes = 16 / sizeof(T);
  const char* data;
  bool is_one;  // of each row

  __device__ Lanes<T, kLanes> read(uint32_t offset) const {
    if (!is_one) return *reinterpret_cast<const Lanes<T, kLanes>*>(data + offset);
    const T number = *reinterpret_cast<const T*>(data + offset);
    Lanes<T, kLanes> repeated;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) repeated.lane[l] = number;
    return repeated;
  }
};

template <class T, class F>
__global__ void __launch_bounds__(kThreads) broadcast_kernel(F f, uint32_t n, const __grid_constant__ Offsets<3> where,
                                                             char* out, BroadcastOperand<T> a, BroadcastOperand<T> b) {
  constexpr int kLanes = BroadcastOperand<T>::kLanes;
  using Math = opmath_t<T>;
  uint32_t index[1] = {blockIdx.x * kThreads + threadIdx.x}, offsets[1][3];
  if (index[0] >= n) return;
  where.of(index, offsets);
  const Lanes<T, kLanes> x = a.read(offsets[0][1]), y = b.read(offsets[0][2]);
  Lanes<T, kLanes> result;
#pragma unroll
  for (int l = 0; l < kLanes; ++l) {
    result.lane[l] = static_cast<T>(f(static_cast<Math>(x.lane[l]), static_cast<Math>(y.lane[l])));
  }
  *reinterpret_cast<Lanes<T, kLanes>*>(out + offsets[0][0]) = result;
}

// Whether operand t can be moved in vectors along the innermost dimension of the loop, which then counts those.
template <class T>
bool move_in_vectors(LoopPart& loop, int t) {
  constexpr int64_t kBytes = 16;
  if (loop.strides[t][0] != static_cast<int64_t>(sizeof(T))) return false;
  if (reinterpret_cast<uintptr_t>(loop.data[t]) % kBytes != 0) return false;
  for (size_t d = 1; d < loop.shape.size(); ++d) {
    if (loop.strides[t][d] % kBytes != 0) return false;
  }
  loop.strides[t][0] = kBytes;
  return true;
}

// out = f(a, b) in this way; false, and nothing done, where it does not fit.
template <class T, class F>
bool launch_broadcast(const TensorIterator& it, const F& f) {
  constexpr int kLanes = BroadcastOperand<T>::kLanes;
  if (it.numel() == 0 || it.is_flat()) return false;
  for (int t = 0; t < 3; ++t) {
    if (it.operand(t).dtype != it.common_dtype() || (t > 0 && it.operand(t).tensor.is_cpu())) return false;
  }
  LoopPart loop(it);
  if (loop.shape.empty() || loop.shape[0] % kLanes != 0 || !move_in_vectors<T>(loop, 0)) return false;
  bool is_one[2];
  for (int i = 0; i < 2; ++i) {
    is_one[i] = loop.strides[i + 1][0] == 0;
    if (!is_one[i] && !move_in_vectors<T>(loop, i + 1)) return false;
  }
  loop.shape[0] /= kLanes;
  for_each_part(loop, [&](const LoopPart& part) {
    const auto n = static_cast<uint32_t>(part.numel());
    launch_kernel(it.op(), broadcast_kernel<T, F>, {(n + kThreads - 1) / kThreads, kThreads}, f, n, Offsets<3>(part),
                  part.data[0], BroadcastOperand<T>{part.data[1], is_one[0]},
                  BroadcastOperand<T>{part.data[2], is_one[1]});
  });
  return true;
}

// out = f(a, b) over the iterator, like elementwise.
template <class T, class F>
void binary_elementwise(const TensorIterator& it, const F& f) {
  if constexpr (is_reduced_float_v<T>) {
    if (launch_broadcast<T>(it, f)) return;
  }
  elementwise<T, T, T>(it, f);
}

}  // namespace rush::cuda
