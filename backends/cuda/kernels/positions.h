// Where element number i of a strided tensor lies, for kernels that find their elements by number.
#pragma once
#include "backends/cuda/kernels/loop_part.h"
#include "core/tensor.h"

namespace rush::cuda {

// One dimension of one or two tensors that are walked together; strides are in elements.
struct WalkDim {
  int64_t size, stride, other_stride;
};

// Neighbouring dimensions, innermost first, coalesced where they are contiguous with each other. It divides by
// multiplication (Note [Division by multiplication]) while there are fewer than 2^31 elements.
struct Positions {
  static constexpr int kMax = 12;

  int dims = 0;
  int64_t count = 1;
  WalkDim dim[kMax] = {};
  Divider divider[kMax];

  Positions() = default;
  Positions(const char* op, const Tensor& view, int64_t first, int64_t last) {
    for (int64_t d = last; d-- > first;) append(op, {view.size(d), view.stride(d), 0});
    prepare();
  }
  // The next dimension outwards. Call prepare() after the last.
  void append(const char* op, const WalkDim& next) {
    count *= next.size;
    if (next.size == 1) return;
    if (dims > 0) {
      WalkDim& inner = dim[dims - 1];
      if (next.stride == inner.size * inner.stride && next.other_stride == inner.size * inner.other_stride) {
        inner.size *= next.size;
        return;
      }
    }
    RUSH_CHECK_NOT_IMPLEMENTED(dims < kMax, op, ": more than ", kMax, " dimensions that do not lie in one run");
    dim[dims++] = next;
  }
  void prepare() {
    if (count == 0 || count >= int64_t{1} << 31) return;
    for (int d = 0; d < dims; ++d) divider[d] = Divider(static_cast<uint32_t>(dim[d].size));
  }
  // Whether all are at one place.
  bool is_still() const { return dims == 0 || (dims == 1 && dim[0].stride == 0); }
  bool is_run() const { return dims == 0 || (dims == 1 && dim[0].stride == 1); }

#ifdef __CUDACC__
  __device__ void locate(int64_t i, int64_t& offset, int64_t& other) const {
    const bool narrow = count < int64_t{1} << 31;
#pragma unroll 1  // twelve copies of a division, in each of a kernel's loops, take their time to compile and to fetch
    for (int d = 0; d < dims; ++d) {
      int64_t rest = 0;
      if (d + 1 < dims) rest = narrow ? divider[d].quotient(static_cast<uint32_t>(i)) : i / dim[d].size;
      const int64_t position = i - rest * dim[d].size;
      offset += position * dim[d].stride;
      other += position * dim[d].other_stride;
      i = rest;
    }
  }
  __device__ int64_t offset(int64_t i) const {
    if (dims <= 1) return i * dim[0].stride;
    int64_t at = 0, unused = 0;
    locate(i, at, unused);
    return at;
  }
#endif
};

}  // namespace rush::cuda
