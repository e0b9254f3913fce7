// The gradient of a convolution by its weight, see Note [Convolution as a product].
#include "backends/cpu/loops.h"
#include "backends/cpu/nn/conv_channels_last.h"
#include "backends/cpu/nn/conv_image.h"
#include "backends/cpu/nn/conv_pixels.h"
#include "backends/cpu/nn/conv_strided_depthwise.h"
#include "backends/cpu/nn/conv_volume.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

// The inner product, in four vectors of sums.
template <class T, class Math = gemm_math_t<T>>
Math product(const T* a, const T* b, int64_t n) {
  constexpr int64_t chunk = 4 * kVectorBytes / sizeof(Math);
  Math sums[chunk] = {};
  int64_t i = 0;
  for (; i + chunk <= n; i += chunk) {
#pragma GCC unroll 4
    for (int64_t l = 0; l < chunk; ++l) sums[l] += static_cast<Math>(a[i + l]) * static_cast<Math>(b[i + l]);
  }
  for (int64_t l = 0; i < n; ++i, ++l) sums[l] += static_cast<Math>(a[i]) * static_cast<Math>(b[i]);
  for (int64_t half = chunk / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
  }
  return sums[0];
}

// weight[o, k] = sum over images and pixels p of output[o, p] image[position(p) + tap(k)], for one group; or its
// transpose, where that fills the tiles better.
template <class T>
class WeightGradient {
 public:
  using Math = gemm_math_t<T>;

  WeightGradient(const ConvSizes& sizes, const PaddedVolumes<T>& image, const PaddedVolumes<T>& output)
      : s_(sizes),
        image_(image),
        output_(output),
        lanes_(sizes, image.extent()),
        taps_(sizes.depth()),
        positions_(lanes_.dense ? 0 : lanes_.count(sizes.output[1])),
        channels_(sizes.out_channels) {
    tap_offsets(s_, image.extent(), taps_.data());
    if (!lanes_.dense) lanes_.offsets(s_, s_.output[1], positions_.data());
    for (int64_t o = 0; o < s_.out_channels; ++o) channels_[o] = o * output.volume();
  }

  bool transposed() const {
    if (direct()) return false;
    constexpr int64_t width = TileShape<Math>::width;
    const auto padded = [](int64_t lanes) { return (lanes + width - 1) / width * width; };
    return s_.depth() * padded(s_.out_channels) < s_.out_channels * padded(s_.depth());
  }

  // Adds up images [begin, end) in `sums`: (out_channels, depth), or (depth, out_channels) when transposed.
  void add_images(int64_t group, int64_t begin, int64_t end, Math* sums) const {
    const int64_t pixels = lanes_.count(s_.output[1]);
    bool first = true;
    for (int64_t n = begin; n < end; ++n) {
      const T* image = image_.data() + (n * s_.groups + group) * s_.in_channels * image_.volume();
      const T* output = output_.data() + (n * s_.groups + group) * s_.out_channels * output_.volume();
      for (int64_t z = 0; z < s_.output[0]; ++z) {
        const ImageSource<T> taps(image + z * s_.stride[0] * image_.plane(), taps_.data(),
                                  lanes_.dense ? nullptr : positions_.data());
        const ImageSource<T> channels(output + z * output_.plane(), channels_.data(), nullptr);
        const Math keep(first ? 0 : 1);
        if (direct()) {
          add_products(image + z * s_.stride[0] * image_.plane(), output + z * output_.plane(), pixels, first, sums);
        } else if (transposed()) {
          multiply<Math>(s_.depth(), s_.out_channels, pixels, taps, channels, Math(1), keep,
                         {sums, s_.out_channels, 1});
        } else {
          multiply<Math>(s_.out_channels, s_.depth(), pixels, channels, taps, Math(1), keep, {sums, s_.depth(), 1});
        }
        first = false;
      }
    }
  }

 private:
  // So few channels do not repay packing.
  bool direct() const { return lanes_.dense && s_.out_channels <= kFewChannels; }
  void add_products(const T* image, const T* output, int64_t pixels, bool first, Math* sums) const {
    for (int64_t o = 0; o < s_.out_channels; ++o) {
      for (int64_t k = 0; k < s_.depth(); ++k, ++sums) {
        const Math sum = product(output + channels_[o], image + taps_[k], pixels);
        *sums = first ? sum : *sums + sum;
      }
    }
  }

