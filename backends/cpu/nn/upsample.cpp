#include "core/ops/nn/upsample.h"

#include <array>
#include <cmath>

#include "backends/cpu/loops.h"
#include "backends/cpu/nn/planes.h"
#include "backends/cpu/register.h"
#include "backends/functors/upsample_taps.h"

namespace rush::cpu {

namespace {

using functors::all_taps;
using functors::AxisTaps;

// Calls body(input row of the plane, weight) for the input rows that output row (d, h) is made of.
template <class Math, class Body>
void for_each_source_row(const UpsampleGeometry& g, const std::array<AxisTaps<Math>, 3>& taps, int64_t d, int64_t h,
                         const Body& body) {
  const auto& [depth, height, width] = taps;
  for (int kd = 0; kd < depth.count; ++kd) {
    for (int kh = 0; kh < height.count; ++kh) {
      const int64_t id = depth.index[d * depth.count + kd], ih = height.index[h * height.count + kh];
      body(id * g.axis[1].input + ih, depth.weight[d * depth.count + kd] * height.weight[h * height.count + kh]);
    }
  }
}

struct NearestLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const UpsampleGeometry& g) {
    const auto taps = all_taps<std::conditional_t<std::is_same_v<T, double>, double, float>>(g);
    const auto &depth = taps[0], &height = taps[1], &width = taps[2];
    const T* in = input.data_ptr<T>();
    T* out = output.data_ptr<T>();
    const int64_t columns = g.axis[2].output;
    for_each_output_row(g, columns * g.inner, [&](int64_t plane, int64_t d, int64_t h) {
      const int64_t row = (plane * g.axis[0].input + depth.index[d]) * g.axis[1].input + height.index[h];
      const T* from = in + row * g.axis[2].input * g.inner;
      T* to = out + output_row(g, plane, d, h);
      if (g.inner == 1) {
        for (int64_t o = 0; o < columns; ++o) to[o] = from[width.index[o]];
      } else {
        for (int64_t o = 0; o < columns; ++o) std::copy_n(from + width.index[o] * g.inner, g.inner, to + o * g.inner);
      }
    });
  }
};

// Note [Resizing by rows]
// Interpolation is separable. For each output row the input rows that it is made of are first added up, which runs over
// contiguous memory, and then its elements are picked from that sum. The backward pass does the same in reverse.

// out[o] = sum over k of weight[o, k] * row[index[o, k]], each of `inner` numbers.
// kCount is the number of taps, and kInner that of numbers, where they are known, otherwise 0.
template <int kCount, int kInner, class T, class Math>
void gather_row(const Math* row, const AxisTaps<Math>& taps, int64_t outputs, int64_t numbers, T* out) {
  const int count = kCount ? kCount : taps.count;
  const int64_t inner = kInner ? kInner : numbers;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t* index = taps.index.data() + o * count;
    const Math* weight = taps.weight.data() + o * count;
    for (int64_t c = 0; c < inner; ++c) {
      Math sum = 0;
      for (int k = 0; k < count; ++k) sum += weight[k] * row[index[k] * inner + c];
      out[o * inner + c] = static_cast<T>(sum);
    }
  }
}

struct SmoothLoop {
  template <class T, int kInner, class Math = opmath_t<T>>
  static auto gather_of(UpsampleMode mode) {
    return mode == UpsampleMode::Linear  ? gather_row<2, kInner, T, Math>
           : mode == UpsampleMode::Cubic ? gather_row<4, kInner, T, Math>
                                         : gather_row<0, kInner, T, Math>;
  }

