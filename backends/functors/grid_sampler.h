// The pixels that the value at a grid's point is summed from, and their weights.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/macros.h"
#include "core/ops/nn/grid_sampler.h"
#include "core/scalar_type.h"

namespace rush::functors {

// The pixels of one dimension: positions, which may be outside of the image, their weights, and the weights'
// derivatives by the grid's coordinate. As in PyTorch, 16-bit numbers are rounded after each operation.
template <class T, int kTaps>
struct GridAxis {
  using Math = opmath_t<T>;
  Math at[kTaps], weight[kTaps], slope[kTaps];

  GridAxis() = default;
  RUSH_HD GridAxis(const GridGeometry& g, int axis, T coordinate) {
    const auto size = static_cast<Math>(g.size[axis]);
    // From [-1, 1] to pixels.
    Math scale = (g.align_corners ? size - 1 : size) / 2;
    Math x = rounded(rounded(static_cast<Math>(coordinate) + 1) * scale);
    if (!g.align_corners) x = rounded(x - Math(0.5));
    if constexpr (kTaps != 4) pad(g, size, x, scale);
    if constexpr (kTaps == 1) {
      at[0] = std::nearbyint(x);  // the even one of two
      weight[0] = 1;
      slope[0] = 0;
    } else {
      const Math first = std::floor(x), past = rounded(x - first);
      if constexpr (kTaps == 2) {
        weight[0] = rounded(1 - past);
        weight[1] = past;
        slope[0] = -scale;
        slope[1] = scale;
      } else {
        set_cubic(past, scale);
      }
      for (int k = 0; k < kTaps; ++k) {
        at[k] = rounded(first + static_cast<Math>(kTaps == 2 ? k : k - 1));
        Math unused = 0;
        if constexpr (kTaps == 4) pad(g, size, at[k], unused);
      }
    }
  }

 private:
  RUSH_HD static Math rounded(Math x) { return static_cast<Math>(static_cast<T>(x)); }

  // Brings a position into the image. `slope` is multiplied by the derivative, which is 0 at the ends and beyond.
  RUSH_HD static void pad(const GridGeometry& g, Math size, Math& x, Math& slope) {
    if (g.padding == GridPadding::Zeros) return;
    if (g.padding == GridPadding::Reflection) {
      g.align_corners ? reflect(Math(0), size - 1, x, slope) : reflect(Math(-0.5), size, x, slope);
    }
    const Math last = size - 1;
    if (!(x < last)) {
      x = last;
      slope = 0;
    }
    if (!(x > 0)) {
      x = 0;
      slope = 0;
    }
  }
  // At `low` and `low + span`, until it is between them.
  RUSH_HD static void reflect(Math low, Math span, Math& x, Math& slope) {
    if (span == 0) {
      x = slope = 0;
      return;
    }
    const Math offset = rounded(x - low), away = std::abs(offset);
    const Math flips = std::floor(rounded(away / span)), rest = rounded(away - rounded(flips * span));
    const bool even = flips - std::floor(flips / 2) * 2 == 0;
    x = even ? rounded(rest + low) : rounded(span + low - rest);
    if ((offset < 0) == even) slope = -slope;
  }