  const ConvSizes& s_;
  const PaddedVolumes<T>& image_;
  const PaddedVolumes<T>& output_;
  PixelLanes lanes_;
  Scratch<int64_t> taps_, positions_, channels_;
};

// The same by Note [Tables of strided rows].
template <class T>
class StridedDepthwiseWeightGradient {
 public:
  using Math = gemm_math_t<T>;

  StridedDepthwiseWeightGradient(const ConvSizes& sizes, const Spatial& padding, const Tensor& input,
                                 const Tensor& output)
      : s_(sizes),
        input_(input),
        output_(output),
        tables_(sizes, padding, input_.size[4], StridedTables::few_rows(sizes)) {}

  static bool transposed() { return false; }

  void add_images(int64_t group, int64_t begin, int64_t end, Math* sums) const {
    const Scratch<T> numbers(tables_.numbers()), lanes(tables_.lanes(tables_.rows));
    std::fill_n(sums, s_.out_channels * s_.taps(), Math(0));
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t z = 0; z < s_.output[0]; ++z) {
        for (int64_t y = 0; y < s_.output[1]; y += tables_.rows) {
          tables_.fill(input_, n, group, z * s_.stride[0], y * s_.stride[1] - tables_.before[1], numbers.data());
          add_products(n, group, z, y, numbers.data(), lanes.data(), sums);
        }
      }
    }
  }

 private:
  void add_products(int64_t n, int64_t group, int64_t z, int64_t y, const T* numbers, T* lanes, Math* sums) const {
    const int64_t rows = std::min(tables_.rows, s_.output[1] - y);
    for (int64_t o = 0; o < s_.out_channels; ++o) {
      tables_.fill_lanes(output_, n, group * s_.out_channels + o, z, y, rows, lanes);
      for (int64_t k = 0; k < s_.taps(); ++k) *sums++ += product(lanes, numbers + tables_.taps[k], tables_.lanes(rows));
    }
  }

  const ConvSizes& s_;
  Volumes<T> input_, output_;
  StridedTables tables_;
};

// Each chunk of images has its own sum, and then these are added. They take at most 64 MB, and a chunk has far more
// pixels to add than there are sums. The number of threads does not matter: it would show in the last bits of the sums.
template <class Math>
int64_t chunks_of(const ConvSizes& s) {
  constexpr int64_t kMostChunks = 16, kLeastPixels = 512;
  const int64_t size = s.out_channels * s.depth();
  const int64_t most = std::max<int64_t>(1, (int64_t(64) << 20) / static_cast<int64_t>(sizeof(Math)) / size / s.groups);
  const int64_t wanted = std::min((kMostChunks + s.groups - 1) / s.groups,
                                  s.batch * s.output[0] * s.output[1] * s.output[2] / kLeastPixels + 1);
  return std::min({s.batch, wanted, most});
}

// As long as the image's rows, by zeros at their ends, where that makes the rows of the product contiguous.
inline Spatial output_extent(const ConvSizes& s, const Spatial& image) {
  Spatial extent = s.output;
  if (s.dense()) extent[2] = image[2];
  return extent;
}

struct WeightLoop {
  template <class T>
  static void run(const Tensor& weight, const Tensor& output, const Tensor& input, const ConvGeometry& geometry) {
    using Math = gemm_math_t<T>;
    const ConvSizes s(output, input, weight, geometry);
    const Spatial extent = s.image_extent(input, geometry);
    if constexpr (std::is_floating_point_v<Math>) {
      if (ChannelsLastWeightGradient<T>::serves(s)) {
        const PixelImages<Math> images(input, geometry.padding, extent);
        const Tensor grad = pixel_step(output) > 0 ? output : native::contiguous(output);
        return ChannelsLastWeightGradient<T>(s, images, grad).run(weight);
      }
    }
    const Tensor input_rows = native::contiguous(input), output_rows = native::contiguous(output);
    if (StridedTables::fit(s, geometry)) {
      const StridedDepthwiseWeightGradient<T> gradient(s, geometry.padding, input_rows, output_rows);
      return add_up<T>(s, gradient, weight);
    }
    const PaddedVolumes<T> image(input_rows, geometry.padding, extent);
    const PaddedVolumes<T> grad(output_rows, {}, output_extent(s, extent));
    add_up<T>(s, WeightGradient<T>(s, image, grad), weight);
  }

