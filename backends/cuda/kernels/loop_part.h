// Loops over any strides, cut into parts that 32-bit arithmetic can address, and where an element lies in such a part.
#pragma once
#include <cuda_runtime.h>

#include "core/iterator/tensor_iterator.h"

namespace rush::cuda {

// Dimensions that one launch walks over, after coalescing. More are looped over by the host.
inline constexpr int kMaxDims = 8;

// A box of a strided loop: at most kMaxDims dimensions, below 2^31 elements, and below 2^31 bytes from each operand's
// first element to its last. Dimension 0 is the innermost; strides are in bytes.
struct LoopPart {
  DimVector shape;
  DimVector strides[TensorIterator::kMaxOperands];
  char* data[TensorIterator::kMaxOperands];
  int operands = 0;

  LoopPart() = default;
  explicit LoopPart(const TensorIterator& it);
  int64_t numel() const;
};

using PartFn = void (*)(void* context, const LoopPart& part);
void split_loop(const LoopPart& whole, PartFn fn, void* context);

// Calls body(part) for parts that together are the whole loop; for one only, unless it is huge.
template <class Body>
void for_each_part(const LoopPart& whole, const Body& body) {
  split_loop(
      whole, [](void* context, const LoopPart& part) { (*static_cast<const Body*>(context))(part); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// Note [Division by multiplication]
// A GPU divides integers in some twenty instructions, and a strided loop divides once for every dimension of every
// element. n / d for n < 2^31 is (mulhi(n, m) + n) >> s with s = ceil(log2 d) and m = floor(2^32 (2^s - d) / d) + 1:
// Granlund and Montgomery, "Division by invariant integers using multiplication" (PLDI 1994), figure 4.1.
struct Divider {
  uint32_t divisor = 1, magic = 1, shift = 0;

  Divider() = default;
  explicit Divider(uint32_t d) : divisor(d) {
    while ((uint64_t{1} << shift) < d) ++shift;
    magic = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d) / d) + 1;
  }
#ifdef __CUDACC__
  __device__ uint32_t quotient(uint32_t n) const { return (__umulhi(n, magic) + n) >> shift; }
#endif
};

// Where element i of a part lies in each of N operands, in bytes.
template <int N>
struct Offsets {
  int dims;
  Divider sizes[kMaxDims];
  uint32_t strides[kMaxDims][N];

  explicit Offsets(const LoopPart& part) : dims(static_cast<int>(part.shape.size())) {
    for (int d = 0; d < dims; ++d) {
      sizes[d] = Divider(static_cast<uint32_t>(part.shape[d]));
      for (int t = 0; t < N; ++t) strides[d][t] = static_cast<uint32_t>(part.strides[t][d]);
    }
  }
#ifdef __CUDACC__
  __device__ void of(uint32_t i, uint32_t (&offset)[N]) const {
#pragma unroll
    for (int t = 0; t < N; ++t) offset[t] = 0;
#pragma unroll
    for (int d = 0; d < kMaxDims; ++d) {
      if (d >= dims) break;
      // Of the outermost dimension what is left is the position.
      const uint32_t rest = d + 1 == dims ? 0 : sizes[d].quotient(i);
      const uint32_t position = i - rest * sizes[d].divisor;
      i = rest;
#pragma unroll
      for (int t = 0; t < N; ++t) offset[t] += position * strides[d][t];
    }
  }
#endif
};

}  // namespace rush::cuda
