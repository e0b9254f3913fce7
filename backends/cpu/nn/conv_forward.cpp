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
    Spatial extent = sizes.padded();
    for (size_t d = 0; d < 3; ++d) {
      if (geometry.padding[d] == 0) extent[d] = input.size(2 + static_cast<int64_t>(d));  // nothing to cut off
    }
    const PaddedVolumes<T> image(input, geometry.padding, extent);
    const Tensor straight = native::contiguous(weight);
    Convolution<T>(sizes, image, straight.data_ptr<T>(), output, bias).run();
  }
};

}  // namespace

void register_conv() { set_by_dtype<kernels::convolution, ConvolutionLoop, NumberTypes, 1>(kCPU); }

}  // namespace rush::cpu