  template <class T, class Gradient, class Math = gemm_math_t<T>>
  static void add_up(const ConvSizes& s, const Gradient& gradient, const Tensor& weight) {
    const int64_t parts = chunks_of<Math>(s), size = s.out_channels * s.depth();
    const Scratch<Math> sums(s.groups * parts * size);
    parallel_for(0, s.groups * parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t part = t % parts;
        gradient.add_images(t / parts, part * s.batch / parts, (part + 1) * s.batch / parts, sums.data() + t * size);
      }
    });
    store<T>(s, weight, gradient.transposed(), parts, sums.data());
  }

  template <class T, class Math = gemm_math_t<T>>
  static void store(const ConvSizes& s, const Tensor& weight, bool transposed, int64_t parts, const Math* sums) {
    const Volumes<T> to(weight);
    const int64_t size = s.out_channels * s.depth();
    const int64_t grain = std::max<int64_t>(1, kGrain / (s.depth() * parts));
    parallel_for(0, s.groups * s.out_channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t group = row / s.out_channels, o = row % s.out_channels;
        const Math* from = sums + group * parts * size + (transposed ? o : o * s.depth());
        store_row(s, to, row, from, transposed ? s.out_channels : 1, parts, size);
      }
    });
  }

  // The sums of an element are `size` apart, and the elements of a row `step`.
  template <class T, class Math = gemm_math_t<T>>
  static void store_row(const ConvSizes& s, const Volumes<T>& to, int64_t row, const Math* from, int64_t step,
                        int64_t parts, int64_t size) {
    for (int64_t c = 0; c < s.in_channels; ++c) {
      for (int64_t z = 0; z < s.kernel[0]; ++z) {
        for (int64_t y = 0; y < s.kernel[1]; ++y) {
          T* out = to.row(row, c, z, y);
          for (int64_t x = 0; x < s.kernel[2]; ++x, from += step) {
            Math total = from[0];
            for (int64_t p = 1; p < parts; ++p) total += from[p * size];
            out[x * to.stride[4]] = static_cast<T>(total);
          }
        }
      }
    }
  }
};

void convolution_weight(const Tensor& weight, const Tensor& output, const Tensor& input, const ConvGeometry& geometry) {
  const auto format = pixel_product(output, input, weight, geometry);
  if (format == MemoryFormat::ChannelsLast3d) {
    return multiply_pixels(matrix_of_weight(weight), turned(pixels_of(output, *format)), pixels_of(input, *format),
                           Tensor());
  }
  if (is_image_product(input, output, weight, geometry)) {
    return multiply_pixels(rows_of(weight), turned(rows_of(output)), rows_of(input), Tensor());
  }
  pick<WeightLoop>(NumberTypes(), input.scalar_type(), "convolution_backward")(weight, output, input, geometry);
}

// The input and the gradient, row-major and padded, and the sums.
struct WeightScratch {
  template <class T>
  static int64_t run(const Tensor& weight, const Tensor& output, const Tensor& input, const ConvGeometry& geometry) {
    using Math = gemm_math_t<T>;
    const ConvSizes s(output, input, weight, geometry);
    const Spatial extent = s.image_extent(input, geometry);
    if constexpr (std::is_floating_point_v<Math>) {
      if (ChannelsLastWeightGradient<T>::serves(s)) {
        return (pixel_step(output) > 0 ? 0 : bytes_to_copy(output)) + ChannelsLastWeightGradient<T>::scratch(s) +
               PixelImages<Math>::scratch(input, geometry.padding, extent);
      }
    }
    const int64_t bytes =
        bytes_to_copy(input) + bytes_to_copy(output) +
        s.groups * chunks_of<Math>(s) * s.out_channels * s.depth() * static_cast<int64_t>(sizeof(Math));
    if (StridedTables::fit(s, geometry)) return bytes;
    return bytes + PaddedVolumes<T>::scratch(input, geometry.padding, extent) +
           PaddedVolumes<T>::scratch(output, {}, output_extent(s, extent));
  }
};

int64_t convolution_weight_scratch(const Tensor& weight, const Tensor& output, const Tensor& input,
                                   const ConvGeometry& geometry) {
  return pick<WeightScratch>(NumberTypes(), input.scalar_type(), "convolution_backward")(weight, output, input,
                                                                                         geometry);
}

}  // namespace

void register_conv_weight() {
  kernels::convolution_weight.set(kCPU, convolution_weight);
  kernels::convolution_weight.set_scratch(kCPU, convolution_weight_scratch);
}

}  // namespace rush::cpu
