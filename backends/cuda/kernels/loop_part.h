// Loops over any strides, split into parts that 32-bit arithmetic can address, and the offsets of an element of a part.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>

#include "core/iterator/tensor_iterator.h"

namespace rush::cuda {

// The most dimensions of one launch, after coalescing. The host loops over further dimensions.
inline constexpr int kMaxDims = 8;

// A part of a strided loop: at most kMaxDims dimensions, fewer than 2^31 elements, and fewer than 2^31 bytes from each
// operand's first element to its last. Dimension 0 is the innermost; strides are in bytes.
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

// Calls body(part) for all parts of the loop. Only a huge loop has several.
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

// The offsets in bytes of element i of a part in each of N operands.
template <int N>
struct Offsets {
  int dims;
  Divider sizes[kMaxDims];
  uint32_t strides[kMaxDims][N];

  // A loop without dimensions is one of a single step.
  explicit Offsets(const LoopPart& part) : dims(std::max(1, static_cast<int>(part.shape.size()))), strides{} {
    for (int d = 0; d < static_cast<int>(part.shape.size()); ++d) {
      sizes[d] = Divider(static_cast<uint32_t>(part.shape[d]));
      for (int t = 0; t < N; ++t) strides[d][t] = static_cast<uint32_t>(part.strides[t][d]);
    }
  }
#ifdef __CUDACC__
  // The offsets of kEach elements at once, so that each dimension's members are read once for all. Overwrites `index`.
  template <int kEach>
  __device__ void of(uint32_t (&index)[kEach], uint32_t (&offset)[kEach][N]) const {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
#pragma unroll
      for (int t = 0; t < N; ++t) offset[e][t] = 0;
    }
#pragma unroll 1
    for (int d = 0; d + 1 < dims; ++d) {
      const Divider size = sizes[d];
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const uint32_t rest = size.quotient(index[e]);
        const uint32_t position = index[e] - rest * size.divisor;
        index[e] = rest;
#pragma unroll
        for (int t = 0; t < N; ++t) offset[e][t] += position * strides[d][t];
      }
    }
    // The last quotient is the position in the outermost dimension.
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
#pragma unroll
      for (int t = 0; t < N; ++t) offset[e][t] += index[e] * strides[dims - 1][t];
    }
  }
#endif
};

}  // namespace rush::cuda
