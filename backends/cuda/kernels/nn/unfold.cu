#include "backends/cuda/kernels/nn/unfold.h"

#include <algorithm>

#include "backends/cuda/launch_kernel.h"

namespace rush::cuda {

namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t n) {
  return static_cast<unsigned>(std::min<int64_t>((n + kThreads - 1) / kThreads, int64_t(1) << 20));
}

// std::array has no device functions: the same numbers as plain arrays.
struct Windows {
  int64_t batch, channels, groups;
  int64_t image[3], kernel[3], windows[3], stride[3], padding[3], dilation[3], strides[5];
  int64_t channels_in_group, taps;

  explicit Windows(const WindowLayout& l)
      : batch(l.batch),
        channels(l.channels),
        groups(l.groups),
        channels_in_group(l.channels / l.groups),
        taps(l.taps()) {
    for (int d = 0; d < 3; ++d) {
      image[d] = l.image[d];
      kernel[d] = l.kernel[d];
      windows[d] = l.windows[d];
      stride[d] = l.geometry.stride[d];
      padding[d] = l.geometry.padding[d];
      dilation[d] = l.geometry.dilation[d];
    }
    std::copy(l.strides.begin(), l.strides.end(), strides);
  }
};

template <class T>
__global__ void unfold_kernel(T* rows, const T* image, Windows w, int64_t total) {
  for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < total; i += int64_t(gridDim.x) * kThreads) {
    // i = (((row * groups + group) * channels_in_group + c) * taps) + tap
    int64_t tap = i % w.taps, row = i / w.taps;
    const int64_t channel = row % (w.groups * w.channels_in_group);
    row /= w.groups * w.channels_in_group;
    int64_t from = channel * w.strides[1];
    bool inside = true;
    for (int d = 2; d >= 0; --d) {
      const int64_t at = row % w.windows[d] * w.stride[d] + tap % w.kernel[d] * w.dilation[d] - w.padding[d];
      row /= w.windows[d];
      tap /= w.kernel[d];
      inside = inside && at >= 0 && at < w.image[d];
      from += at * w.strides[d + 2];
    }
    rows[i] = inside ? image[from + row * w.strides[0]] : T{};
  }
}

// The window that has `tap` over position `at`: negative when there is none.
__device__ inline int64_t window_over(const Windows& w, int d, int64_t at, int64_t tap) {
  const int64_t start = at + w.padding[d] - tap * w.dilation[d];
  if (start < 0 || start % w.stride[d] != 0) return -1;
  const int64_t window = start / w.stride[d];
  return window < w.windows[d] ? window : -1;
}

template <class T>
__global__ void fold_kernel(T* image, const T* rows, Windows w, int64_t total) {
  for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < total; i += int64_t(gridDim.x) * kThreads) {
    const int64_t x = i % w.image[2], y = i / w.image[2] % w.image[1], z = i / (w.image[2] * w.image[1]) % w.image[0];
    const int64_t plane = i / (w.image[2] * w.image[1] * w.image[0]), channel = plane % w.channels;
    const int64_t n = plane / w.channels;
    opmath_t<T> sum(0);
    for (int64_t kz = 0; kz < w.kernel[0]; ++kz) {
      const int64_t oz = window_over(w, 0, z, kz);
      if (oz < 0) continue;
      for (int64_t ky = 0; ky < w.kernel[1]; ++ky) {
        const int64_t oy = window_over(w, 1, y, ky);
        if (oy < 0) continue;
        for (int64_t kx = 0; kx < w.kernel[2]; ++kx) {
          const int64_t ox = window_over(w, 2, x, kx);
          if (ox < 0) continue;
          const int64_t row = ((n * w.windows[0] + oz) * w.windows[1] + oy) * w.windows[2] + ox;
          const int64_t tap = (kz * w.kernel[1] + ky) * w.kernel[2] + kx;
          sum = sum + static_cast<opmath_t<T>>(rows[(row * w.channels + channel) * w.taps + tap]);
        }
      }
    }
    image[n * w.strides[0] + channel * w.strides[1] + z * w.strides[2] + y * w.strides[3] + x * w.strides[4]] =
        static_cast<T>(sum);
  }
}

template <class T>
void unfold_as(const Tensor& rows, const Tensor& image, const WindowLayout& layout) {
  const int64_t total = rows.numel();
  if (total == 0) return;
  launch_kernel("convolution", unfold_kernel<T>, {blocks_for(total), kThreads}, static_cast<T*>(rows.data_ptr()),
                static_cast<const T*>(image.data_ptr()), Windows(layout), total);
}

template <class T>
void fold_as(const Tensor& image, const Tensor& rows, const WindowLayout& layout) {
  const int64_t total = image.numel();
  if (total == 0) return;
  launch_kernel("convolution", fold_kernel<T>, {blocks_for(total), kThreads}, static_cast<T*>(image.data_ptr()),
                static_cast<const T*>(rows.data_ptr()), Windows(layout), total);
}

}  // namespace

// Only bytes move.
void unfold(const Tensor& rows, const Tensor& image, const WindowLayout& layout) {
  switch (image.element_size()) {
    case 1: return unfold_as<uint8_t>(rows, image, layout);
    case 2: return unfold_as<uint16_t>(rows, image, layout);
    case 4: return unfold_as<uint32_t>(rows, image, layout);
    case 8: return unfold_as<uint64_t>(rows, image, layout);
    default: return unfold_as<ulonglong2>(rows, image, layout);
  }
}

void fold(const Tensor& image, const Tensor& rows, const WindowLayout& layout) {
  switch (image.scalar_type()) {
    case kFloat32: return fold_as<float>(image, rows, layout);
    case kFloat64: return fold_as<double>(image, rows, layout);
    case kFloat16: return fold_as<Half>(image, rows, layout);
    case kBFloat16: return fold_as<BFloat16>(image, rows, layout);
    case kComplex64: return fold_as<complex<float>>(image, rows, layout);
    case kComplex128: return fold_as<complex<double>>(image, rows, layout);
    // Unsigned sums wrap to the same bits as signed ones.
    case kUInt8:
    case kInt8: return fold_as<uint8_t>(image, rows, layout);
    case kInt16: return fold_as<uint16_t>(image, rows, layout);
    case kInt32: return fold_as<uint32_t>(image, rows, layout);
    case kInt64: return fold_as<uint64_t>(image, rows, layout);
    default: RUSH_THROW(NotImplementedError, "convolution: not implemented for ", image.scalar_type());
  }
}

}  // namespace rush::cuda
