// The gradient of a convolution by its input, which is also the transposed convolution.
#include "backends/cpu/loops.h"
#include "backends/cpu/nn/conv_depthwise.h"
#include "backends/cpu/nn/conv_forward.h"
#include "backends/cpu/nn/conv_phases.h"
#include "backends/cpu/nn/conv_pixels.h"
#include "backends/cpu/nn/conv_strided_depthwise.h"
#include "backends/cpu/register.h"
#include "core/ops/nn/transposed_padding.h"

namespace rush::cpu {

namespace {

// The sizes of the convolution below, and the padding in front of what it reads.
std::pair<ConvSizes, Spatial> turned_around(const ConvSizes& s, const Tensor& input, const Spatial& padding) {
  ConvSizes back = s;
  std::swap(back.in_channels, back.out_channels);
  Spatial before;
  for (size_t d = 0; d < 3; ++d) {
    back.output[d] = input.size(2 + static_cast<int64_t>(d));
    before[d] = s.dilation[d] * (s.kernel[d] - 1) - padding[d];
  }
  return {back, before};
}

// Whether to take that convolution, rather than the product below: not where its image would be mostly padding.
bool convolves_back(const ConvSizes& s, const Tensor& input) {
  return s.stride == Spatial{1, 1, 1} && 2 * volume_of(s.output) >= input.size(2) * input.size(3) * input.size(4);
}

// With stride 1: input[c, i] = sum over o and k of output[o, i + padding - dilation k] weight[o, c, k] is a convolution
// of the output, padded the other way round, with the kernel turned around and its channels exchanged.
template <class T>
void convolve_back(const ConvSizes& s, const Tensor& input, const Tensor& output, const T* weight, const Tensor& bias,
                   const Spatial& padding) {
  const int64_t taps = s.taps();
  const Scratch<T> turned(s.groups * s.out_channels * s.depth());  // (groups, in, out, taps)
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t o = 0; o < s.out_channels; ++o) {
      for (int64_t c = 0; c < s.in_channels; ++c) {
        const T* from = weight + ((g * s.out_channels + o) * s.in_channels + c) * taps;
        std::reverse_copy(from, from + taps, turned.data() + ((g * s.in_channels + c) * s.out_channels + o) * taps);
      }
    }
  }
  const auto [back, before] = turned_around(s, input, padding);
  if (ChannelsLastDepthwise<T>::fits(back, output, input)) {
    return ChannelsLastDepthwise<T>(back, before, output, turned.data(), input, bias).run();
  }
  RowMajorOutput result(input);
  const Tensor rows = native::contiguous(output);
  const PaddedVolumes<T> image(rows, before, back.padded());
  Convolution<T>(back, image, turned.data(), result.tensor(), bias).run();
  result.store();
}

// With any stride: for some pixels of the output at a time, the product weight^T output holds what each of the kernel's
// taps gives, which is then added where the tap lies (col2im).
template <class T>
class ScatteredConvolution {
 public:
  using Math = gemm_math_t<T>;
  using Real = gemm_real_t<Math>;
  using Shape = TileShape<Math>;

  ScatteredConvolution(const ConvSizes& sizes, const Tensor& input, const PaddedVolumes<T>& output, const T* weight,
                       const Tensor& bias, const Spatial& padding)
      : s_(sizes),
        input_(input),
        output_(output),
        bias_(bias),
        padding_(padding),
        extent_(sizes.padded()),
        depth_step_(even_step(sizes.out_channels, Shape::KC, 1)),
        packed_weight_(packed_rows_size<Math>(sizes.groups * sizes.depth(), sizes.out_channels)) {
    // The image must also hold positions that no tap reaches.
    for (size_t d = 0; d < 3; ++d) extent_[d] = std::max(extent_[d], input_.size[d + 2] + padding[d]);
    for (int64_t g = 0; g < s_.groups; ++g) {
      const MatrixSource<T> rows(weight + g * s_.out_channels * s_.depth(), 1, s_.depth());
      for (int64_t d = 0; d < s_.out_channels; d += depth_step_) {
        pack_rows<Math>(rows, 0, s_.depth(), d, std::min(depth_step_, s_.out_channels - d), packed_weight_of(g, d));
      }
    }
  }

