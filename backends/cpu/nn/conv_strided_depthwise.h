// Depthwise convolutions of row-major images with a stride of 2 along their rows.
#pragma once
#include "backends/cpu/nn/conv_image.h"
#include "backends/cpu/nn/conv_volume.h"

namespace rush::cpu {

// Note [Tables of strided rows]
// What some rows of the output see of a plane of the image is copied, padded, into one table for each kind of position:
// even or odd in its row, in row 0, s, 2 s, ... or 1, s + 1, ... for a stride s of rows. In these tables neighbouring
// outputs see neighbouring numbers, as with a stride of 1, also from one row to the next: output (y, x) is lane
// half y + x, and tap k sees number lane + taps[k]. Between two rows there are lanes that are no outputs.
struct StridedTables {
  static bool fit(const ConvSizes& s, const ConvGeometry& geometry) {
    return s.stride[2] == 2 && s.in_channels == 1 && s.out_channels <= kFewChannels && geometry.padding[2] >= 0 &&
           s.kernel[0] == 1 && geometry.padding[0] == 0;
  }

  // For so many rows of the output.
  StridedTables(const ConvSizes& s, const Spatial& padding, int64_t image_width, int64_t output_rows)
      : before(padding),
        row_stride(s.stride[1]),
        width(image_width),
        output_width(s.output[2]),
        half((std::max(s.padded()[2], padding[2] + width) + 1) / 2),
        rows(output_rows),
        table((rows + s.dilation[1] * (s.kernel[1] - 1) / row_stride) * half),
        taps(s.taps()) {
    for (int64_t y = 0; y < s.kernel[1]; ++y) {
      for (int64_t x = 0; x < s.kernel[2]; ++x) {
        const int64_t column = x * s.dilation[2];
        taps[y * s.kernel[2] + x] = place(y * s.dilation[1], column % 2) + column / 2;
      }
    }
  }

  // Rows whose tables stay in the L1 cache.
  static int64_t few_rows(const ConvSizes& s) { return std::clamp<int64_t>(1024 / s.output[2], 1, s.output[1]); }
  // Of all tables, and behind them what whole chunks of lanes read.
  int64_t numbers() const { return 2 * row_stride * table + kSlack; }
  int64_t lanes(int64_t output_rows) const { return (output_rows - 1) * half + output_width; }
  int64_t image_rows() const { return table / half * row_stride; }

  // Where a row of the image, counted from the first that is seen, has the positions that are even there or odd.
  int64_t place(int64_t row, int64_t odd) const {
    return (odd * row_stride + row % row_stride) * table + row / row_stride * half;
  }

  // Calls f(y, even, odd) for each row y of an image that is in the tables, and within it, where `first` is the row
  // that the tables begin with, and numbers 0, 2, ... of row y lie from `even` on, 1, 3, ... from `odd` on.
  template <class F>
  void for_each_row(int64_t first, int64_t height, F f) const {
    const int64_t is_odd = before[2] % 2, zeros = before[2] / 2;
    for (int64_t y = std::max<int64_t>(0, first); y < std::min(first + image_rows(), height); ++y)
      f(y, place(y - first, is_odd) + zeros, place(y - first, 1 - is_odd) + zeros + is_odd);
  }

  template <class T>
  void fill(const Volumes<T>& image, int64_t n, int64_t c, int64_t z, int64_t first, T* tables) const {
    std::fill_n(tables, numbers(), T(0));
    for_each_row(first, image.size[3], [&](int64_t y, int64_t even, int64_t odd) {
      split(image.row(n, c, z, y), tables + even, tables + odd);
    });
  }

  // Rows of the output as lanes, with zeros between them.
  template <class T, class Lane>
  void fill_lanes(const Volumes<T>& output, int64_t n, int64_t c, int64_t z, int64_t y, int64_t count, Lane* to) const {
    std::fill_n(to, lanes(count), Lane(0));
    for (int64_t r = 0; r < count; ++r) std::copy_n(output.row(n, c, z, y + r), output_width, to + r * half);
  }

  static constexpr int64_t kSlack = 4 * kVectorBytes;
  Spatial before;
  int64_t row_stride, width, output_width;
  int64_t half, rows, table;  // half: positions of a row in one table; table: numbers in one
  Scratch<int64_t> taps;

