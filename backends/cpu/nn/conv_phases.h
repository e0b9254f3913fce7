// The gradient of a convolution by its input, with the channels last.
#pragma once
#include <numeric>

#include "backends/cpu/nn/conv_channels_last.h"
#include "core/ops/factory/factories.h"

namespace rush::cpu {

// Note [Phases of a strided convolution]
// input[c, i] = sum over o and k of output[o, (i + padding - dilation k) / stride] weight[o, c, k], where that is a
// whole number. All positions i with the same remainder of (i + padding) / stride see the same taps, and those have
// even distances. So for every remainder, in each dimension, this is a convolution of the output with stride 1, some of
// the taps, turned around, and the channels exchanged. With stride 1 there is one remainder.
struct Phase {
  ConvSizes sizes;  // of that convolution; a kernel of no taps gives zeros
  Spatial before;   // the padding in front of the output
  Spatial first;    // position of the input; the next is `stride` further on
  Spatial tap, tap_step;

  int64_t taps() const { return sizes.taps(); }

  // In one dimension, for positions of one remainder.
  void set(size_t d, const ConvSizes& s, int64_t size, int64_t padding, int64_t remainder) {
    const int64_t stride = s.stride[d], dilation = s.dilation[d], common = std::gcd(stride, dilation);
    first[d] = ((remainder - padding) % stride + stride) % stride;
    sizes.output[d] = first[d] < size ? (size - 1 - first[d]) / stride + 1 : 0;
    sizes.stride[d] = 1;
    sizes.dilation[d] = dilation / common;
    tap_step[d] = stride / common;
    tap[d] = 0;
    while (tap[d] < tap_step[d] && dilation * tap[d] % stride != remainder) ++tap[d];
    const bool exists = tap[d] < tap_step[d] && tap[d] < s.kernel[d];
    sizes.kernel[d] = exists ? (s.kernel[d] - 1 - tap[d]) / tap_step[d] + 1 : 0;
    // The output's position that the first tap sees from the first of the input's.
    const int64_t seen = (first[d] + padding - remainder) / stride - (dilation * tap[d] - remainder) / stride;
    before[d] = (sizes.kernel[d] - 1) * sizes.dilation[d] - seen;
  }
};

// Calls fn(phase) for all remainders that have positions.
template <class Fn>
void for_each_phase(const ConvSizes& s, const Tensor& input, const Spatial& padding, const Fn& fn) {
  Phase phase{s, {}, {}, {}, {}};
  std::swap(phase.sizes.in_channels, phase.sizes.out_channels);
  for (int64_t r = 0; r < volume_of(s.stride); ++r) {
    const Spatial remainder = {r / s.stride[2] / s.stride[1], r / s.stride[2] % s.stride[1], r % s.stride[2]};
    for (size_t d = 0; d < 3; ++d) {
      phase.set(d, s, input.size(static_cast<int64_t>(d) + 2), padding[d], remainder[d]);
    }
    if (volume_of(phase.sizes.output) > 0) fn(phase);
  }
}

// Writes each channel's bias to all its pixels.
inline void spread(const Tensor& bias, Tensor to) {
  const Tensor each = rush::detail::make_view(bias, to.sizes(), {0, bias.stride(0), 0, 0, 0}, bias.storage_offset());
  native::copy_(to, each, false);
}

template <class T>
class ChannelsLastGradient {
 public:
  using Math = gemm_math_t<T>;

  // Whether all phases with taps are worth it.
  static bool serves(const ConvSizes& s, const Tensor& input, const Spatial& padding) {
    bool all = true;
    for_each_phase(s, input, padding, [&](const Phase& phase) {
      all = all && (phase.taps() == 0 || ChannelsLastConvolution<T>::serves(phase.sizes));
    });
    return all;
  }
  static int64_t scratch(const ConvSizes& s, const Tensor& input, const Tensor& output, const Spatial& padding) {
    int64_t most = 0;
    for_each_phase(s, input, padding, [&](const Phase& phase) {
      if (phase.taps() == 0) return;
      most = std::max(most, ChannelsLastConvolution<T>::scratch(phase.sizes) +
                                PixelImages<Math>::scratch(output, phase.before, phase.sizes.padded()));
    });
    return most;
  }

  ChannelsLastGradient(const ConvSizes& sizes, const Tensor& input, const Tensor& output, const Tensor& weight,
                       const Tensor& bias)
      : s_(sizes),
        input_(input),
        output_(output),
        bias_(bias),
        taps_first_(has_taps_first(weight)),
        weight_(taps_first_ ? weight : native::contiguous(weight)),
        columns_(sizes.in_channels) {
    for (int64_t c = 0; c < s_.in_channels; ++c) columns_[c] = c * s_.taps();
  }

  void run(const Spatial& padding) const {
    for_each_phase(s_, input_, padding, [&](const Phase& phase) {
      if (phase.taps() == 0) {
        fill(positions_of(phase));
      } else {
        convolve(phase);
      }
    });
  }

 private:
  // The weight is read where it lies, and only its taps turn around.
  void convolve(const Phase& phase) const {
    const ConvSizes& back = phase.sizes;
    const PixelImages<Math> images(output_, phase.before, back.padded());
    const Scratch<int64_t> depths(back.depth());
    const int64_t step = taps_first_ ? s_.in_channels : 1;
    for (int64_t o = 0; o < s_.out_channels; ++o) {
      for (int64_t k = 0; k < phase.taps(); ++k) {
        const int64_t x = k % back.kernel[2], y = k / back.kernel[2] % back.kernel[1];
        const int64_t z = k / back.kernel[2] / back.kernel[1];
        const int64_t tap = (tap_at(phase, 0, z) * s_.kernel[1] + tap_at(phase, 1, y)) * s_.kernel[2];
        depths[o * phase.taps() + k] = o * s_.depth() + (tap + tap_at(phase, 2, x)) * step;
      }
    }
    const WeightMatrix<T> matrix = {weight_.data_ptr<T>(), s_.out_channels * s_.depth(),
                                    taps_first_ ? nullptr : columns_.data(), depths.data(), TapOrder::TurnedByChannel};
    ChannelsLastConvolution<T>(back, images, matrix, positions_of(phase), bias_).run();
  }
  static int64_t tap_at(const Phase& phase, size_t d, int64_t k) { return phase.tap[d] + k * phase.tap_step[d]; }

  // The phase's positions of the input, (N, C, D, H, W).
  Tensor positions_of(const Phase& phase) const {
    DimVector sizes(input_.sizes()), strides(input_.strides());
    int64_t offset = input_.storage_offset();
    for (size_t d = 0; d < 3; ++d) {
      sizes[d + 2] = phase.sizes.output[d];
      offset += phase.first[d] * strides[d + 2];
      strides[d + 2] *= s_.stride[d];
    }
    return rush::detail::make_view(input_, sizes, strides, offset);
  }

  // What no tap reaches.
  void fill(Tensor to) const {
    if (!bias_.defined()) {
      auto all = TensorIterator::nullary("conv_transpose", to);
      return kernels::fill(kCPU, all, 0);
    }
    spread(bias_, to);
  }

  const ConvSizes& s_;
  const Tensor &input_, &output_, &bias_;
  bool taps_first_;
  Tensor weight_;
  Scratch<int64_t> columns_;
};

}  // namespace rush::cpu