  template <class T>
  static void run(const Tensor& output, const Tensor& input, const UpsampleGeometry& g) {
    using Math = opmath_t<T>;
    const auto taps = all_taps<T>(g);
    const T* in = input.data_ptr<T>();
    T* out = output.data_ptr<T>();
    const int64_t columns = g.axis[2].input * g.inner;
    const int64_t cost = columns * taps[0].count * taps[1].count + g.axis[2].output * g.inner * taps[2].count;
    for_each_output_row(g, cost, [&](int64_t plane, int64_t d, int64_t h) {
      static thread_local std::vector<Math> row;
      row.assign(static_cast<size_t>(columns), Math(0));
      Math* sums = row.data();
      const T* from = in + plane * g.input_plane() * g.inner;
      for_each_source_row(g, taps, d, h, [&](int64_t source, Math weight) {
        const T* x = from + source * columns;
#pragma GCC ivdep
        for (int64_t i = 0; i < columns; ++i) sums[i] += weight * static_cast<Math>(x[i]);
      });
      const auto gather = g.inner == 1 ? gather_of<T, 1>(g.mode) : gather_of<T, 0>(g.mode);
      gather(sums, taps[2], g.axis[2].output, g.inner, out + output_row(g, plane, d, h));
    });
  }
};

struct BackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const UpsampleGeometry& g) {
    const auto taps = all_taps<T>(g);
    T* in = grad_input.data_ptr<T>();
    const T* out = grad_output.data_ptr<T>();
    for_each_plane_part(g.outer, g.inner, g.input_plane() + g.output_plane(), [&](const PlanePart& part) {
      PlaneSums<T> sums(in + part.plane * g.input_plane() * g.inner, g.input_plane(), g.inner, part);
      for (int64_t d = 0; d < g.axis[0].output; ++d) {
        for (int64_t h = 0; h < g.axis[1].output; ++h) {
          scatter_row(out + output_row(g, part.plane, d, h) + part.begin, g, taps, d, h, sums);
        }
      }
      sums.store();
    });
  }

 private:
  template <class Math>
  static void add_scaled_row(Math weight, const Math* row, int64_t n, Math* to) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] += weight * row[i];
  }

  template <class T, class Math>
  static void scatter_row(const T* grad, const UpsampleGeometry& g, const std::array<AxisTaps<Math>, 3>& taps,
                          int64_t d, int64_t h, PlaneSums<T>& sums) {
    static thread_local std::vector<Math> row;
    const int64_t columns = g.axis[2].input, width = sums.width();
    row.assign(static_cast<size_t>(columns * width), Math(0));
    const AxisTaps<Math>& last = taps[2];
    for (int64_t o = 0; o < g.axis[2].output; ++o) {
      for (int k = 0; k < last.count; ++k) {
        const Math weight = last.weight[o * last.count + k];
        Math* to = row.data() + last.index[o * last.count + k] * width;
        if (width == 1) {
          *to += weight * static_cast<Math>(grad[o * g.inner]);
          continue;
        }
        for (int64_t c = 0; c < width; ++c) to[c] += weight * static_cast<Math>(grad[o * g.inner + c]);
      }
    }
    const int64_t run = sums.contiguous() ? columns * width : width;
    for_each_source_row(g, taps, d, h, [&](int64_t source, Math weight) {
      for (int64_t i = 0; i < columns * width; i += run) {
        add_scaled_row(weight, row.data() + i, run, sums.at(source * columns + i / width));
      }
    });
  }
};

// Note [Resizing uint8 images]
// Images of bytes are resized in integers, so that results are exact and the same everywhere: weights are rounded to 16
// bits, with as many of them after the point as the largest allows, and width and height are done one after the other,
// each rounding to a byte. PyTorch does the same (separable_upsample_generic_Nd_kernel_impl), and Pillow before it.
class ByteTaps {
 public:
  ByteTaps(const UpsampleGeometry& g, int axis) {
    const AxisTaps<double> taps(functors::TapRule<double>(g, axis));
    count_ = taps.count;
    // Weights of elements that clamping to the border made the same are added before they are rounded.
    std::vector<double> merged(taps.weight.size(), 0.0);
    double largest = 0;
    for (size_t i = 0; i < merged.size(); ++i) {
      const size_t first = i - i % static_cast<size_t>(count_);
      size_t same = first;
      while (taps.index[same] != taps.index[i]) ++same;
      merged[same] += taps.weight[i];
      largest = std::max(largest, merged[same]);
    }
    while (precision_ < 22 && static_cast<int>(0.5 + largest * (1 << (precision_ + 1))) < (1 << 15)) ++precision_;
    for (double w : merged) weight_.push_back(static_cast<int16_t>(std::copysign(0.5, w) + w * (1 << precision_)));
    index_ = taps.index;
  }
  // The means of the taps of every output, each of which is a row of n numbers.
  void means(const uint8_t* from, int64_t n, uint8_t* to) const {
    // Members are read once: bytes that are written to `to` might change them.
    const int64_t count = count_, taps = static_cast<int64_t>(index_.size());
    const int64_t* index = index_.data();
    const int16_t* weight = weight_.data();
    const int precision = precision_;
    for (int64_t first = 0; first < taps; first += count, to += n) {
      if (n == 1) {
        int32_t sum = 1 << (precision - 1);
        for (int64_t k = first; k < first + count; ++k) sum += weight[k] * from[index[k]];
        *to = rounded(sum, precision);
      } else {
        mean_of_rows(from, index + first, weight + first, n, to);
      }
    }
  }