 private:
  template <class T>
  void split(const T* from, T* even, T* odd) const {
    const int64_t pairs = width / 2;
    if (pairs >= 8) {
      split<8>(from, pairs, even, odd);
    } else if (pairs >= 4) {
      split<4>(from, pairs, even, odd);
    } else {
      split<1>(from, pairs, even, odd);
    }
    if (width % 2 == 1) even[pairs] = from[2 * pairs];
  }
  // So many pairs at a time; some of the last ones may be copied twice.
  template <int64_t kPairs, class T>
  static void split(const T* from, int64_t pairs, T* even, T* odd) {
    for (int64_t i = 0; i < pairs; i += kPairs) {
      const int64_t begin = std::min(i, pairs - kPairs);
#pragma GCC ivdep
      for (int64_t k = begin; k < begin + kPairs; ++k) {
        even[k] = from[2 * k];
        odd[k] = from[2 * k + 1];
      }
    }
  }
};

template <class T>
class StridedDepthwise {
 public:
  using Math = gemm_math_t<T>;

  // Row-major: input (N, groups, ...), weight (groups * out_channels, 1, kernel...), output.
  StridedDepthwise(const ConvSizes& sizes, const Spatial& padding, const Tensor& input, const T* weight,
                   const Tensor& output, const Tensor& bias)
      : s_(sizes),
        input_(input),
        output_(output),
        weight_(weight),
        bias_(bias),
        tables_(sizes, padding, input_.size[4], StridedTables::few_rows(sizes)) {}

  void run() const {
    const int64_t step = tables_.rows, blocks = (s_.output[1] + step - 1) / step;
    const int64_t tasks = s_.batch * s_.groups * s_.output[0] * blocks, work = tables_.lanes(step) * s_.taps();
    parallel_for(0, tasks, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
      const Scratch<T> numbers(tables_.numbers());
      const Scratch<Math> sums(tables_.lanes(step) + kChunk);
      for (int64_t t = begin; t < end; ++t) {
        const int64_t y = t % blocks * step, z = t / blocks % s_.output[0];
        const int64_t group = t / blocks / s_.output[0] % s_.groups, n = t / blocks / s_.output[0] / s_.groups;
        tables_.fill(input_, n, group, z * s_.stride[0], y * s_.stride[1] - tables_.before[1], numbers.data());
        for (int64_t o = 0; o < s_.out_channels; ++o)
          sum_rows(numbers.data(), n, group * s_.out_channels + o, z, y, sums.data());
      }
    });
  }

 private:
  static constexpr int64_t kChunk = 4 * kVectorBytes / sizeof(Math);  // lanes whose sums stay in registers

  void sum_rows(const T* numbers, int64_t n, int64_t channel, int64_t z, int64_t y, Math* sums) const {
    const T* weight = weight_ + channel * s_.taps();
    const int64_t rows = std::min(tables_.rows, s_.output[1] - y), lanes = tables_.lanes(rows);
    for (int64_t l = 0; l < lanes; l += kChunk) sum_chunk(numbers + l, weight, sums + l);
    const Math bias = bias_.defined() ? static_cast<Math>(bias_.data_ptr<T>()[channel * bias_.stride(0)]) : Math(0);
    for (int64_t r = 0; r < rows; ++r) {
      const Math* from = sums + r * tables_.half;
      T* to = output_.row(n, channel, z, y + r);
      for (int64_t x = 0; x < s_.output[2]; ++x) to[x] = static_cast<T>(from[x] + bias);
    }
  }

  void sum_chunk(const T* numbers, const T* weight, Math* to) const {
    Math sums[kChunk] = {};
    for (int64_t k = 0; k < s_.taps(); ++k) {
      const T* from = numbers + tables_.taps[k];
      const auto factor = static_cast<Math>(weight[k]);
#pragma GCC unroll 4
      for (int64_t i = 0; i < kChunk; ++i) sums[i] += factor * static_cast<Math>(from[i]);
    }
    std::copy_n(sums, kChunk, to);
  }

  const ConvSizes& s_;
  Volumes<T> input_, output_;
  const T* weight_;
  const Tensor& bias_;
  StridedTables tables_;
};

}  // namespace rush::cpu
