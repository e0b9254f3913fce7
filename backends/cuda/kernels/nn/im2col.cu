#include "core/ops/nn/im2col.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"

namespace rush::cuda {

namespace {

// columns[n, ky, kx, oy, ox] = images[n, oy stride + ky dilation - padding, ...], 0 outside.
template <class T>
struct Im2col {
  ImageWindows w;
  T* columns;
  const T* images;
  __device__ void operator()(int64_t i) const {
    const int64_t ox = i % w.count[1], oy = i / w.count[1] % w.count[0];
    const int64_t tap = i / w.count[1] / w.count[0];
    const int64_t kx = tap % w.kernel[1], ky = tap / w.kernel[1] % w.kernel[0], n = tap / w.kernel[1] / w.kernel[0];
    const int64_t y = oy * w.stride[0] + ky * w.dilation[0] - w.padding[0];
    const int64_t x = ox * w.stride[1] + kx * w.dilation[1] - w.padding[1];
    const bool inside = y >= 0 && y < w.image[0] && x >= 0 && x < w.image[1];
    columns[i] = inside ? images[(n * w.image[0] + y) * w.image[1] + x] : T{};
  }
};

struct Im2colLoop {
  template <class T>
  static void run(const Tensor& columns, const Tensor& images, const ImageWindows& w) {
    for_each_index("im2col", columns.numel(),
                   Im2col<T>{w, static_cast<T*>(columns.data_ptr()), static_cast<const T*>(images.data_ptr())});
  }
};

void im2col(const Tensor& columns, const Tensor& images, const ImageWindows& w) {
  pick_bytes<Im2colLoop>(images.element_size())(columns, images, w);
}

// images[n, y, x] = the sum over the taps of the windows that see it: gathered, so that the order is fixed.
template <class T>
struct Col2im {
  ImageWindows w;
  T* images;
  const T* columns;
  __device__ void operator()(int64_t i) const {
    const int64_t x = i % w.image[1], y = i / w.image[1] % w.image[0], n = i / w.image[1] / w.image[0];
    opmath_t<T> sum(0);
    for (int64_t ky = 0; ky < w.kernel[0]; ++ky) {
      const int64_t down = y + w.padding[0] - ky * w.dilation[0], oy = down / w.stride[0];
      if (down < 0 || oy * w.stride[0] != down || oy >= w.count[0]) continue;
      for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
        const int64_t right = x + w.padding[1] - kx * w.dilation[1], ox = right / w.stride[1];
        if (right < 0 || ox * w.stride[1] != right || ox >= w.count[1]) continue;
        const int64_t at = (((n * w.kernel[0] + ky) * w.kernel[1] + kx) * w.count[0] + oy) * w.count[1] + ox;
        sum = static_cast<opmath_t<T>>(sum + static_cast<opmath_t<T>>(columns[at]));
      }
    }
    images[i] = static_cast<T>(sum);
  }
};

struct Col2imLoop {
  template <class T>
  static void run(const Tensor& images, const Tensor& columns, const ImageWindows& w) {
    for_each_index("col2im", images.numel(), Col2im<T>{w, images.data_ptr<T>(), columns.data_ptr<T>()});
  }
};

}  // namespace

void register_im2col() {
  kernels::im2col.set(kCUDA, im2col);
  set_by_dtype<kernels::col2im, Col2imLoop, AllTypes>(kCUDA);
}

}  // namespace rush::cuda
