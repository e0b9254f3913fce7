// Convolutions on the GPU, through cuDNN and without it, against the CPU's in float64.
#include "core/ops/nn/conv.h"

#include <doctest/doctest.h>

#include "backends/cuda/devices.h"
#include "core/device/context.h"
#include "rushlight.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/same_as_cpu.h"

namespace {

using namespace rush;
using namespace rush::testing;

struct ConvSetup {
  const char* name;
  std::vector<int64_t> input,
      weight;  // (N, C, spatial...), (O, C / groups, kernel...); transposed: (C, O / groups, ...)
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups;
  bool transposed = false;
  std::vector<int64_t> output_padding = {0};

  bool output_padding_reaches_stride() const {
    for (size_t d = 0; d < output_padding.size(); ++d) {
      if (output_padding[d] >= stride[d]) return true;
    }
    return false;
  }
};

const ConvSetup kConvSetups[] = {
    {"plain", {2, 3, 7, 8}, {4, 3, 3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
    {"aligned", {2, 16, 12, 12}, {32, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"one by one", {2, 8, 5, 6}, {16, 8, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
    {"strided", {1, 2, 8, 9}, {3, 2, 3, 2}, {2, 3}, {1, 0}, {1, 1}, 1},
    {"dilated", {1, 2, 9, 9}, {3, 2, 3, 2}, {1, 1}, {1, 1}, {2, 3}, 1},
    {"groups", {2, 4, 6, 5}, {6, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
    {"depthwise", {2, 8, 6, 5}, {8, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 8},
    {"one dimension", {2, 3, 11}, {4, 3, 3}, {2}, {1}, {1}, 1},
    {"three dimensions", {1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}, {1, 2, 1}, {1, 0, 1}, {1, 1, 2}, 1},
    {"a volume one deep", {1, 2, 1, 5, 6}, {3, 2, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1},
    {"transposed", {2, 4, 5, 6}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, true},
    {"transposed, strided", {2, 4, 5, 6}, {4, 3, 3, 3}, {2, 3}, {1, 0}, {1, 1}, 1, true, {1, 2}},
    {"transposed, groups", {2, 4, 5, 6}, {4, 2, 3, 2}, {2, 2}, {0, 1}, {1, 1}, 2, true},
    {"transposed, padded by more than a stride", {1, 2, 4, 4}, {2, 3, 2, 2}, {1, 1}, {0, 0}, {2, 2}, 1, true, {1, 1}},
    {"transposed in one dimension", {2, 3, 9}, {3, 4, 4}, {2}, {1}, {1}, 1, true},
    {"transposed in three", {1, 2, 3, 4, 3}, {2, 3, 2, 2, 3}, {2, 1, 1}, {0, 1, 0}, {1, 1, 1}, 1, true},
};

double conv_tolerance(ScalarType dtype) {
  switch (dtype) {
    case kFloat64: return 1e-11;
    case kFloat32: return 2e-5;
    case kFloat16: return 2e-2;
    default: return 1.5e-1;
  }
}

struct Results {
  Tensor output, grad_input, grad_weight, grad_bias;
};

Results run(const ConvSetup& s, const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& grad) {
  Results r;
  r.output =
      convolution(input, weight, bias, s.stride, s.padding, s.dilation, s.transposed, s.output_padding, s.groups);
  std::tie(r.grad_input, r.grad_weight, r.grad_bias) =
      ops::convolution_backward(grad.defined() ? grad : r.output, input, weight, bias.sizes(), s.stride, s.padding,
                                s.dilation, s.transposed, s.output_padding, s.groups, {true, true, true});
  return r;
}

Tensor moved_to_gpu(const Tensor& t, ScalarType dtype, bool channels_last) {
  const Tensor moved = t.to(dtype).cuda();
  if (!channels_last || t.dim() < 4) return moved;
  return moved.contiguous(t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
}

void check_conv(const ConvSetup& s, ScalarType dtype, bool channels_last) {
  INFO(str(s.name));
  CAPTURE(str(dtype));
  CAPTURE(channels_last);
  manual_seed(3);
  const int64_t channels = s.transposed ? s.weight[1] * s.groups : s.weight[0];
  const Tensor input = randn(s.input, kFloat64).to(dtype).to(kFloat64);
  const Tensor weight = randn(s.weight, kFloat64).mul(0.3).to(dtype).to(kFloat64);
  const Tensor bias = randn({channels}, kFloat64).to(dtype).to(kFloat64);
  const Tensor shape = run(s, input, weight, bias, Tensor()).output;
  const Tensor grad = randn(shape.sizes(), kFloat64).mul(0.3).to(dtype).to(kFloat64);
  const Results expected = run(s, input, weight, bias, grad);
  const Results got = run(s, moved_to_gpu(input, dtype, channels_last), moved_to_gpu(weight, dtype, channels_last),
                          bias.to(dtype).cuda(), moved_to_gpu(grad, dtype, channels_last));
  check_within(got.output, expected.output, conv_tolerance(dtype));
  check_within(got.grad_input, expected.grad_input, conv_tolerance(dtype));
  check_within(got.grad_weight, expected.grad_weight, conv_tolerance(dtype));
  check_within(got.grad_bias, expected.grad_bias, conv_tolerance(dtype));
  if (channels_last && s.input.size() >= 4) CHECK(got.output.suggest_memory_format() != MemoryFormat::Contiguous);
}

}  // namespace

TEST_CASE("cuda: convolutions and their gradients" * doctest::skip(!cuda::is_available())) {
  const FullPrecision precision;
  for (const ConvSetup& s : kConvSetups) {
    for (const ScalarType dtype : kReals) {
      check_conv(s, dtype, false);
      check_conv(s, dtype, true);
    }
  }
}

TEST_CASE("cuda: convolutions without cuDNN" * doctest::skip(!cuda::is_available())) {
  globalContext().setUserEnabledCuDNN(false);
  for (const ConvSetup& s : kConvSetups) {
    for (const ScalarType dtype : kReals) check_conv(s, dtype, s.groups > 1);
  }
  globalContext().setUserEnabledCuDNN(true);
}

TEST_CASE("cuda: 16-bit convolutions are rounded once, after the bias is added" *
          doctest::skip(!cuda::is_available())) {
  for (const bool with_dnn : {true, false}) {
    globalContext().setUserEnabledCuDNN(with_dnn);
    for (const ConvSetup& s : kConvSetups) {
      if (s.output_padding_reaches_stride())
        continue;  // rounded where PyTorch rounds: core/ops/nn/transposed_padding.h
      for (const ScalarType dtype : {kFloat16, kBFloat16}) {
        INFO(str(s.name, with_dnn ? "" : ", without cuDNN"));
        CAPTURE(str(dtype));
        manual_seed(3);
        const auto apply = [&](const Tensor& x, const Tensor& w, const Tensor& b) {
          return convolution(x, w, b, s.stride, s.padding, s.dilation, s.transposed, s.output_padding, s.groups);
        };
        const Tensor input = randn(s.input, kFloat64).to(dtype), weight = randn(s.weight, kFloat64).to(dtype);
        const int64_t channels = s.transposed ? s.weight[1] * s.groups : s.weight[0];
        const Tensor sums = apply(input.to(kFloat64), weight.to(kFloat64), zeros({channels}, kFloat64));
        // Each channel's bias all but cancels one of its sums: had that been rounded, little would be right.
        const Tensor bias = sums[0].flatten(1).select(1, sums[0][0].numel() / 2).neg().to(dtype);
        const Tensor expected = apply(input.to(kFloat64), weight.to(kFloat64), bias.to(kFloat64));
        const Tensor got = apply(input.cuda(), weight.cuda(), bias.cuda());
        REQUIRE(got.scalar_type() == dtype);
        CHECK(got.cpu().to(kFloat64).allclose(expected, dtype == kFloat16 ? 0x1p-10 : 0x1p-7, 2e-4));
      }
    }
  }
  globalContext().setUserEnabledCuDNN(true);
}

TEST_CASE("cuda: convolutions of integers and complex numbers" * doctest::skip(!cuda::is_available())) {
  for (const ConvSetup& s : kConvSetups) {
    INFO(str(s.name));
    const int64_t channels = s.transposed ? s.weight[1] * s.groups : s.weight[0];
    for (const ScalarType dtype : {kInt64, kInt32, kUInt8}) {
      const Tensor input = randint(0, 5, s.input, dtype), weight = randint(0, 5, s.weight, dtype);
      const Tensor bias = randint(0, 5, {channels}, dtype);
      const auto apply = [&](const Tensor& x, const Tensor& w, const Tensor& b) {
        return convolution(x, w, b, s.stride, s.padding, s.dilation, s.transposed, s.output_padding, s.groups);
      };
      CHECK(apply(input.cuda(), weight.cuda(), bias.cuda()).cpu().equal(apply(input, weight, bias)));
    }
    const auto random = [](IntArrayRef sizes) {
      return ops::complex(randn(sizes, kFloat64), randn(sizes, kFloat64)).to(kComplex64);
    };
    const Tensor input = random(s.input), weight = random(s.weight), bias = random({channels});
    const Results expected = run(s, input, weight, bias, Tensor());
    const Results got = run(s, input.cuda(), weight.cuda(), bias.cuda(), expected.output.cuda());
    for (const auto& [mine, theirs] :
         {std::pair(got.output, expected.output), std::pair(got.grad_input, expected.grad_input),
          std::pair(got.grad_weight, expected.grad_weight)}) {
      CHECK(mine.cpu().allclose(theirs, 1e-4, 1e-3));
    }
  }
}

TEST_CASE("cuda: convolutions of tensors with gaps and odd addresses" * doctest::skip(!cuda::is_available())) {
  const FullPrecision precision;
  const Tensor input = randn({2, 6, 9, 20}, kFloat64), weight = randn({4, 3, 3, 6}, kFloat64);
  const auto some = [](const Tensor& t) { return t.slice(1, 0, t.size(1), 2).slice(3, 1, t.size(3), 2); };
  const Tensor expected = conv2d(some(input), weight.slice(3, 1, 4));
  const Tensor got = conv2d(some(input.to(kFloat32).cuda()), weight.to(kFloat32).cuda().slice(3, 1, 4));
  check_within(got, expected, conv_tolerance(kFloat32));
  const Tensor flat = randn({1 + 3 * 8 * 8}, kFloat64);
  const auto odd = [](const Tensor& t) { return t.narrow(0, 1, 3 * 8 * 8).view({1, 3, 8, 8}); };
  const Tensor small = randn({2, 3, 3, 3}, kFloat64);
  check_within(conv2d(odd(flat.to(kFloat32).cuda()), small.to(kFloat32).cuda()), conv2d(odd(flat), small),
               conv_tolerance(kFloat32));
}

// The fastest plan may be one of Winograd's, whose errors are not those of a sum of products: they go with the sum of
// the products' magnitudes, of which they are at most some tens of roundings (Lavin and Gray, "Fast algorithms for
// convolutional neural networks", 2015).
TEST_CASE("cuda: the fastest plan computes the same" * doctest::skip(!cuda::is_available())) {
  const FullPrecision precision;
  globalContext().setBenchmarkCuDNN(true);
  manual_seed(3);
  const ConvSetup& s = kConvSetups[1];
  for (const auto& [dtype, channels_last, most] :
       {std::tuple(kFloat32, false, 64 * 0x1p-24), std::tuple(kFloat16, true, 8 * 0x1p-11)}) {
    CAPTURE(str(dtype));
    const Tensor input = randn(s.input, kFloat64).to(dtype), weight = randn(s.weight, kFloat64).to(dtype);
    const Tensor bias = zeros({s.weight[0]}, dtype), grad = randn({2, 32, 12, 12}, kFloat64).to(dtype);
    const auto in_double = [&](const auto& of) {
      return run(s, of(input.to(kFloat64)), of(weight.to(kFloat64)), bias.to(kFloat64), of(grad.to(kFloat64)));
    };
    const Results expected = in_double([](const Tensor& t) { return t; });
    const Results magnitudes = in_double([](const Tensor& t) { return t.abs(); });
    const Results got = run(s, moved_to_gpu(input, dtype, channels_last), moved_to_gpu(weight, dtype, channels_last),
                            bias.cuda(), moved_to_gpu(grad, dtype, channels_last));
    const auto check = [&](const Tensor& result, const Tensor& exact, const Tensor& magnitude) {
      const Tensor error = (result.cpu().to(kFloat64) - exact).abs();
      CHECK((error / magnitude).max().item<double>() < most);
    };
    check(got.output, expected.output, magnitudes.output);
    check(got.grad_input, expected.grad_input, magnitudes.grad_input);
    check(got.grad_weight, expected.grad_weight, magnitudes.grad_weight);
  }
  globalContext().setBenchmarkCuDNN(false);
}

TEST_CASE("cuda: deterministic plans give the same each time" * doctest::skip(!cuda::is_available())) {
  const FullPrecision precision;
  Context& context = globalContext();
  context.setDeterministicCuDNN(true);
  for (const ConvSetup& s : kConvSetups) check_conv(s, kFloat32, false);
  const Tensor input = randn({8, 16, 20, 20}).cuda(), grad = randn({8, 32, 18, 18}).cuda();
  const Tensor weight = randn({32, 16, 3, 3}).cuda(), bias = randn({32}).cuda();
  const Results first = run(kConvSetups[0], input, weight, bias, grad),
                again = run(kConvSetups[0], input, weight, bias, grad);
  context.setDeterministicCuDNN(false);
  CHECK(first.grad_weight.cpu().equal(again.grad_weight.cpu()));
  CHECK(first.grad_input.cpu().equal(again.grad_input.cpu()));
}
