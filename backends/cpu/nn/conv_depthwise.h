// A depthwise convolution of channels-last images, in place of a copy in either direction.
#pragma once
#include "backends/cpu/linalg/gemm.h"
#include "backends/cpu/nn/conv_volume.h"

namespace rush::cpu {

// The innermost loop runs over channels, and taps outside of the image are left out.
template <class T>
class ChannelsLastDepthwise {
 public:
  using Math = gemm_math_t<T>;

  static bool fits(const ConvSizes& s, const Tensor& input, const Tensor& output) {
    return s.in_channels == 1 && s.out_channels == 1 && s.groups > 1 && channels_last(input) && channels_last(output);
  }

  // weight (C, kernel...), row-major; `before` is the padding in front.
  ChannelsLastDepthwise(const ConvSizes& sizes, const Spatial& before, const Tensor& input, const T* weight,
                        const Tensor& output, const Tensor& bias)
      : s_(sizes), before_(before), input_(input), output_(output), factors_(s_.taps() * s_.groups), bias_(s_.groups) {
    for (int64_t c = 0; c < s_.groups; ++c) {
      for (int64_t k = 0; k < s_.taps(); ++k)
        factors_[k * s_.groups + c] = static_cast<Math>(weight[c * s_.taps() + k]);
      bias_[c] = bias.defined() ? static_cast<Math>(bias.data_ptr<T>()[c * bias.stride(0)]) : Math(0);
    }
  }

  void run() const {
    const int64_t rows = s_.batch * s_.output[0] * s_.output[1], work = s_.output[2] * s_.groups * s_.taps();
    parallel_for(0, rows, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t y = r % s_.output[1], z = r / s_.output[1] % s_.output[0], n = r / s_.output[1] / s_.output[0];
        row(n, z, y);
      }
    });
  }

 private:
  static constexpr int64_t kChunk = 4 * kVectorBytes / sizeof(Math);
  static bool channels_last(const Tensor& t) { return t.is_contiguous(MemoryFormat::ChannelsLast3d); }

  // The taps of one dimension that are inside for an output position, and where the first one is.
  struct Taps {
    Taps(const ChannelsLastDepthwise& c, size_t d, int64_t position)
        : last(c.s_.kernel[d]), at(position * c.s_.stride[d] - c.before_[d]) {
      const int64_t step = c.s_.dilation[d], size = c.input_.size[d + 2];
      while (first < last && at + first * step < 0) ++first;
      while (first < last && at + (last - 1) * step >= size) --last;
      at += first * step;
    }
    int64_t first = 0, last, at;
  };

  void row(int64_t n, int64_t z, int64_t y) const {
    const Taps depth(*this, 0, z), height(*this, 1, y);
    for (int64_t x = 0; x < s_.output[2]; ++x) {
      const Taps taps[3] = {depth, height, Taps(*this, 2, x)};
      T* to = output_.row(n, 0, z, y) + x * output_.stride[4];
      int64_t c = 0;
      for (; c + kChunk <= s_.groups; c += kChunk) sum<true>(n, taps, c, to + c);
      if (c < s_.groups) sum<false>(n, taps, c, to + c);
    }
  }

  // One pixel's channels from `channel` on: a whole chunk of them, whose sums stay in registers, or what is left.
  template <bool whole>
  void sum(int64_t n, const Taps (&taps)[3], int64_t channel, T* to) const {
    const int64_t count = whole ? kChunk : s_.groups - channel, channels = s_.groups;
    const int64_t step = s_.dilation[2] * input_.stride[4];
    Math sums[kChunk] = {};
    for (int64_t kz = taps[0].first, z = taps[0].at; kz < taps[0].last; ++kz, z += s_.dilation[0]) {
      for (int64_t ky = taps[1].first, y = taps[1].at; ky < taps[1].last; ++ky, y += s_.dilation[1]) {
        const Math* factor = factors_.data() + ((kz * s_.kernel[1] + ky) * s_.kernel[2] + taps[2].first) * channels;
        const T* from = input_.row(n, channel, z, y) + taps[2].at * input_.stride[4];
        for (int64_t kx = taps[2].first; kx < taps[2].last; ++kx, from += step, factor += channels) {
#pragma GCC unroll 4
          for (int64_t i = 0; i < count; ++i) sums[i] += factor[channel + i] * static_cast<Math>(from[i]);
        }
      }
    }
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(sums[i] + bias_[channel + i]);
  }

  const ConvSizes& s_;
  Spatial before_;
  Volumes<T> input_, output_;
  Scratch<Math> factors_, bias_;
};

}  // namespace rush::cpu
