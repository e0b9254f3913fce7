// The taps of a resized dimension's output elements, for kernels of either device.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "backends/functors/upsample.h"
#include "core/scalar_type.h"

namespace rush::functors {

// The taps of one dimension of a tensor of T. Weights are rounded to T, as PyTorch rounds them, though the sums are
// not; of a linear pair in volumes the first is what the rounded second leaves of 1.
template <class T>
struct TapRule {
  using Math = opmath_t<T>;
  UpsampleAxis axis;
  UpsampleMode mode;
  int dims;
  bool align_corners;
  Math ratio;
  int count;  // of taps; where antialiased elements have fewer, the rest weigh nothing

  TapRule(const UpsampleGeometry& g, int number)
      : axis(g.axis[number]),
        mode(number >= 3 - g.dims ? g.mode : UpsampleMode::Nearest),
        dims(g.dims),
        align_corners(g.align_corners) {
    // As in PyTorch, a dimension whose size stays is left alone, whatever the scale, but by plain cubic interpolation.
    const bool stays = axis.input == axis.output && mode != UpsampleMode::Cubic;
    ratio = stays ? Math(1) : upsample_ratio<Math>(axis, align_corners);
    count = is_antialiased()
                ? static_cast<int>(std::min(axis.input, in_input(2 * std::ceil(antialias_reach(mode, ratio)) + 1)))
                : upsample_tap_count(mode);
  }

  // Writes `count` indices and weights, those of output element `o`.
  RUSH_HD void operator()(int64_t o, int64_t* index, Math* weight) const {
    if (is_antialiased()) {
      set_antialiased(o, index, weight);
    } else {
      const UpsampleTaps<Math> taps = upsample_taps<Math>(mode, dims, axis, align_corners, ratio, o);
      for (int k = 0; k < count; ++k) {
        index[k] = taps.index[k];
        weight[k] = taps.weight[k];
      }
    }
    if (dims == 3 && count == 2) weight[0] = 1 - static_cast<Math>(static_cast<T>(weight[1]));
    for (int k = 0; k < count; ++k) weight[k] = static_cast<Math>(static_cast<T>(weight[k]));
  }

 private:
  RUSH_HD bool is_antialiased() const {
    return mode == UpsampleMode::LinearAntialiased || mode == UpsampleMode::CubicAntialiased;
  }
  RUSH_HD int64_t in_input(Math x) const {
    const auto size = static_cast<Math>(axis.input);
    return x > 0 ? static_cast<int64_t>(x < size ? x : size) : 0;
  }
  RUSH_HD void set_antialiased(int64_t o, int64_t* index, Math* weight) const {
    const Math reach = antialias_reach(mode, ratio), widening = ratio > 1 ? ratio : Math(1);
    const Math centre = ratio * (static_cast<Math>(o) + Math(0.5));
    const int64_t first = in_input(centre - reach + Math(0.5)), end = in_input(centre + reach + Math(0.5));
    Math total = 0;
    for (int k = 0; k < count; ++k) {
      const int64_t i = first + k;
      const Math x = (static_cast<Math>(i) - centre + Math(0.5)) / widening;
      index[k] = i < end ? i : first < axis.input ? first : axis.input - 1;
      weight[k] = i < end ? antialias_filter(mode, x) : Math(0);
      total += weight[k];
    }
    for (int k = 0; total != 0 && k < count; ++k) weight[k] /= total;
  }
};

// The taps of all output elements: entry o * count + k is tap k of output o.
template <class Math>
struct AxisTaps {
  int count;
  std::vector<int64_t> index;
  std::vector<Math> weight;

  template <class T>
  explicit AxisTaps(const TapRule<T>& rule) : count(rule.count) {
    index.resize(static_cast<size_t>(rule.axis.output * count));
    weight.resize(index.size());
    for (int64_t o = 0; o < rule.axis.output; ++o) rule(o, index.data() + o * count, weight.data() + o * count);
  }
};

template <class T>
std::array<AxisTaps<opmath_t<T>>, 3> all_taps(const UpsampleGeometry& g) {
  using Taps = AxisTaps<opmath_t<T>>;
  return {Taps(TapRule<T>(g, 0)), Taps(TapRule<T>(g, 1)), Taps(TapRule<T>(g, 2))};
}

}  // namespace rush::functors