 private:
  static uint8_t rounded(int32_t sum, int precision) {
    return static_cast<uint8_t>(std::clamp(sum >> precision, 0, 255));
  }
  void mean_of_rows(const uint8_t* from, const int64_t* index, const int16_t* weight, int64_t n, uint8_t* to) const {
    constexpr int64_t kChunk = 256;
    int32_t sums[kChunk];
    const int precision = precision_;
    for (int64_t i = 0; i < n; i += kChunk) {
      const int64_t count = std::min(kChunk, n - i);
      std::fill_n(sums, count, 1 << (precision - 1));
      for (int k = 0; k < count_; ++k) {
        const uint8_t* row = from + index[k] * n + i;
        const int32_t factor = weight[k];
        for (int64_t j = 0; j < count; ++j) sums[j] += factor * row[j];
      }
      for (int64_t j = 0; j < count; ++j) to[i + j] = rounded(sums[j], precision);
    }
  }

  int count_ = 1;
  int precision_ = 0;
  std::vector<int64_t> index_;
  std::vector<int16_t> weight_;
};

void upsample_bytes(const Tensor& output, const Tensor& input, const UpsampleGeometry& g) {
  RUSH_CHECK_NOT_IMPLEMENTED(g.dims == 2, "upsample: uint8 is interpolated in two dimensions only");
  const ByteTaps height(g, 1), width(g, 2);
  const UpsampleAxis &h = g.axis[1], &w = g.axis[2];
  const uint8_t* in = input.data_ptr<uint8_t>();
  uint8_t* out = output.data_ptr<uint8_t>();
  const int64_t cost = g.inner * (h.input + h.output) * w.output * 4;
  parallel_for(0, g.outer, std::max<int64_t>(1, kGrain / cost), [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> wide(static_cast<size_t>(h.input * w.output * g.inner));
    for (int64_t plane = begin; plane < end; ++plane) {
      const uint8_t* from = in + plane * g.input_plane() * g.inner;
      uint8_t* to = out + plane * g.output_plane() * g.inner;
      const int64_t columns = w.output * g.inner;
      for (int64_t row = 0; row < h.input; ++row) {
        width.means(from + row * w.input * g.inner, g.inner, wide.data() + row * columns);
      }
      height.means(wide.data(), columns, to);
    }
  });
}

bool is_nearest(const UpsampleGeometry& g) {
  return g.mode == UpsampleMode::Nearest || g.mode == UpsampleMode::NearestExact;
}

void upsample(const Tensor& output, const Tensor& input, const UpsampleGeometry& g) {
  using NearestTypes = TypeList<float, double, Half, BFloat16, uint8_t>;
  const ScalarType dtype = input.scalar_type();
  if (is_nearest(g)) return pick<NearestLoop>(NearestTypes(), dtype, "upsample")(output, input, g);
  if (dtype == kUInt8) return upsample_bytes(output, input, g);
  pick<SmoothLoop>(RealFloatTypes(), dtype, "upsample")(output, input, g);
}

}  // namespace

void register_upsample() {
  kernels::upsample.set(kCPU, upsample);
  set_by_dtype<kernels::upsample_backward, BackwardLoop, RealFloatTypes, 1>(kCPU);
}

}  // namespace rush::cpu
