// The largest element of a window of fractional pooling, for kernels of either device.
#pragma once
#include <cmath>

#include "core/ops/nn/fractional_pool.h"
#include "core/scalar_type.h"

namespace rush::functors {

template <class T>
struct FractionalMax {
  using Math = opmath_t<T>;
  const T *in, *samples;  // (planes, depth, height, width), (planes, dims)
  FractionalGeometry g;

  // Where in its plane the largest element of window (d, h, w) is: the first of several, or the last NaN. Where a
  // sample outside of [0, 1) puts the window outside of the plane, the result is the plane's size.
  RUSH_HD int64_t operator()(int64_t plane, int64_t d, int64_t h, int64_t w) const {
    const FractionalAxis &depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
    const int64_t size = depth.input * height.input * width.input;
    const int64_t d0 = start(depth, plane, d), h0 = start(height, plane, h), w0 = start(width, plane, w);
    if (d0 < 0 || h0 < 0 || w0 < 0) return size;
    const T* from = in + plane * size;
    int64_t where = (d0 * height.input + h0) * width.input + w0;
    auto largest = static_cast<Math>(from[where]);
    for (int64_t kd = d0; kd < d0 + depth.kernel; ++kd) {
      for (int64_t kh = h0; kh < h0 + height.kernel; ++kh) {
        const int64_t row = (kd * height.input + kh) * width.input;
        for (int64_t i = row + w0; i < row + w0 + width.kernel; ++i) {
          const auto value = static_cast<Math>(from[i]);
          if (value > largest || value != value) {
            largest = value;
            where = i;
          }
        }
      }
    }
    return where;
  }

 private:
  RUSH_HD static Math rounded(Math x) { return static_cast<Math>(static_cast<T>(x)); }
  // Where a window begins, -1 for outside. Every step is rounded to T, as PyTorch rounds it.
  RUSH_HD int64_t start(const FractionalAxis& a, int64_t plane, int64_t window) const {
    const int64_t last = a.input - a.kernel;
    if (window == a.output - 1) return last;
    const Math step = rounded(static_cast<Math>(static_cast<double>(last) / static_cast<double>(a.output - 1)));
    const auto sample = static_cast<Math>(samples[plane * g.dims + a.sample]);
    const Math end = std::floor(rounded(rounded(rounded(static_cast<Math>(window)) + sample) * step));
    const Math at = rounded(end - std::floor(rounded(sample * step)));
    return at >= 0 && at <= static_cast<Math>(last) ? static_cast<int64_t>(at) : -1;
  }
};

}  // namespace rush::functors
