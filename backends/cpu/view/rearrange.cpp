#include "core/ops/view/rearrange.h"

#include <algorithm>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

// Reads each flipped dimension from its end with a negative stride.
struct FlipLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, IntArrayRef dims) {
    if (in.numel() == 0) return;
    const T* from = static_cast<const T*>(in.data_ptr());
    T* to = static_cast<T*>(out.data_ptr());
    if (in.dim() == 0) {
      *to = *from;
      return;
    }
    DimVector strides(in.strides());
    for (int64_t d : dims) {
      from += (in.sizes()[d] - 1) * strides[d];
      strides[d] = -strides[d];
    }
    const size_t last = in.sizes().size() - 1;
    const int64_t columns = in.sizes()[last], stride = strides[last];
    parallel_for(0, in.numel() / columns, std::max<int64_t>(1, kGrain / columns), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t offset = 0, rest = row;
        for (size_t d = last; d-- > 0;) {
          offset += rest % in.sizes()[d] * strides[d];
          rest /= in.sizes()[d];
        }
        T* line = to + row * columns;
        if (stride == 1) {
          std::copy_n(from + offset, columns, line);
        } else {
          for (int64_t i = 0; i < columns; ++i) line[i] = from[offset + i * stride];
        }
      }
    });
  }
};

void flip(const Tensor& out, const Tensor& in, IntArrayRef dims) {
  pick_bytes<FlipLoop>(in.element_size())(out, in, dims);
}

}  // namespace

void register_rearrange() { kernels::flip.set(kCPU, flip); }

}  // namespace rush::cpu
