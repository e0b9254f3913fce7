#include "core/ops/view/rearrange.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"

namespace rush::cuda {

namespace {

// Dimensions of a tensor in a kernel's arguments; there are at most 64.
inline constexpr int kMaxFlippedDims = 64;

// out[i] = in[index of i], row-major; flipped dimensions are read from their end with a negative stride.
template <class T>
struct Flip {
  T* out;
  const T* in;
  int dims;
  int64_t sizes[kMaxFlippedDims], strides[kMaxFlippedDims];
  __device__ void operator()(int64_t i) const {
    int64_t rest = i, from = 0;
    for (int d = dims - 1; d >= 0; --d) {
      const int64_t outer = rest / sizes[d];
      from += (rest - outer * sizes[d]) * strides[d];
      rest = outer;
    }
    out[i] = in[from];
  }
};

struct FlipLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, IntArrayRef flipped) {
    RUSH_CHECK_NOT_IMPLEMENTED(in.dim() <= kMaxFlippedDims, "flip: more than ", kMaxFlippedDims, " dimensions");
    Flip<T> flip;
    flip.out = static_cast<T*>(out.data_ptr());
    flip.in = static_cast<const T*>(in.data_ptr());
    flip.dims = static_cast<int>(in.dim());
    for (int d = 0; d < flip.dims; ++d) {
      flip.sizes[d] = in.sizes()[static_cast<size_t>(d)];
      flip.strides[d] = in.strides()[static_cast<size_t>(d)];
    }
    if (flip.dims > 0 && in.numel() > 0) {
      for (int64_t d : flipped) {
        flip.in += (flip.sizes[d] - 1) * flip.strides[d];
        flip.strides[d] = -flip.strides[d];
      }
    }
    for_each_index("flip", in.numel(), flip);
  }
};

void flip(const Tensor& out, const Tensor& in, IntArrayRef dims) {
  pick_bytes<FlipLoop>(in.element_size())(out, in, dims);
}

}  // namespace

void register_rearrange() { kernels::flip.set(kCUDA, flip); }

}  // namespace rush::cuda