  // With `rounded`, columns and their sums have T's precision.
  void run(bool rounded) const {
    parallel_for(0, s_.batch * s_.groups, 1, [&](int64_t begin, int64_t end) {
      const int64_t lanes = std::max<int64_t>(Shape::NR, kConvLanes * 256 / s_.depth());
      const Scratch<Real> columns(packed_columns_size<Math>(lanes, depth_step_));
      const Scratch<Math> sums(s_.depth() * lanes), image(s_.in_channels * volume_of(extent_));
      for (int64_t t = begin; t < end; ++t) {
        std::fill_n(image.data(), s_.in_channels * volume_of(extent_), Math(0));
        const int64_t pixels = volume_of(s_.output);
        for (int64_t first = 0; first < pixels; first += lanes) {
          const int64_t count = std::min(lanes, pixels - first);
          multiply_pixels(t, first, count, columns.data(), sums.data());
          if (rounded) round_to_dtype(sums.data(), s_.depth() * count);
          scatter(first, count, sums.data(), image.data());
        }
        if (rounded) round_to_dtype(image.data(), s_.in_channels * volume_of(extent_));
        store(t / s_.groups, t % s_.groups, image.data());
      }
    });
  }

 private:
  static void round_to_dtype(Math* values, int64_t n) {
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<Math>(static_cast<T>(values[i]));
  }

  Real* packed_weight_of(int64_t group, int64_t depth) const {
    return packed_weight_.data() + packed_rows_size<Math>(s_.depth(), group * s_.out_channels + depth);
  }

  // sums (depth, count) = weight^T (depth, out_channels) output (out_channels, count)
  void multiply_pixels(int64_t task, int64_t first, int64_t count, Real* columns, Math* sums) const {
    const T* output = output_.data() + task * s_.out_channels * output_.volume() + first;
    const MatrixSource<T> source(output, 1, output_.volume());
    for (int64_t d = 0; d < s_.out_channels; d += depth_step_) {
      const int64_t depth = std::min(depth_step_, s_.out_channels - d);
      pack_columns<Math>(source, 0, count, d, depth, columns);
      multiply_packed<Math>(s_.depth(), count, depth, packed_weight_of(task % s_.groups, d), columns, Math(1),
                            Math(d == 0 ? 0 : 1), {sums, count, 1});
    }
  }

  void scatter(int64_t first, int64_t count, const Math* sums, Math* image) const {
    const int64_t width = s_.output[2], step = s_.stride[2];
    const Scratch<int64_t> taps(s_.depth());
    tap_offsets(s_, extent_, taps.data());
    for (int64_t k = 0; k < s_.depth(); ++k) {
      const Math* from = sums + k * count;
      // A run of pixels in one row at a time.
      for (int64_t p = first; p < first + count;) {
        const int64_t x = p % width, y = p / width % s_.output[1], z = p / width / s_.output[1];
        const int64_t run = std::min(width - x, first + count - p);
        Math* to = image + taps[k] + (z * s_.stride[0] * extent_[1] + y * s_.stride[1]) * extent_[2] + x * step;
        for (int64_t i = 0; i < run; ++i) to[i * step] += from[i];
        from += run;
        p += run;
      }
    }
  }

  void store(int64_t n, int64_t group, const Math* image) const {
    for (int64_t c = 0; c < s_.in_channels; ++c) {
      const int64_t channel = group * s_.in_channels + c;
      const Math bias = bias_.defined() ? static_cast<Math>(bias_.data_ptr<T>()[channel * bias_.stride(0)]) : Math(0);
      for (int64_t z = 0; z < input_.size[2]; ++z) {
        for (int64_t y = 0; y < input_.size[3]; ++y) {
          const int64_t row = (c * extent_[0] + z + padding_[0]) * extent_[1] + y + padding_[1];
          const Math* from = image + row * extent_[2] + padding_[2];
          T* to = input_.row(n, channel, z, y);
          for (int64_t x = 0; x < input_.size[4]; ++x) to[x] = static_cast<T>(from[x] + bias);
        }
      }
    }
  }

  const ConvSizes& s_;
  Volumes<T> input_;
  const PaddedVolumes<T>& output_;
  const Tensor& bias_;
  Spatial padding_, extent_;
  int64_t depth_step_;
  Scratch<Real> packed_weight_;
};

