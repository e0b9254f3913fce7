#include "backends/cpu/nn/conv_forward.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "core/ops/view/copy.h"

namespace rush::cpu {

namespace {

struct ConvolutionLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const ConvGeometry& geometry) {
    const ConvSizes sizes(output, input, weight, geometry);
    const PaddedVolumes<T> image(input, geometry.padding, sizes.image_extent(input, geometry));
    const Tensor straight = native::contiguous(weight);
    Convolution<T>(sizes, image, straight.data_ptr<T>(), output, bias).run();
  }
};

// The padded input, and the weight, straight and packed.
struct ConvolutionScratch {
  template <class T>
  static int64_t run(const Tensor& output, const Tensor& input, const Tensor& weight, const ConvGeometry& geometry) {
    using Math = gemm_math_t<T>;
    const ConvSizes s(output, input, weight, geometry);
    return bytes_to_copy(weight) + PaddedVolumes<T>::scratch(input, geometry.padding, s.image_extent(input, geometry)) +
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
  set_by_dtype<kernels::convolution, ConvolutionLoop, NumberTypes, 1>(kCPU);
  kernels::convolution.set_scratch(kCPU, convolution_scratch);
}

}  // namespace rush::cpu
