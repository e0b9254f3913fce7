#include "core/ops/nn/conv.h"

#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

struct Setup {
  const char* name;
  DimVector input, weight;  // (N, C, spatial...), (O, C / groups, kernel...)
  DimVector stride, padding, dilation;
  int64_t groups;
};

const Setup kSetups[] = {
    {"plain", {2, 3, 7, 8}, {4, 3, 3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
    {"padded", {2, 3, 5, 6}, {4, 3, 3, 3}, {1, 1}, {1, 2}, {1, 1}, 1},
    {"one by one", {2, 3, 5, 6}, {4, 3, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
    {"a whole image", {3, 2, 4, 3}, {5, 2, 4, 3}, {1, 2}, {0, 0}, {1, 1}, 1},
    {"strided", {1, 2, 8, 9}, {3, 2, 3, 2}, {2, 3}, {1, 0}, {1, 1}, 1},
    {"dilated", {1, 2, 9, 9}, {3, 2, 3, 2}, {1, 1}, {1, 1}, {2, 3}, 1},
    {"strided and dilated", {2, 2, 9, 10}, {3, 2, 3, 2}, {2, 1}, {1, 2}, {2, 2}, 1},
    {"groups", {2, 4, 6, 5}, {6, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
    {"depthwise", {2, 3, 6, 5}, {3, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 3},
    {"depthwise, two for each channel", {2, 3, 12, 21}, {6, 1, 3, 5}, {1, 1}, {1, 2}, {1, 1}, 3},
    {"depthwise, dilated", {1, 4, 7, 8}, {4, 1, 3, 3}, {1, 1}, {2, 2}, {2, 2}, 4},
    {"depthwise, strided, many pixels", {1, 2, 31, 40}, {2, 1, 5, 3}, {2, 3}, {2, 1}, {1, 1}, 2},
    {"depthwise, stride 2 along rows, dilated", {2, 3, 17, 23}, {6, 1, 3, 5}, {3, 2}, {2, 3}, {2, 3}, 3},
    {"depthwise, stride 2, many rows", {1, 2, 150, 41}, {2, 1, 5, 3}, {2, 2}, {0, 1}, {1, 1}, 2},
    {"depthwise, stride 2, rows of two", {2, 3, 5, 2}, {3, 1, 2, 2}, {1, 2}, {1, 1}, {1, 1}, 3},
    {"depthwise, many channels", {1, 70, 4, 5}, {70, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 70},
    {"one output channel", {2, 5, 9, 20}, {1, 5, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"more padding than kernel", {1, 1, 3, 3}, {2, 1, 2, 2}, {1, 1}, {3, 2}, {1, 1}, 1},
    {"one dimension", {2, 3, 11}, {4, 3, 3}, {2}, {1}, {1}, 1},
    {"three dimensions", {1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}, {1, 2, 1}, {1, 0, 1}, {1, 1, 2}, 1},
    {"volumes, depthwise", {2, 3, 4, 5, 6}, {3, 1, 2, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 3},
    {"volumes, depthwise, stride 2", {2, 3, 4, 9, 10}, {3, 1, 1, 3, 3}, {2, 1, 2}, {0, 2, 1}, {1, 1, 1}, 3},
    {"volumes, depthwise, two for each channel", {2, 3, 5, 6, 9}, {6, 1, 3, 2, 3}, {2, 1, 3}, {1, 0, 2}, {1, 2, 1}, 3},
    {"volumes, depthwise, only the kernel is deep",
     {2, 2, 1, 4, 5},
     {2, 1, 3, 1, 2},
     {1, 1, 1},
     {1, 0, 0},
     {1, 1, 1},
     2},
    {"volumes, depthwise, many positions", {1, 2, 9, 40, 50}, {2, 1, 3, 3, 1}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 2},
    {"many channels and pixels", {1, 40, 24, 30}, {36, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
};

int64_t at(const DimVector& v, size_t d, size_t spatial, int64_t missing) {
  return d + spatial < 3 ? missing : v[d + spatial - 3];
}

// The definition, for any number of dimensions, in double precision: six loops of a volume's convolution.
Doubles reference(const Setup& s, const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const DimVector& output) {
  const size_t spatial = s.stride.size();
  const auto volume = [&](const DimVector& sizes) {
    std::array<int64_t, 3> v;
    for (size_t d = 0; d < 3; ++d) v[d] = d + spatial < 3 ? 1 : sizes[d + spatial - 1];
    return v;
  };
  const auto in = volume(s.input), kernel = volume(s.weight), out = volume(output);
  const Doubles x = values(input), w = values(weight), b = bias.defined() ? values(bias) : Doubles();
  const int64_t channels = s.weight[1], per_group = s.weight[0] / s.groups;
  Doubles result;
  for (int64_t n = 0; n < s.input[0]; ++n) {
    for (int64_t o = 0; o < s.weight[0]; ++o) {
      for (int64_t p = 0; p < out[0] * out[1] * out[2]; ++p) {
        const std::array<int64_t, 3> at_out = {p / (out[1] * out[2]), p / out[2] % out[1], p % out[2]};
        double sum = b.empty() ? 0 : b[static_cast<size_t>(o)];
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t k = 0; k < kernel[0] * kernel[1] * kernel[2]; ++k) {
            const std::array<int64_t, 3> tap = {k / (kernel[1] * kernel[2]), k / kernel[2] % kernel[1], k % kernel[2]};
            int64_t offset = n * s.input[1] + o / per_group * channels + c;
            bool inside = true;
            for (size_t d = 0; d < 3; ++d) {
              const int64_t i = at_out[d] * at(s.stride, d, spatial, 1) + tap[d] * at(s.dilation, d, spatial, 1) -
                                at(s.padding, d, spatial, 0);
              inside = inside && i >= 0 && i < in[d];
              offset = offset * in[d] + i;
            }
            const size_t weight_at = static_cast<size_t>((o * channels + c) * kernel[0] * kernel[1] * kernel[2] + k);
            if (inside) sum += x[static_cast<size_t>(offset)] * w[weight_at];
          }
        }
        result.push_back(sum);
      }
    }
  }
  return result;
}

double largest_error(const Tensor& actual, const Doubles& expected) {
  const Doubles got = values(actual);
  REQUIRE(got.size() == expected.size());
  double error = 0;
  for (size_t i = 0; i < got.size(); ++i) error = std::max(error, std::abs(got[i] - expected[i]));
  return error;
}

Tensor with_channels_last(const Tensor& t) {
  return t.contiguous(t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
}

Tensor run(const Setup& s, const Tensor& x, const Tensor& w, const std::optional<Tensor>& b) {
  return convolution(x, w, b, s.stride, s.padding, s.dilation, false, 0, s.groups);
}

TEST_CASE("convolution: its definition, in every layout") {
  for (const Setup& s : kSetups) {
    CAPTURE(s.name);
    const Tensor x = leaf(s.input).detach(), w = leaf(s.weight, 1).detach(), b = leaf(s.weight[0], 2).detach();
    const Tensor y = run(s, x, w, b);
    CHECK(largest_error(y, reference(s, x, w, b, y.sizes())) < 1e-12);
    CHECK(largest_error(run(s, x, w, std::nullopt), reference(s, x, w, Tensor(), y.sizes())) < 1e-12);
    if (x.dim() >= 4) {
      const Tensor z = run(s, with_channels_last(x), with_channels_last(w), b);
      CHECK(largest_error(z, values(y)) < 1e-12);
      if (x.size(1) > 1 && y.numel() > y.size(1)) CHECK(with_channels_last(z).is_same(z));
    }
    const Tensor turned = x.transpose(-1, 0).contiguous().transpose(-1, 0);
    CHECK(largest_error(run(s, turned, w, b), values(y)) < 1e-12);
  }
}

TEST_CASE("convolution: other dtypes") {
  for (const Setup& s : kSetups) {
    if (checked_numel(s.input) > 1000) continue;
    CAPTURE(s.name);
    const Tensor x = counting(s.input).remainder(3), w = counting(s.weight).remainder(2) - 1;
    const Tensor y = run(s, x, w, std::nullopt);
    const Doubles expected = reference(s, x, w, Tensor(), y.sizes());
    for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16, kFloat16, kInt64, kInt32}) {
      CAPTURE(dtype);
      const Tensor other = run(s, x.to(dtype), w.to(dtype), std::nullopt);
      CHECK(other.scalar_type() == dtype);
      CHECK(largest_error(other, expected) == 0);
      if (x.dim() < 4) continue;
      CHECK(largest_error(run(s, with_channels_last(x.to(dtype)), w.to(dtype), std::nullopt), expected) == 0);
    }
    const Tensor z = run(s, x.to(kComplex64) * Scalar(complex<double>(0, 1)), w.to(kComplex64), std::nullopt);
    CHECK(largest_error(view_as_real(z).select(-1, 1), expected) == 0);
    CHECK(largest_error(view_as_real(z).select(-1, 0), Doubles(expected.size(), 0.0)) == 0);
  }
}

TEST_CASE("convolution: a NaN stays in the windows that see it") {
  for (const int64_t groups : {int64_t(1), int64_t(4)}) {
    for (const int64_t stride : {1, 2}) {
      CAPTURE(groups);
      CAPTURE(stride);
      Tensor x = ones({1, 4, 9, 30});
      x[0][1][4][29].fill_(std::numeric_limits<double>::quiet_NaN());
      const Tensor w = ones({4, 4 / groups, 3, 3});
      const Tensor y = conv2d(x, w, std::nullopt, stride, 1, 1, groups);
      const Tensor seen = conv2d(isnan(x).to(kFloat32), w, std::nullopt, stride, 1, 1, groups);
      CHECK(equal(isnan(y), seen.gt(0)));
      CHECK(isnan(y).sum().item<int64_t>() == (stride == 1 ? 6 : 1) * (groups == 1 ? 4 : 1));
    }
  }
}

TEST_CASE("convolution: derivatives of every kind of setup") {
  for (const Setup& s : kSetups) {
    if (checked_numel(s.input) > 1000) continue;
    CAPTURE(s.name);
    // A batch of one and few channels keep the Jacobians small.
    Setup small = s;
    small.input[0] = 1;
    const auto fn = [&](const Tensors& t) { return Tensors{run(small, t[0], t[1], t[2])}; };
    check_gradient(fn, {leaf(small.input), leaf(small.weight, 1), leaf(small.weight[0], 2)});
  }
}

TEST_CASE("convolution: the gradients are its transposes, at full size") {
  // <conv(x, w), g> = <x, dx> = <w, dw>, and the sum of g is the bias's.
  for (const Setup& s : kSetups) {
    CAPTURE(s.name);
    const Tensor x = leaf(s.input), w = leaf(s.weight, 1), b = leaf(s.weight[0], 2);
    const Tensor y = run(s, x, w, std::nullopt), g = leaf(y.sizes(), 3).detach();
    const double product = (y * g).sum().item<double>();
    const Tensors grads = autograd::grad({y}, {x, w}, {g});
    CHECK((grads[0] * x).sum().item<double>() == doctest::Approx(product).epsilon(1e-9));
    CHECK((grads[1] * w).sum().item<double>() == doctest::Approx(product).epsilon(1e-9));
    if (x.dim() < 4) continue;
    const Tensor last = with_channels_last(x.detach()).requires_grad_();
    const Tensors same = autograd::grad({run(s, last, w, b)}, {last, w}, {with_channels_last(g)});
    CHECK(largest_error(same[0], values(grads[0])) < 1e-12);
    CHECK(largest_error(same[1], values(grads[1])) < 1e-11);
  }
}

TEST_CASE("convolution: second derivatives") {
  const Setup strided = {"", {2, 2, 4, 5}, {2, 1, 2, 3}, {2, 1}, {1, 1}, {1, 1}, 2};
  const Setup plain = {"", {1, 2, 4, 3}, {2, 2, 2, 2}, {1, 1}, {1, 0}, {1, 1}, 1};
  for (const Setup& s : {strided, plain}) {
    const auto fn = [&](const Tensors& t) { return Tensors{run(s, t[0], t[1], t[2])}; };
    check_second_gradient(fn, {leaf(s.input), leaf(s.weight, 1), leaf(s.weight[0], 2)});
    const auto transposed = [&](const Tensors& t) {
      return Tensors{convolution(t[0], t[1], t[2], s.stride, s.padding, s.dilation, true, {1, 0}, s.groups)};
    };
    const Tensors inputs = {leaf({1, s.weight[0], 2, 3}), leaf(s.weight, 1), leaf(s.weight[1] * s.groups, 2)};
    if (s.stride[0] > 1) check_gradients(transposed, inputs);
  }
}

TEST_CASE("conv_transpose: the transpose of the convolution with the same arguments") {
  for (const Setup& s : kSetups) {
    CAPTURE(s.name);
    const size_t spatial = s.stride.size();
    const Tensor x = leaf(s.input).detach(), w = leaf(s.weight, 1).detach();
    const Tensor y = run(s, x, w, std::nullopt), g = leaf(y.sizes(), 3).detach();
    DimVector rest(spatial, 0);  // what stride leaves open of the input's size
    DimVector one_channel(spatial + 1, 1);
    one_channel[0] = s.input[1];
    for (size_t d = 0; d < spatial; ++d) {
      rest[d] = (s.input[d + 2] + 2 * s.padding[d] - s.dilation[d] * (s.weight[d + 2] - 1) - 1) % s.stride[d];
    }
    const Tensor b = leaf(s.input[1], 5).detach();
    const Tensor t = convolution(g, w, b, s.stride, s.padding, s.dilation, true, rest, s.groups);
    CHECK(t.sizes() == x.sizes());
    const Tensor shifted = t - b.view(one_channel);
    CHECK((shifted * x).sum().item<double>() == doctest::Approx((y * g).sum().item<double>()).epsilon(1e-9));
  }
  CHECK(conv_transpose1d(ones({1, 2, 4}), ones({2, 3, 3}), std::nullopt, 2, 1, 1).sizes() == IntArrayRef({1, 3, 8}));
  CHECK(conv_transpose3d(ones({2, 3, 3, 3}), ones({2, 1, 2, 2, 2})).sizes() == IntArrayRef({1, 4, 4, 4}));
}

TEST_CASE("conv: without a batch, and padding by name") {
  const Tensor x = leaf({3, 6, 7}).detach(), w = leaf({2, 3, 3, 4}, 1).detach();
  CHECK(largest_error(conv2d(x, w), values(conv2d(x.unsqueeze(0), w))) == 0);
  CHECK(conv2d(x, w, std::nullopt, 1, "valid").sizes() == IntArrayRef({2, 4, 4}));
  const Tensor same = conv2d(x, w, std::nullopt, 1, "same", 2);
  CHECK(same.sizes() == IntArrayRef({2, 6, 7}));
  // Six more columns are seen, three on each side; two more rows on each side.
  CHECK(largest_error(same, values(conv2d(x, w, std::nullopt, 1, {2, 3}, 2))) < 1e-12);
  // The odd column of an even kernel is added at the end.
  const Tensor row = tensor({1.0, 2.0, 3.0}).view({1, 3}), taps = tensor({1.0, 10.0}).view({1, 1, 2});
  const Tensor even = conv1d(row, taps, std::nullopt, 1, "same");
  CHECK(values(even) == Doubles{21, 32, 3});
  CHECK(even.is_contiguous());
  CHECK_THROWS_AS(conv2d(x, w, std::nullopt, 2, "same"), ValueError);
  CHECK_THROWS_WITH_AS(conv1d(ones({3}), ones({1, 1, 2}), std::nullopt, 1, "same"), doctest::Contains("conv1d"),
                       ValueError);
  CHECK_THROWS_AS(conv2d(x, w, std::nullopt, 1, "same", INT64_MAX), ValueError);
  CHECK_THROWS_AS(conv2d(x, w, std::nullopt, 1, "full"), ValueError);
}

TEST_CASE("conv: empty batches, empty inputs, the meta device") {
  CHECK(conv2d(ones({0, 3, 5, 5}), ones({2, 3, 3, 3})).sizes() == IntArrayRef({0, 2, 3, 3}));
  // Nothing but padding: the bias.
  const Tensor y = conv1d(ones({1, 2, 0}), ones({3, 2, 2}), tensor({1.0, 2.0, 3.0}).to(kFloat32), 1, 1);
  CHECK(values(y) == Doubles{1, 2, 3});
  const Tensor m = conv2d(empty({2, 3, 5, 5}, kMeta), empty({4, 3, 3, 3}, kMeta), std::nullopt, 2, 1);
  CHECK(m.is_meta());
  CHECK(m.sizes() == IntArrayRef({2, 4, 3, 3}));
}

TEST_CASE("conv: bad input") {
  const Tensor x = ones({1, 4, 5, 5}), w = ones({2, 4, 3, 3});
  CHECK_THROWS_WITH_AS(conv2d(ones({1, 3, 5, 5}), w),
                       "convolution: Given groups=1, weight of size [2, 4, 3, 3], expected input[1, 3, 5, 5] to have 4 "
                       "channels, but got "
                       "3 channels instead",
                       ValueError);
  CHECK_THROWS_WITH_AS(conv_transpose2d(ones({1, 3, 5, 5}), w),
                       "conv_transpose: Given transposed=1, weight of size [2, 4, 3, 3], expected input[1, 3, 5, 5] to "
                       "have 2 channels, but got 3 channels instead",
                       ValueError);
  CHECK_THROWS_AS(conv2d(ones({5, 5}), w), ValueError);
  CHECK_THROWS_AS(conv2d(x, ones({2, 4, 3})), ValueError);
  CHECK_THROWS_AS(conv2d(x, ones({2, 4, 7, 3})), ValueError);
  CHECK_THROWS_AS(conv2d(x, w.to(kFloat64)), TypeError);
  CHECK_THROWS_AS(conv2d(x, w, ones({3})), ValueError);
  CHECK_THROWS_AS(conv2d(x, w, std::nullopt, {1, 1, 1}), ValueError);
  CHECK_THROWS_AS(conv2d(x, w, std::nullopt, 0), ValueError);
  CHECK_THROWS_AS(conv2d(x, w, std::nullopt, 1, -1), ValueError);
  CHECK_THROWS_AS(conv2d(x, w, std::nullopt, 1, 0, 1, 3), ValueError);
  CHECK_THROWS_AS(conv_transpose2d(x, ones({4, 1, 3, 3}), std::nullopt, 1, 0, 1), ValueError);
}

}  // namespace
