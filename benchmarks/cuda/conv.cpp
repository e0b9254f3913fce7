// The convolutions of ResNet-50 (He, Zhang, Ren and Sun, 2016, in torchvision's form, whose 3 x 3 convolutions have the
// strides) on 64 images: each distinct one forward and both gradients, by the fastest of cuDNN's plans. The name says
// all that benchmarks/peers/torch_kernels.py needs to time PyTorch on the same:
//   cuda_conv/CHANNELSxSIZE_OUTPUTS_kKERNELsSTRIDE/DIRECTION/DTYPE/LAYOUT
#include <string>

#include "benchmarks/cuda/time_on_device.h"
#include "core/ops/nn/conv.h"
#include "rushlight.h"

namespace {

using namespace rush;

constexpr int64_t kImages = 64;

struct Convolution {
  int64_t channels, size, outputs, kernel, stride;
};
constexpr Convolution kResNet50[] = {
    {3, 224, 64, 7, 2},     {64, 56, 64, 1, 1},   {64, 56, 64, 3, 1},    {64, 56, 256, 1, 1},   {256, 56, 64, 1, 1},
    {256, 56, 128, 1, 1},   {128, 56, 128, 3, 2}, {128, 28, 512, 1, 1},  {256, 56, 512, 1, 2},  {512, 28, 128, 1, 1},
    {128, 28, 128, 3, 1},   {512, 28, 256, 1, 1}, {256, 28, 256, 3, 2},  {256, 14, 1024, 1, 1}, {512, 28, 1024, 1, 2},
    {1024, 14, 256, 1, 1},  {256, 14, 256, 3, 1}, {1024, 14, 512, 1, 1}, {512, 14, 512, 3, 2},  {512, 7, 2048, 1, 1},
    {1024, 14, 2048, 1, 2}, {2048, 7, 512, 1, 1}, {512, 7, 512, 3, 1},
};

enum Direction { kForward, kInputGradient, kWeightGradient };
constexpr const char* kDirections[] = {"forward", "input_gradient", "weight_gradient"};

void measure(benchmark::State& state, const Convolution& c, Direction direction, ScalarType dtype,
             MemoryFormat format) {
  if (lacks_gpu(state)) return;
  const NoGradGuard no_grad;
  const TensorOptions options = TensorOptions(dtype).device(kCUDA);
  const int64_t padding = c.kernel / 2;
  const Tensor x = randn({kImages, c.channels, c.size, c.size}, options).contiguous(format);
  const Tensor w = randn({c.outputs, c.channels, c.kernel, c.kernel}, options).contiguous(format);
  const auto forward = [&] { return convolution(x, w, {}, c.stride, padding, 1, false, 0, 1); };
  const auto backward = [&](const Tensor& grad) {
    return ops::convolution_backward(grad, x, w, {}, c.stride, padding, 1, false, 0, 1,
                                     {direction == kInputGradient, direction == kWeightGradient, false});
  };
  globalContext().setBenchmarkCuDNN(true);
  const Tensor y = forward();
  constexpr int kCalls = 10;
  if (direction == kForward) {
    time_on_device(state, forward, kCalls);
  } else {
    time_on_device(
        state, [&] { backward(y); }, kCalls);
  }
  globalContext().setBenchmarkCuDNN(false);
  const double flops = 2.0 * static_cast<double>(y.numel() * c.channels * c.kernel * c.kernel);
  state.counters["flops"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

struct NamedDtype {
  const char* name;
  ScalarType dtype;
};
struct NamedFormat {
  const char* name;
  MemoryFormat format;
};

const bool registered = [] {
  static const NamedDtype dtypes[] = {{"bfloat16", kBFloat16}, {"float16", kFloat16}, {"tf32", kFloat32}};
  static const NamedFormat formats[] = {{"nhwc", MemoryFormat::ChannelsLast}, {"nchw", MemoryFormat::Contiguous}};
  for (const NamedFormat& format : formats) {
    for (const NamedDtype& dtype : dtypes) {
      for (const Direction direction : {kForward, kInputGradient, kWeightGradient}) {
        for (const Convolution& c : kResNet50) {
          if (direction == kInputGradient && c.channels == 3) continue;  // images need none
          const std::string name = str("cuda_conv/", c.channels, "x", c.size, "_", c.outputs, "_k", c.kernel, "s",
                                       c.stride, "/", kDirections[direction], "/", dtype.name, "/", format.name);
          benchmark::RegisterBenchmark(name.c_str(), measure, c, direction, dtype.dtype, format.format)
              ->UseManualTime()
              ->Iterations(10)
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
  }
  return true;
}();

}  // namespace
