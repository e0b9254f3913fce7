// All taps of a resized tensor, as tables that kernels of either device read.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "backends/functors/upsample.h"
#include "core/scalar_type.h"

namespace rush::functors {

// The taps of every output element of one dimension: entry o * count + k is tap k of output o.
template <class Math>
struct AxisTaps {
  int count = 1;
  std::vector<int64_t> index;
  std::vector<Math> weight;

  AxisTaps(const UpsampleGeometry& g, int axis) {
    const UpsampleAxis& a = g.axis[axis];
    const UpsampleMode mode = axis >= 3 - g.dims ? g.mode : UpsampleMode::Nearest;
    // As in PyTorch, a dimension whose size stays is left alone, whatever the scale, but by plain cubic interpolation.
    const bool stays = a.input == a.output && mode != UpsampleMode::Cubic;
    const Math ratio = stays ? Math(1) : upsample_ratio<Math>(a, g.align_corners);
    if (is_antialiased(mode)) {
      add_antialiased(a, mode, ratio);
      return;
    }
    count = upsample_tap_count(mode);
    for (int64_t o = 0; o < a.output; ++o) {
      const auto taps = upsample_taps<Math>(mode, g.dims, a, g.align_corners, ratio, o);
      index.insert(index.end(), taps.index, taps.index + count);
      weight.insert(weight.end(), taps.weight, taps.weight + count);
    }
  }

 private:
  static bool is_antialiased(UpsampleMode mode) {
    return mode == UpsampleMode::LinearAntialiased || mode == UpsampleMode::CubicAntialiased;
  }

  // As many taps as the widest output element has; where one has fewer, the rest weigh nothing.
  void add_antialiased(const UpsampleAxis& a, UpsampleMode mode, Math ratio) {
    const Math reach = antialias_reach(mode, ratio), widening = std::max<Math>(ratio, 1);
    const auto in_input = [&](Math x) {
      return x > 0 ? static_cast<int64_t>(std::min<Math>(x, static_cast<Math>(a.input))) : 0;
    };
    count = static_cast<int>(std::min(a.input, in_input(2 * std::ceil(reach) + 1)));
    for (int64_t o = 0; o < a.output; ++o) {
      const Math centre = ratio * (static_cast<Math>(o) + Math(0.5));
      const int64_t first = in_input(centre - reach + Math(0.5));
      const int64_t end = std::min(a.input, in_input(centre + reach + Math(0.5)));
      const size_t start = weight.size();
      Math total = 0;
      for (int64_t i = first; i < first + count; ++i) {
        const Math x = (static_cast<Math>(i) - centre + Math(0.5)) / widening;
        index.push_back(i < end ? i : std::min(first, a.input - 1));
        weight.push_back(i < end ? antialias_filter(mode, x) : Math(0));
        total += weight.back();
      }
      for (size_t i = start; total != 0 && i < weight.size(); ++i) weight[i] /= total;
    }
  }
};

// The taps of a tensor of T. Weights are rounded to T, as PyTorch rounds them, though the sums are not; of a linear
// pair the first is what the rounded second leaves of 1.
template <class T>
std::array<AxisTaps<opmath_t<T>>, 3> all_taps(const UpsampleGeometry& g) {
  using Math = opmath_t<T>;
  std::array<AxisTaps<Math>, 3> taps{AxisTaps<Math>(g, 0), AxisTaps<Math>(g, 1), AxisTaps<Math>(g, 2)};
  for (AxisTaps<Math>& axis : taps) {
    for (size_t i = 0; i < axis.weight.size(); ++i) {
      Math& weight = axis.weight[i];
      if (g.dims == 3 && axis.count == 2 && i % 2 == 0)
        weight = 1 - static_cast<Math>(static_cast<T>(axis.weight[i + 1]));
      weight = static_cast<Math>(static_cast<T>(weight));
    }
  }
  return taps;
}

}  // namespace rush::functors
