// A convolution with padded, row-major operands.
#pragma once
#include "backends/cpu/nn/conv_image.h"
#include "backends/cpu/nn/conv_volume.h"

namespace rush::cpu {

// Lanes that are computed at a time: the sums, and the packed image, stay in the L2 cache.
inline constexpr int64_t kConvLanes = 512;

template <class T>
class Convolution {
 public:
  using Math = gemm_math_t<T>;
  using Real = gemm_real_t<Math>;
  using Shape = TileShape<Math>;

  // image (N, groups * in_channels, padded...), weight (groups * out_channels, in_channels, kernel...).
  Convolution(const ConvSizes& sizes, const PaddedVolumes<T>& image, const T* weight, const Tensor& output,
              const Tensor& bias)
      : s_(sizes),
        image_(image),
        output_(output),
        bias_(bias),
        weight_(weight),
        lanes_(sizes, image.extent()),
        direct_(lanes_.dense && sizes.out_channels <= kFewChannels),
        depth_step_(even_step(sizes.depth(), Shape::KC, 1)),
        rows_step_(std::clamp<int64_t>(kConvLanes / lanes_.pitch, 1, sizes.output[1])),
        taps_(sizes.depth()),
        positions_(lanes_.dense ? 0 : rows_step_ * lanes_.width),
        packed_weight_(sizes.groups * packed_rows_size<Math>(sizes.out_channels, sizes.depth())) {
    tap_offsets(s_, image.extent(), taps_.data());
    if (!lanes_.dense) lanes_.offsets(s_, rows_step_, positions_.data());
    if (!direct_) pack_weight();
  }

  void run() const {
    const int64_t blocks = (s_.output[1] + rows_step_ - 1) / rows_step_;
    const int64_t tasks = s_.batch * s_.groups * s_.output[0] * blocks;
    const int64_t work = s_.out_channels * s_.depth() * lanes_.count(rows_step_);
    parallel_for(0, tasks, std::max<int64_t>(1, (int64_t(1) << 18) / work), [&](int64_t begin, int64_t end) {
      const Scratch<Real> columns(packed_columns_size<Math>(lanes_.count(rows_step_), depth_step_));
      const Scratch<Math> sums(s_.out_channels * lanes_.count(rows_step_));
      for (int64_t t = begin; t < end; ++t) {
        const int64_t row = t % blocks * rows_step_, plane = t / blocks % s_.output[0];
        const int64_t group = t / blocks / s_.output[0] % s_.groups, n = t / blocks / s_.output[0] / s_.groups;
        rows_of_plane(n, group, plane, row, std::min(rows_step_, s_.output[1] - row), columns.data(), sums.data());
      }
    });
  }

 private:
  int64_t packed_weight_of(int64_t group, int64_t depth) const {
    return packed_rows_size<Math>(s_.out_channels, group * s_.depth() + depth);
  }

  void pack_weight() const {
    const int64_t steps = (s_.depth() + depth_step_ - 1) / depth_step_;
    parallel_for(0, s_.groups * steps, std::max<int64_t>(1, kGrain / (s_.out_channels * depth_step_)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t group = i / steps, d = i % steps * depth_step_;
                     const MatrixSource<T> rows(weight_ + group * s_.out_channels * s_.depth(), s_.depth(), 1);
                     pack_rows<Math>(rows, 0, s_.out_channels, d, std::min(depth_step_, s_.depth() - d),
                                     packed_weight_.data() + packed_weight_of(group, d));
                   }
                 });
  }

  void rows_of_plane(int64_t n, int64_t group, int64_t plane, int64_t row, int64_t rows, Real* columns,
                     Math* sums) const {
    const int64_t channel = (n * s_.groups + group) * s_.in_channels;
    const int64_t position = plane * s_.stride[0] * image_.plane() + row * lanes_.row_step;
    const T* first = image_.data() + channel * image_.volume() + position;
    const int64_t lanes = lanes_.count(rows);
    if (direct_) {
      for (int64_t o = 0; o < s_.out_channels; ++o) {
        sum_taps(first, weight_ + (group * s_.out_channels + o) * s_.depth(), lanes, sums + o * lanes);
      }
    } else {
      multiply_taps(group, first, lanes, columns, sums);
    }
    store(n, group, plane, row, rows, sums, lanes);
  }

  void multiply_taps(int64_t group, const T* image, int64_t lanes, Real* columns, Math* sums) const {
    const ImageSource<T> source(image, lanes_.dense ? nullptr : positions_.data(), taps_.data());
    for (int64_t d = 0; d < s_.depth(); d += depth_step_) {
      const int64_t depth = std::min(depth_step_, s_.depth() - d);
      pack_columns<Math>(source, 0, lanes, d, depth, columns);
      multiply_packed<Math>(s_.out_channels, lanes, depth, packed_weight_.data() + packed_weight_of(group, d), columns,
                            Math(1), Math(d == 0 ? 0 : 1), {sums, lanes, 1});
    }
  }

  // sums[l] = sum over k of weight[k] * image[l + tap(k)]. The last chunk of lanes ends with the last lane.
  void sum_taps(const T* image, const T* weight, int64_t lanes, Math* sums) const {
    if (lanes < kChunk) return sum_chunk<false>(image, weight, lanes, sums);
    for (int64_t l = 0; l < lanes; l += kChunk) {
      const int64_t first = std::min(l, lanes - kChunk);
      sum_chunk<true>(image + first, weight, kChunk, sums + first);
    }
  }
  // A whole chunk's sums stay in registers.
  static constexpr int64_t kChunk = 4 * kVectorBytes / sizeof(Math);
  template <bool whole>
  void sum_chunk(const T* image, const T* weight, int64_t lanes, Math* to) const {
    const int64_t n = whole ? kChunk : lanes;
    Math sums[kChunk] = {};
    for (int64_t k = 0; k < s_.depth(); ++k) {
      const T* from = image + taps_[k];
      const auto factor = static_cast<Math>(weight[k]);
#pragma GCC unroll 4
      for (int64_t l = 0; l < n; ++l) sums[l] += factor * static_cast<Math>(from[l]);
    }
    std::copy_n(sums, n, to);
  }

  void store(int64_t n, int64_t group, int64_t plane, int64_t row, int64_t rows, const Math* sums,
             int64_t lanes) const {
    for (int64_t o = 0; o < s_.out_channels; ++o) {
      const int64_t channel = group * s_.out_channels + o;
      const Math bias = bias_.defined() ? static_cast<Math>(bias_.data_ptr<T>()[channel * bias_.stride(0)]) : Math(0);
      for (int64_t r = 0; r < rows; ++r) {
        const Math* from = sums + o * lanes + r * lanes_.pitch;
        T* to = output_.row(n, channel, plane, row + r);
        for (int64_t x = 0; x < lanes_.width; ++x) to[x] = static_cast<T>(from[x] + bias);
      }
    }
  }

  const ConvSizes& s_;
  const PaddedVolumes<T>& image_;
  Volumes<T> output_;
  const Tensor& bias_;
  const T* weight_;
  PixelLanes lanes_;
  bool direct_;
  int64_t depth_step_, rows_step_;
  Scratch<int64_t> taps_, positions_;
  Scratch<Real> packed_weight_;
};

}  // namespace rush::cpu
