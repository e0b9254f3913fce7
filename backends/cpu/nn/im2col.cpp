#include "core/ops/nn/im2col.h"

#include <algorithm>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

// visit(row of the column, its first image position, how many windows are inside, which is the first) for every row of
// windows and tap of the kernel that touches the image. Rows of windows are what is long: `stride` apart in the image.
template <class Visit>
void for_each_run(const ImageWindows& w, const Visit& visit) {
  for (int64_t ky = 0; ky < w.kernel[0]; ++ky) {
    for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
      // Windows first ... last - 1 see this tap inside the image's width.
      const int64_t left = kx * w.dilation[1] - w.padding[1];
      const int64_t first = left >= 0 ? 0 : (-left - 1) / w.stride[1] + 1;
      const int64_t room = w.image[1] - left;
      const int64_t last = room <= 0 ? 0 : std::min(w.count[1], (room - 1) / w.stride[1] + 1);
      if (first >= last) continue;
      const int64_t tap = (ky * w.kernel[1] + kx) * w.count[0];
      for (int64_t oy = 0; oy < w.count[0]; ++oy) {
        const int64_t y = oy * w.stride[0] + ky * w.dilation[0] - w.padding[0];
        if (y < 0 || y >= w.image[0]) continue;
        visit((tap + oy) * w.count[1] + first, y * w.image[1] + left + first * w.stride[1], last - first);
      }
    }
  }
}

// body(image, its columns) for each image and channel.
template <class T, class Body>
void for_each_image(const Tensor& images, const Tensor& columns, const ImageWindows& w, const Body& body) {
  const int64_t pixels = w.image[0] * w.image[1];
  const int64_t entries = w.kernel[0] * w.kernel[1] * w.count[0] * w.count[1];
  T* image = static_cast<T*>(images.data_ptr());
  T* column = static_cast<T*>(columns.data_ptr());
  parallel_for(0, images.numel() / pixels, std::max<int64_t>(1, kGrain / entries), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(image + i * pixels, column + i * entries);
  });
}

struct Im2colLoop {
  template <class T>
  static void run(const Tensor& columns, const Tensor& images, const ImageWindows& w) {
    const int64_t entries = w.kernel[0] * w.kernel[1] * w.count[0] * w.count[1], step = w.stride[1];
    for_each_image<T>(images, columns, w, [&](const T* image, T* column) {
      std::fill_n(column, entries, T{});
      for_each_run(w, [&](int64_t to, int64_t from, int64_t n) {
        for (int64_t i = 0; i < n; ++i) column[to + i] = image[from + i * step];
      });
    });
  }
};

void im2col(const Tensor& columns, const Tensor& images, const ImageWindows& w) {
  pick_bytes<Im2colLoop>(images.element_size())(columns, images, w);
}

struct Col2imLoop {
  template <class T>
  static void run(const Tensor& images, const Tensor& columns, const ImageWindows& w) {
    using Math = opmath_t<T>;
    const int64_t pixels = w.image[0] * w.image[1], step = w.stride[1];
    for_each_image<T>(images, columns, w, [&](T* image, const T* column) {
      // Sums of 16-bit numbers are kept in float until they are whole.
      if constexpr (std::is_same_v<T, Math>) {
        std::fill_n(image, pixels, T(0));
        add_runs(w, image, column, step);
      } else {
        std::vector<Math> sums(static_cast<size_t>(pixels), Math(0));
        add_runs(w, sums.data(), column, step);
        std::transform(sums.begin(), sums.end(), image, [](Math sum) { return static_cast<T>(sum); });
      }
    });
  }

 private:
  template <class Math, class T>
  static void add_runs(const ImageWindows& w, Math* sums, const T* column, int64_t step) {
    for_each_run(w, [&](int64_t from, int64_t to, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        Math& sum = sums[to + i * step];
        sum = static_cast<Math>(sum + static_cast<Math>(column[from + i]));
      }
    });
  }
};

}  // namespace

void register_im2col() {
  kernels::im2col.set(kCPU, im2col);
  set_by_dtype<kernels::col2im, Col2imLoop, AllTypes>(kCPU);
}

}  // namespace rush::cpu