// The same for depthwise convolutions, by Note [Tables of strided rows]: each tap adds to a run of a table.
template <class T>
class StridedDepthwiseGradient {
 public:
  using Math = gemm_math_t<T>;

  // Row-major: input (N, groups, ...), which is written, output, weight (groups * out_channels, 1, kernel...).
  StridedDepthwiseGradient(const ConvSizes& sizes, const Spatial& padding, const Tensor& input, const Tensor& output,
                           const T* weight, const Tensor& bias)
      : s_(sizes),
        input_(input),
        output_(output),
        weight_(weight),
        bias_(bias),
        tables_(sizes, padding, input_.size[4], sizes.output[1]) {}

  void run() const {
    parallel_for(0, s_.batch * s_.groups, 1, [&](int64_t begin, int64_t end) {
      const Scratch<Math> numbers(tables_.numbers()), lanes(tables_.lanes(s_.output[1]));
      for (int64_t t = begin; t < end; ++t) {
        for (int64_t z = 0; z < input_.size[2]; ++z) {
          std::fill_n(numbers.data(), tables_.numbers(), Math(0));
          const bool is_seen = z % s_.stride[0] == 0 && z / s_.stride[0] < s_.output[0];
          if (is_seen) add_taps(t / s_.groups, t % s_.groups, z / s_.stride[0], numbers.data(), lanes.data());
          store(t / s_.groups, t % s_.groups, z, numbers.data());
        }
      }
    });
  }

 private:
  void add_taps(int64_t n, int64_t group, int64_t z, Math* numbers, Math* lanes) const {
    const int64_t count = tables_.lanes(s_.output[1]);
    for (int64_t o = 0; o < s_.out_channels; ++o) {
      const int64_t channel = group * s_.out_channels + o;
      tables_.fill_lanes(output_, n, channel, z, 0, s_.output[1], lanes);
      for (int64_t k = 0; k < s_.taps(); ++k) {
        const auto factor = static_cast<Math>(weight_[channel * s_.taps() + k]);
        const Math* __restrict from = lanes;
        Math* __restrict to = numbers + tables_.taps[k];
        for (int64_t l = 0; l < count; ++l) to[l] += factor * from[l];
      }
    }
  }

  // Rows that no output sees are not in the tables.
  void store(int64_t n, int64_t group, int64_t z, const Math* numbers) const {
    const Math bias = bias_.defined() ? static_cast<Math>(bias_.data_ptr<T>()[group * bias_.stride(0)]) : Math(0);
    const int64_t width = input_.size[4];
    for (int64_t y = 0; y < input_.size[3]; ++y) std::fill_n(input_.row(n, group, z, y), width, static_cast<T>(bias));
    tables_.for_each_row(-tables_.before[1], input_.size[3], [&](int64_t y, int64_t even, int64_t odd) {
      T* to = input_.row(n, group, z, y);
      for (int64_t x = 0; x < width / 2; ++x) {
        to[2 * x] = static_cast<T>(numbers[even + x] + bias);
        to[2 * x + 1] = static_cast<T>(numbers[odd + x] + bias);
      }
      if (width % 2 == 1) to[width - 1] = static_cast<T>(numbers[even + width / 2] + bias);
    });
  }

  const ConvSizes& s_;
  Volumes<T> input_, output_;
  const T* weight_;
  const Tensor& bias_;
  StridedTables tables_;
};

// Whether what a tap gives is rounded before it is added, as PyTorch's does then.
template <class T>
bool is_rounded(const Tensor& input, const Tensor& output, const Tensor& weight, const ConvGeometry& geometry) {
  return is_reduced_float_v<T> && native::output_padding_reaches_stride(input, output, weight, geometry);
}

template <class T>
bool has_phases(const ConvSizes& s, const Tensor& input, const Tensor& output, const Tensor& weight,
                const ConvGeometry& geometry) {
  const bool is_strided = s.stride != Spatial{1, 1, 1};
  return (is_strided || convolves_back(s, input)) && !is_rounded<T>(input, output, weight, geometry) &&
         ChannelsLastGradient<T>::serves(s, input, geometry.padding);
}

