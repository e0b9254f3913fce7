// Which input elements an output element of a resized dimension is made of, and their weights.
#pragma once
#include "core/macros.h"
#include "core/ops/nn/upsample.h"

namespace rush::functors {

// Math is the type that positions are computed in: float, or double for float64 tensors.
template <class Math>
struct UpsampleTaps {
  int64_t index[4];
  Math weight[4];
};

RUSH_HD inline int upsample_tap_count(UpsampleMode mode) {
  return mode == UpsampleMode::Linear ? 2 : mode == UpsampleMode::Cubic ? 4 : 1;
}

// Input elements for each output element.
template <class Math>
RUSH_HD Math upsample_ratio(const UpsampleAxis& a, bool align_corners) {
  if (align_corners) {
    return a.output > 1 ? static_cast<Math>(a.input - 1) / static_cast<Math>(a.output - 1) : Math(0);
  }
  return a.scale > 0 ? static_cast<Math>(1 / a.scale) : static_cast<Math>(a.input) / static_cast<Math>(a.output);
}

// Weights of the four neighbours of a point `t` past the second, by cubic convolution with A = -0.75: |x| <= 1 and
// 1 < |x| < 2 have polynomials of their own. Keys, Cubic convolution interpolation for digital image processing, 1981.
template <class Math>
RUSH_HD void cubic_weights(Math t, Math* weight) {
  constexpr Math A = Math(-0.75);
  const auto near = [](Math x) { return ((A + 2) * x - (A + 3)) * x * x + 1; };
  const auto far = [](Math x) { return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A; };
  weight[0] = far(t + 1);
  weight[1] = near(t);
  weight[2] = near(1 - t);
  weight[3] = far(2 - t);
}

// The input element that output element `o` is in the modes without interpolation. Positions are float32 for all types.
// As in PyTorch, images (`dims` is 2) are resized to the same or twice the size by the sizes alone, unless `exact`.
RUSH_HD inline int64_t nearest_index(const UpsampleAxis& a, bool exact, int dims, int64_t o) {
  if (dims == 2 && !exact && a.output == a.input) return o;
  if (dims == 2 && !exact && a.output == 2 * a.input) return o / 2;
  const float ratio = upsample_ratio<float>(a, false);
  const float at = (exact ? static_cast<float>(o) + 0.5f : static_cast<float>(o)) * ratio;
  const auto index = static_cast<int64_t>(at);
  return index < a.input ? index : a.input - 1;
}

// The taps of output element `o` of `dims` resized dimensions; `ratio` is upsample_ratio's.
template <class Math>
RUSH_HD UpsampleTaps<Math> upsample_taps(UpsampleMode mode, int dims, const UpsampleAxis& a, bool align_corners,
                                         Math ratio, int64_t o) {
  const auto floor = [](Math x) {
    const auto cut = static_cast<int64_t>(x);
    return static_cast<Math>(cut) > x ? cut - 1 : cut;
  };
  const auto smaller = [](int64_t x, int64_t y) { return x < y ? x : y; };
  const int64_t last = a.input - 1;
  UpsampleTaps<Math> taps;
  if (mode == UpsampleMode::Nearest || mode == UpsampleMode::NearestExact) {
    taps.index[0] = nearest_index(a, mode == UpsampleMode::NearestExact, dims, o);
    taps.weight[0] = 1;
    return taps;
  }
  Math at = align_corners ? ratio * static_cast<Math>(o) : ratio * (static_cast<Math>(o) + Math(0.5)) - Math(0.5);
  if (mode != UpsampleMode::Cubic && at < 0) at = 0;
  const int64_t first = smaller(floor(at), last);
  Math t = at - static_cast<Math>(first);
  t = t < 0 ? Math(0) : t > 1 ? Math(1) : t;
  if (mode == UpsampleMode::Linear) {
    taps.index[0] = first;
    taps.index[1] = smaller(first + 1, last);
    taps.weight[0] = 1 - t;
    taps.weight[1] = t;
    return taps;
  }
  cubic_weights(t, taps.weight);
  for (int k = 0; k < 4; ++k) {
    const int64_t index = first + k - 1;
    taps.index[k] = index < 0 ? 0 : smaller(index, last);
  }
  return taps;
}

// Antialiased modes: how far from its centre an output element's filter reaches, in input elements.
template <class Math>
RUSH_HD Math antialias_reach(UpsampleMode mode, Math ratio) {
  return (mode == UpsampleMode::LinearAntialiased ? Math(1) : Math(2)) * (ratio > 1 ? ratio : Math(1));
}

// That filter at distance `x` in its own units: a tent, or cubic convolution with A = -0.5, as in Pillow.
template <class Math>
RUSH_HD Math antialias_filter(UpsampleMode mode, Math x) {
  constexpr Math A = Math(-0.5);
  x = x < 0 ? -x : x;
  if (mode == UpsampleMode::LinearAntialiased) return x < 1 ? 1 - x : Math(0);
  if (x < 1) return ((A + 2) * x - (A + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * A - 4 * A : Math(0);
}

}  // namespace rush::functors
