// Where an element of a tensor laid out as outer x depth x height x width x inner lies, for kernels over such tensors.
#pragma once
#include "backends/cuda/kernels/loop_part.h"

namespace rush::cuda {

template <class Index>
struct Place {
  Index outer, d, h, w, inner;
};

// Divides numbers that are not negative; those of 32 bits as in Note [Division by multiplication].
template <class Index>
struct IndexDivider {
  Index divisor = 1;
  IndexDivider() = default;
  explicit IndexDivider(Index d) : divisor(d) {}
#ifdef __CUDACC__
  __device__ Index quotient(Index n) const { return n / divisor; }
#endif
};
template <>
struct IndexDivider<int32_t> : Divider {
  IndexDivider() = default;
  explicit IndexDivider(int32_t d) : Divider(static_cast<uint32_t>(d)) {}
#ifdef __CUDACC__
  __device__ int32_t quotient(int32_t n) const {
    return static_cast<int32_t>(Divider::quotient(static_cast<uint32_t>(n)));
  }
#endif
};

// Finds the place of an element by its number. Nothing is empty.
template <class Index>
class Places {
 public:
  Places(Index depth, Index height, Index width, Index inner)
      : depth_(depth), height_(height), width_(width), inner_(inner) {}

#ifdef __CUDACC__
  __device__ Place<Index> operator()(int64_t number) const {
    auto rest = static_cast<Index>(number);
    Place<Index> place;
    place.inner = split(rest, inner_);
    place.w = split(rest, width_);
    place.h = split(rest, height_);
    place.d = split(rest, depth_);
    place.outer = rest;
    return place;
  }

  // The position along the innermost dimension; `number` becomes that of the others.
  __device__ static Index split(Index& number, const IndexDivider<Index>& size) {
    const Index rest = size.quotient(number), position = number - rest * static_cast<Index>(size.divisor);
    number = rest;
    return position;
  }
#endif

 private:
  IndexDivider<Index> depth_, height_, width_, inner_;
};

}  // namespace rush::cuda