struct TransposeLoop {
  template <class T>
  static void run(const Tensor& input, const Tensor& output, const Tensor& weight, const Tensor& bias,
                  const ConvGeometry& geometry) {
    const ConvSizes sizes(output, input, weight, geometry);
    if constexpr (std::is_floating_point_v<gemm_math_t<T>>) {
      if (has_phases<T>(sizes, input, output, weight, geometry)) {
        return ChannelsLastGradient<T>(sizes, input, output, weight, bias).run(geometry.padding);
      }
    }
    const Tensor straight = native::contiguous(weight);
    if (convolves_back(sizes, input)) {
      return convolve_back(sizes, input, output, straight.data_ptr<T>(), bias, geometry.padding);
    }
    const Tensor rows = native::contiguous(output);
    const bool rounded = is_rounded<T>(input, output, weight, geometry);
    RowMajorOutput result(input);
    const T* factors = straight.data_ptr<T>();
    if (StridedTables::fit(sizes, geometry) && !rounded) {
      StridedDepthwiseGradient<T>(sizes, geometry.padding, result.tensor(), rows, factors, bias).run();
    } else {
      const PaddedVolumes<T> source(rows, {}, sizes.output);
      ScatteredConvolution<T>(sizes, result.tensor(), source, factors, bias, geometry.padding).run(rounded);
    }
    result.store();
  }
};

void convolution_transpose(const Tensor& input, const Tensor& output, const Tensor& weight, const Tensor& bias,
                           const ConvGeometry& geometry) {
  if (const auto format = pixel_product(input, output, weight, geometry)) {
    const Tensor pixels = pixels_of(output, *format);
    return multiply_pixels(pixels_of(input, *format), pixels, matrix_of_weight(weight, pixels.size(0)), bias);
  }
  if (is_image_product(input, output, weight, geometry)) {
    if (bias.defined()) spread(bias, input);
    return kernels::gemm(kCPU, rows_of(input), rows_of(output), rows_of(weight), bias.defined() ? 1 : 0, 1);
  }
  pick<TransposeLoop>(NumberTypes(), input.scalar_type(), "conv_transpose")(input, output, weight, bias, geometry);
}

// The weight, straight, turned around and packed, the output, row-major and padded, and the row-major input.
struct TransposeScratch {
  template <class T>
  static int64_t run(const Tensor& input, const Tensor& output, const Tensor& weight, const ConvGeometry& geometry) {
    using Math = gemm_math_t<T>;
    const ConvSizes s(output, input, weight, geometry);
    constexpr auto kReal = static_cast<int64_t>(sizeof(gemm_real_t<Math>));
    if constexpr (std::is_floating_point_v<Math>) {
      if (has_phases<T>(s, input, output, weight, geometry)) {
        return (has_taps_first(weight) ? 0 : bytes_to_copy(weight)) +
               ChannelsLastGradient<T>::scratch(s, input, output, geometry.padding);
      }
    }
    int64_t bytes = bytes_to_copy(weight) + bytes_to_copy(input) + bytes_to_copy(output);
    if (convolves_back(s, input)) {
      const auto [back, before] = turned_around(s, input, geometry.padding);
      bytes += s.groups * s.out_channels * s.depth() * static_cast<int64_t>(sizeof(T)) +
               PaddedVolumes<T>::scratch(output, before, back.padded()) +
               back.groups * packed_rows_size<Math>(back.out_channels, back.depth()) * kReal;
    } else if (!StridedTables::fit(s, geometry) || is_rounded<T>(input, output, weight, geometry)) {
      bytes += PaddedVolumes<T>::scratch(output, {}, s.output) +
               packed_rows_size<Math>(s.groups * s.depth(), s.out_channels) * kReal;
    }
    return bytes;
  }
};

int64_t convolution_transpose_scratch(const Tensor& input, const Tensor& output, const Tensor& weight, const Tensor&,
                                      const ConvGeometry& geometry) {
  return pick<TransposeScratch>(NumberTypes(), input.scalar_type(), "conv_transpose")(input, output, weight, geometry);
}

}  // namespace

void register_conv_transpose() {
  kernels::convolution_transpose.set(kCPU, convolution_transpose);
  kernels::convolution_transpose.set_scratch(kCPU, convolution_transpose_scratch);
}

}  // namespace rush::cpu