  // Keys' cubic convolution with a = -3/4 ("Cubic convolution interpolation for digital image processing", 1981), at
  // distances up to 1 and from 1 to 2.
  RUSH_HD static Math near(Math x) {
    return rounded(rounded(rounded(rounded(rounded(x * Math(1.25)) - Math(2.25)) * x) * x) + 1);
  }
  RUSH_HD static Math far(Math x) {
    return rounded(rounded(rounded(rounded(rounded(rounded(x * Math(-0.75)) + Math(3.75)) * x) - 6) * x) + 3);
  }
  RUSH_HD static Math near_slope(Math x) { return (Math(3.75) * x - Math(4.5)) * x; }
  RUSH_HD static Math far_slope(Math x) { return (Math(-2.25) * x + Math(7.5)) * x - 6; }
  RUSH_HD void set_cubic(Math past, Math scale) {
    const Math left = rounded(past + 1), right = rounded(1 - past), rightmost = rounded(2 - past);
    weight[0] = far(left);
    weight[1] = near(past);
    weight[2] = near(right);
    weight[3] = far(rightmost);
    slope[0] = scale * far_slope(left);
    slope[1] = scale * near_slope(past);
    slope[2] = -scale * near_slope(right);
    slope[3] = -scale * far_slope(rightmost);
  }
};

// The pixels around a point of the grid: all combinations of one of each dimension, the last dimension turning fastest.
template <class T, int kDims, int kTaps>
struct GridPixels {
  using Math = opmath_t<T>;
  static constexpr int kCount = kDims == 2 ? kTaps * kTaps : kTaps * kTaps * kTaps;
  int64_t at[kCount];  // in the plane, row-major; -1: outside of the image
  Math weight[kCount];
  GridAxis<T, kTaps> axis[kDims];

  GridPixels() = default;
  // `point` is x, y (, z); the dimensions of an image stand in reverse order.
  RUSH_HD GridPixels(const GridGeometry& g, const T* point) {
    for (int d = 0; d < kDims; ++d) axis[d] = GridAxis<T, kTaps>(g, d, point[kDims - 1 - d]);
    for (int k = 0; k < kCount; ++k) {
      Math product = 1;
      int64_t offset = 0;
      bool inside = true;
      for (int d = 0; d < kDims; ++d) {
        const int tap = tap_of(k, d);
        const Math position = axis[d].at[tap];
        // Without branches, which would be mispredicted where points near the edges are in no order.
        inside = inside & (position >= 0) & (position <= static_cast<Math>(g.size[d] - 1));
        offset = offset * g.size[d] + static_cast<int64_t>(inside ? position : Math(0));
        product = d == 0 ? axis[d].weight[tap] : static_cast<Math>(static_cast<T>(product * axis[d].weight[tap]));
      }
      at[k] = inside ? offset : -1;
      weight[k] = product;
    }
  }
  RUSH_HD static constexpr int tap_of(int k, int d) {
    for (int last = kDims - 1; last > d; --last) k /= kTaps;
    return k % kTaps;
  }
  // The sum over the pixels of a plane.
  RUSH_HD T sample(const T* plane) const {
    Math sum = 0;
    for (int k = 0; k < kCount; ++k) {
      if (at[k] < 0) continue;
      const T term = static_cast<T>(static_cast<Math>(plane[at[k]]) * weight[k]);
      sum = static_cast<Math>(static_cast<T>(sum + static_cast<Math>(term)));
    }
    return static_cast<T>(sum);
  }
  // The gradient by the grid's coordinate along dimension d; by_weight are the gradients by the weights.
  RUSH_HD Math gradient(int d, const Math* by_weight) const {
    Math sum = 0;
    for (int k = 0; k < kCount; ++k) {
      Math product = by_weight[k];
      for (int other = 0; other < kDims; ++other) {
        const int tap = tap_of(k, other);
        product *= other == d ? axis[other].slope[tap] : axis[other].weight[tap];
      }
      if (at[k] >= 0) sum += product;
    }
    return sum;
  }
};

// Calls run(a GridPixels) with the type that a geometry needs.
template <class T, class Run>
void with_grid_pixels(const GridGeometry& g, const Run& run) {
  const bool linear = g.interpolation == GridInterpolation::Bilinear;
  if (g.dims == 3) return linear ? run(GridPixels<T, 3, 2>()) : run(GridPixels<T, 3, 1>());
  if (linear) return run(GridPixels<T, 2, 2>());
  if (g.interpolation == GridInterpolation::Nearest) return run(GridPixels<T, 2, 1>());
  run(GridPixels<T, 2, 4>());
}

}  // namespace rush::functors
