#include "backends/cpu/nn/conv_forward.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/nn/conv_channels_last.h"
#include "backends/cpu/nn/conv_depthwise.h"
#include "backends/cpu/nn/conv_pixels.h"
#include "backends/cpu/nn/conv_strided_depthwise.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

template <class T>
void convolve_channels_last(const ConvSizes& s, const Tensor& output, const Tensor& input, const Tensor& weight,
                            const Tensor& bias, const ConvGeometry& geometry) {
  const PixelImages<gemm_math_t<T>> images(input, geometry.padding, s.image_extent(input, geometry));
  const bool taps_first = has_taps_first(weight);
  const Tensor rows = taps_first ? weight : native::contiguous(weight);
  const Scratch<int64_t> columns(s.out_channels);
  for (int64_t o = 0; o < s.out_channels; ++o) columns[o] = o * s.depth();
  const WeightMatrix<T> matrix = {rows.data_ptr<T>(), s.out_channels * s.depth(), columns.data(), nullptr,
                                  taps_first ? TapOrder::ByTap : TapOrder::ByChannel};
  ChannelsLastConvolution<T>(s, images, matrix, output, bias).run();
}

struct ConvolutionLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const ConvGeometry& geometry) {
    const ConvSizes sizes(output, input, weight, geometry);
    if constexpr (std::is_floating_point_v<gemm_math_t<T>>) {
      if (ChannelsLastConvolution<T>::serves(sizes)) {
        return convolve_channels_last<T>(sizes, output, input, weight, bias, geometry);
      }
    }
    const Tensor straight = native::contiguous(weight);
    if (ChannelsLastDepthwise<T>::fits(sizes, input, output)) {
      return ChannelsLastDepthwise<T>(sizes, geometry.padding, input, straight.data_ptr<T>(), output, bias).run();
    }
    const Tensor rows = native::contiguous(input);
    RowMajorOutput result(output);
    if (StridedTables::fit(sizes, geometry)) {
      StridedDepthwise<T>(sizes, geometry.padding, rows, straight.data_ptr<T>(), result.tensor(), bias).run();
    } else {
      const PaddedVolumes<T> image(rows, geometry.padding, sizes.image_extent(input, geometry));
      Convolution<T>(sizes, image, straight.data_ptr<T>(), result.tensor(), bias).run();
    }
    result.store();
  }
};

void convolution(const Tensor& output, const Tensor& input, const Tensor& weight, const Tensor& bias,
                 const ConvGeometry& geometry) {
  if (const auto format = pixel_product(output, input, weight, geometry)) {
    const Tensor pixels = pixels_of(input, *format);
    return multiply_pixels(pixels_of(output, *format), pixels, turned(matrix_of_weight(weight, pixels.size(0))), bias);
  }
  if (is_image_product(input, output, weight, geometry)) {
    return multiply_pixels(rows_of(output), rows_of(input), turned(rows_of(weight)), bias);
  }
  pick<ConvolutionLoop>(NumberTypes(), input.scalar_type(), "convolution")(output, input, weight, bias, geometry);
}

// The input with its padding, the weight, straight and packed, and the row-major output.
struct ConvolutionScratch {
  template <class T>
  static int64_t run(const Tensor& output, const Tensor& input, const Tensor& weight, const ConvGeometry& geometry) {
    using Math = gemm_math_t<T>;
    const ConvSizes s(output, input, weight, geometry);
    if constexpr (std::is_floating_point_v<Math>) {
      if (ChannelsLastConvolution<T>::serves(s)) {
        return (has_taps_first(weight) ? 0 : bytes_to_copy(weight)) + ChannelsLastConvolution<T>::scratch(s) +
               PixelImages<Math>::scratch(input, geometry.padding, s.image_extent(input, geometry));
      }
    }
    const int64_t copies = bytes_to_copy(weight) + bytes_to_copy(input) + bytes_to_copy(output);
    if (StridedTables::fit(s, geometry)) return copies;
    return copies + PaddedVolumes<T>::scratch(input, geometry.padding, s.image_extent(input, geometry)) +
           s.groups * packed_rows_size<Math>(s.out_channels, s.depth()) *
               static_cast<int64_t>(sizeof(gemm_real_t<Math>));
  }
};

int64_t convolution_scratch(const Tensor& output, const Tensor& input, const Tensor& weight, const Tensor&,
                            const ConvGeometry& geometry) {
  return pick<ConvolutionScratch>(NumberTypes(), input.scalar_type(), "convolution")(output, input, weight, geometry);
}

}  // namespace

void register_conv() {
  kernels::convolution.set(kCPU, convolution);
  kernels::convolution.set_scratch(kCPU, convolution_scratch);
}

}  // namespace rush::cpu
