#include "core/ops/nn/pool.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

struct PoolCase {
  Longs sizes, kernel, stride, padding, dilation;
  bool ceil_mode;
};

// (N, C, H, W), windows of two dimensions.
const PoolCase kPoolCases[] = {
    {{2, 3, 6, 7}, {2, 2}, {}, {0, 0}, {1, 1}, false},     {{2, 2, 7, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false},
    {{1, 2, 6, 6}, {3, 3}, {}, {1, 1}, {1, 1}, true},      {{2, 2, 6, 6}, {3, 2}, {}, {0, 0}, {1, 2}, true},
    {{2, 1, 8, 5}, {3, 1}, {1, 3}, {1, 0}, {2, 1}, false}, {{1, 3, 9, 9}, {4, 4}, {2, 3}, {1, 1}, {1, 1}, true},
    {{0, 3, 5, 5}, {2, 2}, {}, {0, 0}, {1, 1}, false},     {{2, 3, 20, 24}, {6, 7}, {5, 4}, {2, 3}, {1, 2}, true},
    {{1, 1, 1, 1}, {1, 1}, {}, {0, 0}, {1, 1}, false},
};

int64_t out_size(int64_t in, int64_t k, int64_t s, int64_t p, int64_t d, bool ceil_mode) {
  const double span = static_cast<double>(in + 2 * p - d * (k - 1) - 1) / static_cast<double>(s);
  auto size = static_cast<int64_t>(ceil_mode ? std::ceil(span) : std::floor(span)) + 1;
  if (ceil_mode && (size - 1) * s >= in + p) --size;
  return size;
}

// Calls body(plane, output position, input position) for every element of every window, and at(plane, output) first.
template <class Begin, class Body>
void walk(const PoolCase& c, const Begin& begin, const Body& body) {
  const Longs& s = c.stride.empty() ? c.kernel : c.stride;
  const int64_t H = c.sizes[2], W = c.sizes[3];
  const int64_t OH = out_size(H, c.kernel[0], s[0], c.padding[0], c.dilation[0], c.ceil_mode);
  const int64_t OW = out_size(W, c.kernel[1], s[1], c.padding[1], c.dilation[1], c.ceil_mode);
  for (int64_t plane = 0; plane < c.sizes[0] * c.sizes[1]; ++plane) {
    for (int64_t oh = 0; oh < OH; ++oh) {
      for (int64_t ow = 0; ow < OW; ++ow) {
        begin();
        for (int64_t kh = 0; kh < c.kernel[0]; ++kh) {
          for (int64_t kw = 0; kw < c.kernel[1]; ++kw) {
            const int64_t h = oh * s[0] - c.padding[0] + kh * c.dilation[0];
            const int64_t w = ow * s[1] - c.padding[1] + kw * c.dilation[1];
            const bool inside = h >= 0 && h < H && w >= 0 && w < W;
            const bool padded = h < H + c.padding[0] && w < W + c.padding[1];
            body(inside ? plane * H * W + h * W + w : -1, inside ? h * W + w : -1, padded);
          }
        }
      }
    }
  }
}

// Scrambled values without ties.
Tensor scrambled(IntArrayRef sizes, ScalarType dtype = kFloat64) {
  const Tensor t = zeros(sizes, kFloat64);
  const int64_t n = t.numel();
  for (int64_t i = 0; i < n; ++i) t.data_ptr<double>()[i] = static_cast<double>(i * 37 % 101) - 50 + 0.25 * (i / 101);
  return t.to(dtype);
}

TEST_CASE("max_pool2d: every window's largest element and its place, in every layout") {
  for (const PoolCase& c : kPoolCases) {
    const Tensor x = scrambled(c.sizes);
    const Doubles in = values(x);
    Doubles largest, where;
    walk(
        c,
        [&] {
          largest.push_back(-std::numeric_limits<double>::infinity());
          where.push_back(-1);
        },
        [&](int64_t at, int64_t in_plane, bool) {
          if (at < 0 || in[at] <= largest.back()) return;
          largest.back() = in[at];
          where.back() = static_cast<double>(in_plane);
        });
    const auto check = [&](const Tensor& input) {
      const auto [out, indices] =
          max_pool2d_with_indices(input, c.kernel, c.stride, c.padding, c.dilation, c.ceil_mode);
      CHECK(values(out) == largest);
      CHECK(values(indices) == where);
      CHECK(out.suggest_memory_format() == input.suggest_memory_format());
      CHECK(out.scalar_type() == input.scalar_type());
    };
    check(x);
    check(x.to(kFloat32));
    check(x.contiguous(MemoryFormat::ChannelsLast));
    check(x.to(kFloat32).contiguous(MemoryFormat::ChannelsLast));
    check(x.transpose(2, 3).contiguous().transpose(2, 3));
    if (x.size(0) == 0) continue;
    const Tensor single = max_pool2d(x.select(0, 0), c.kernel, c.stride, c.padding, c.dilation, c.ceil_mode);
    CHECK(values(single) == Doubles(largest.begin(), largest.begin() + single.numel()));
  }
  const Tensor whole = scrambled({1, 2, 4, 4}, kInt32);
  for (const ScalarType dtype : {kUInt8, kInt16, kInt64, kFloat16, kBFloat16}) {
    const Tensor positive = (whole + 50).to(dtype);
    CHECK(values(max_pool2d(positive, 2)) == values(max_pool2d(whole + 50, 2)));
  }
}

TEST_CASE("max_pool: NaN wins, minus infinity has a place") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const Tensor x = tensor({1., nan, 2., 3., -inf, -inf, -inf, -inf}).to(kFloat32).view({1, 1, 2, 4});
  const auto [out, indices] = max_pool2d_with_indices(x, {1, 2});
  const Doubles got = values(out);
  CHECK(std::isnan(got[0]));
  CHECK(Doubles(got.begin() + 1, got.end()) == Doubles{3, -inf, -inf});
  CHECK(values(indices) == Doubles{1, 3, 4, 6});
}

// Kernels divide the work by layout: a row-major window of 32 elements or more may be shared.
TEST_CASE("pooling: windows of many elements, with equal ones, NaN and infinities, in every layout") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16}) {
    CAPTURE(dtype);
    const Tensor x = scrambled({2, 3, 8, 19, 41}).remainder(7).to(dtype),
                 last = x.contiguous(MemoryFormat::ChannelsLast3d);
    Tensor rare = x.clone();
    rare[0].fill_(-inf);
    rare[1].flatten().index_fill_(0, tensor({5, 300, 301, 2000, 9000}), nan);
    for (const Tensor& rows : {x, rare}) {
      const Tensor columns = rows.contiguous(MemoryFormat::ChannelsLast3d);
      const auto same = [&](const PoolResult& a, const PoolResult& b) {
        CHECK(equal(std::get<1>(a), std::get<1>(b)));
        CHECK(allclose(std::get<0>(a), std::get<0>(b), 0, 0, true));
      };
      const auto windows = [](const Tensor& t) {
        return max_pool3d_with_indices(t, {3, 5, 4}, {2, 3, 4}, {1, 2, 2}, {1, 2, 1}, true);
      };
      same(windows(rows), windows(columns));
      same(adaptive_max_pool3d(rows, {3, 4, 5}), adaptive_max_pool3d(columns, {3, 4, 5}));
      same(max_pool3d_with_indices(rows, {1, 1, 32}), max_pool3d_with_indices(columns, {1, 1, 32}));
    }
    const double tolerance = dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-5 : 1e-2;
    const auto close = [&](const Tensor& a, const Tensor& b) { CHECK(allclose(a, b, tolerance, tolerance)); };
    close(adaptive_avg_pool3d(x, {3, 4, 5}), adaptive_avg_pool3d(last, {3, 4, 5}));
    for (const bool padding : {false, true}) {
      const auto mean = [&](const Tensor& t) { return avg_pool3d(t, {3, 5, 4}, {2, 3, 4}, {1, 2, 2}, true, padding); };
      close(mean(x), mean(last));
    }
  }
  // More windows than are shared, and windows that overlap too much: those of a part of the image are the same.
  const auto check_part = [](const Tensor& image, int64_t rows, IntArrayRef kernel, IntArrayRef stride) {
    const Tensor part = image.narrow(2, 0, rows), most = max_pool2d(part, kernel, stride);
    CHECK(equal(max_pool2d(image, kernel, stride).narrow(2, 0, most.size(2)), most));
    const Tensor mean = avg_pool2d(part, kernel, stride);
    CHECK(allclose(avg_pool2d(image, kernel, stride).narrow(2, 0, mean.size(2)), mean));
  };
  check_part(scrambled({1, 1, 2080, 2080}).remainder(97), 1000, {4, 8}, {4, 8});
  check_part(scrambled({1, 2, 40, 41}).remainder(97), 25, 6, 1);
}

TEST_CASE("pooling in one and three dimensions is that in two, repeated") {
  const Tensor line = scrambled({2, 3, 11});
  const auto [out, indices] = max_pool1d_with_indices(line, 3, 2, 1);
  const auto [flat, flat_indices] = max_pool2d_with_indices(line.view({2, 3, 1, 11}), {1, 3}, {1, 2}, {0, 1});
  CHECK(out.sizes() == IntArrayRef({2, 3, 6}));
  CHECK(values(out) == values(flat));
  CHECK(values(indices) == values(flat_indices));
  CHECK(values(max_pool1d(line, 3, 2, 1)) == values(out));
  CHECK(values(avg_pool1d(line, 4, 3, 1)) == values(avg_pool2d(line.view({2, 3, 1, 11}), {1, 4}, {1, 3}, {0, 1})));
  CHECK(values(max_pool1d(line.select(0, 1), 3)) == values(max_pool1d(line, 3).select(0, 1)));
  // The largest of a box is the largest over depth of the largest of its slices.
  const Tensor box = scrambled({2, 2, 5, 6, 7});
  const Tensor slices = max_pool2d(box.view({20, 1, 6, 7}), {2, 3}, {2, 2}, {1, 1});
  const Tensor columns = slices.view({4, 1, 5, slices.size(2) * slices.size(3)});
  const Tensor expected = max_pool2d(columns, {3, 1}, {2, 1}, {1, 0});
  const Tensor got = max_pool3d(box, {3, 2, 3}, {2, 2, 2}, {1, 1, 1});
  CHECK(got.sizes() == IntArrayRef({2, 2, 3, slices.size(2), slices.size(3)}));
  CHECK(values(got) == values(expected));
  CHECK(values(max_pool3d(box.contiguous(MemoryFormat::ChannelsLast3d), {3, 2, 3}, {2, 2, 2}, {1, 1, 1})) ==
        values(got));
}

TEST_CASE("avg_pool2d: padding counted or not, and a divisor of one's own") {
  for (const PoolCase& c : kPoolCases) {
    if (c.dilation != Longs{1, 1}) continue;
    const Tensor x = scrambled(c.sizes);
    const Doubles in = values(x);
    for (const bool count_include_pad : {true, false}) {
      for (const int64_t divisor : {0, 3, -2}) {
        Doubles sums, counts;
        walk(
            c,
            [&] {
              sums.push_back(0);
              counts.push_back(0);
            },
            [&](int64_t at, int64_t, bool padded) {
              if (at >= 0) sums.back() += in[at];
              counts.back() += count_include_pad ? padded : at >= 0;
            });
        const std::optional<int64_t> given = divisor ? std::optional(divisor) : std::nullopt;
        for (const Tensor& input :
             {x, x.contiguous(MemoryFormat::ChannelsLast), x.transpose(0, 3).clone().transpose(0, 3)}) {
          const Doubles got =
              values(avg_pool2d(input, c.kernel, c.stride, c.padding, c.ceil_mode, count_include_pad, given));
          REQUIRE(got.size() == sums.size());
          for (size_t i = 0; i < got.size(); ++i) {
            CHECK(got[i] == doctest::Approx(sums[i] / (divisor ? static_cast<double>(divisor) : counts[i])));
          }
        }
      }
    }
  }
  // Integers are divided as C++ divides them.
  const Tensor whole = tensor({1, 2, 3, 5}).view({1, 1, 2, 2});
  CHECK(values(avg_pool2d(whole, 2)) == Doubles{2});
  CHECK(values(avg_pool2d(-whole, 2)) == Doubles{-2});
  CHECK(values(avg_pool2d(ones({1, 1, 2, 2}, kBFloat16), 2)) == Doubles{1});
  CHECK(values(avg_pool3d(ones({1, 1, 2, 2, 2}), 2)) == Doubles{1});
}

TEST_CASE("adaptive pooling: windows from floor(o in / out) to ceil((o + 1) in / out)") {
  const Tensor line = counting({1, 1, 7});
  CHECK(values(adaptive_avg_pool1d(line, 3)) == Doubles{1, 3, 5});
  CHECK(values(adaptive_avg_pool1d(line, 1)) == Doubles{3});
  CHECK(values(adaptive_avg_pool1d(counting({1, 1, 3}), 5)) == Doubles{0, 0.5, 1, 1.5, 2});
  const auto [largest, places] = adaptive_max_pool1d(line, 3);
  CHECK(values(largest) == Doubles{2, 4, 6});
  CHECK(values(places) == Doubles{2, 4, 6});
  const Tensor x = scrambled({2, 3, 5, 7});
  for (const Tensor& input : {x, x.contiguous(MemoryFormat::ChannelsLast), x.to(kFloat32)}) {
    // In two dimensions the mean is that of the means along each, as all windows of an axis are rectangles.
    const Doubles rows = values(adaptive_avg_pool2d(input, {5, 3}));
    const Tensor reference = adaptive_avg_pool1d(x.view({2, 15, 7}), 3);
    const Doubles expected = values(reference);
    REQUIRE(rows.size() == expected.size());
    for (size_t i = 0; i < rows.size(); ++i) CHECK(rows[i] == doctest::Approx(expected[i]));
    const auto [out, indices] = adaptive_max_pool2d(input, {2, 2});
    CHECK(values(out) == values(x.reshape({2, 3, 35}).gather(2, indices.contiguous().view({2, 3, 4}))));
  }
  CHECK(values(adaptive_avg_pool3d(ones({2, 3, 4, 5, 6}), {3, 2, 4})) == Doubles(2 * 3 * 24, 1.0));
  // A window that is a whole plane is reduced by other kernels.
  for (const bool volume : {false, true}) {
    const Tensor planes = scrambled(volume ? DimVector{2, 5, 3, 4, 6} : DimVector{2, 5, 7, 9});
    const MemoryFormat inside = volume ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
    for (const Tensor& x : {planes, planes.contiguous(inside), planes[1].unsqueeze(0), planes[0]}) {
      const Tensor rows = x.flatten(volume ? -3 : -2);
      const Tensor mean = volume ? adaptive_avg_pool3d(x, 1) : adaptive_avg_pool2d(x, 1);
      const auto [most, where] = volume ? adaptive_max_pool3d(x, 1) : adaptive_max_pool2d(x, 1);
      const auto [expected, expected_where] = rows.max(-1);
      CHECK(mean.dim() == x.dim());
      CHECK(mean.reshape(rows.sizes().slice(0, rows.sizes().size() - 1)).allclose(rows.mean(-1)));
      CHECK(values(most.flatten()) == values(expected.flatten()));
      CHECK(values(where.flatten()) == values(expected_where.flatten()));
    }
  }
  CHECK(values(adaptive_avg_pool2d(counting({1, 2, 3}).to(kInt64), 1)) == Doubles{2});
  CHECK(std::get<0>(adaptive_max_pool3d(scrambled({3, 4, 5, 6}), 2)).sizes() == IntArrayRef({3, 2, 2, 2}));
  CHECK(adaptive_avg_pool2d(zeros({0, 3, 4, 4}), 2).sizes() == IntArrayRef({0, 3, 2, 2}));
  const Tensor nothing = zeros({2, 0, 4}).requires_grad_();
  const Tensor means = adaptive_avg_pool1d(nothing, 3);
  CHECK(means.sizes() == IntArrayRef({2, 0, 3}));
  means.sum().backward();
  CHECK(nothing.grad().sizes() == nothing.sizes());
  CHECK_THROWS_AS(adaptive_max_pool1d(nothing, 3), ValueError);
  CHECK(adaptive_avg_pool2d(zeros({1, 3, 4, 4}), {0, 2}).sizes() == IntArrayRef({1, 3, 0, 2}));
}

TEST_CASE("max_unpool puts values back where they came from") {
  const Tensor x = scrambled({2, 3, 4, 6});
  const auto [out, indices] = max_pool2d_with_indices(x, 2);
  const Tensor back = max_unpool2d(out, indices, {4, 6});
  CHECK(back.sizes() == x.sizes());
  CHECK(values(std::get<0>(max_pool2d_with_indices(back.abs(), 2))) == values(out.abs()));
  CHECK(back.ne(0).sum().item<int64_t>() <= out.numel());
  const Tensor last = max_unpool2d(out.contiguous(MemoryFormat::ChannelsLast), indices, {4, 6});
  CHECK(last.is_contiguous(MemoryFormat::ChannelsLast));
  CHECK(equal(last, back));
  check_gradients(
      [at = indices](const Tensors& in) {
        return Tensors{max_unpool2d(in[0], at, {4, 6})};
      },
      {leaf({2, 3, 2, 3})});
  const auto [box, places] = max_pool3d_with_indices(scrambled({1, 2, 4, 4, 4}), 2);
  CHECK(max_unpool3d(box, places, {4, 4, 4}, {2, 2, 2}, {0, 0, 0}).sizes() == IntArrayRef({1, 2, 4, 4, 4}));
  check_gradients(
      [at = places](const Tensors& in) {
        return Tensors{max_unpool3d(in[0], at, {4, 4, 4}, {2, 2, 2}, {0, 0, 0})};
      },
      {leaf({1, 2, 2, 2, 2})});
  CHECK_THROWS_AS(max_unpool2d(out, indices, {2, 2}), IndexError);
  CHECK_THROWS_AS(max_unpool2d(out, indices, {4}), ValueError);
  CHECK_THROWS_AS(max_unpool2d(out, places, {4, 6}), ValueError);
}

TEST_CASE("pooling: first and second derivatives") {
  const Tensor x = scrambled({2, 2, 5, 4}).requires_grad_();
  const Tensor channels_last = scrambled({2, 2, 5, 4}).contiguous(MemoryFormat::ChannelsLast).requires_grad_();
  const Tensor strided = scrambled({4, 5, 2, 2}).transpose(0, 3).transpose(1, 2).requires_grad_();
  for (const Tensor& input : {x, channels_last, strided}) {
    check_gradients([](const Tensors& in) { return Tensors{max_pool2d(in[0], {3, 2}, {2, 1}, {1, 1})}; }, {input});
    check_gradients([](const Tensors& in) { return Tensors{avg_pool2d(in[0], 3, 2, 1, true, false)}; }, {input});
    check_gradients([](const Tensors& in) { return Tensors{avg_pool2d(in[0], 3, 1, 1, false, true, 5)}; }, {input});
    check_gradients([](const Tensors& in) { return Tensors{adaptive_avg_pool2d(in[0], {3, 2})}; }, {input});
    check_gradients(
        [](const Tensors& in) {
          return Tensors{std::get<0>(adaptive_max_pool2d(in[0], {3, 3}))};
        },
        {input});
  }
  const Tensor line = scrambled({3, 7}).requires_grad_();
  check_gradients([](const Tensors& in) { return Tensors{max_pool1d(in[0], 3, 2, 1)}; }, {line});
  check_gradients([](const Tensors& in) { return Tensors{avg_pool1d(in[0], 3, 2, 1)}; }, {line});
  check_gradients([](const Tensors& in) { return Tensors{adaptive_avg_pool1d(in[0], 4)}; }, {line});
  const Tensor box = scrambled({1, 2, 3, 4, 3}).requires_grad_();
  check_gradients([](const Tensors& in) { return Tensors{max_pool3d(in[0], 2, 1, 1)}; }, {box});
  check_gradients([](const Tensors& in) { return Tensors{avg_pool3d(in[0], 2, 1, 1)}; }, {box});
  check_gradients([](const Tensors& in) { return Tensors{adaptive_avg_pool3d(in[0], {2, 3, 2})}; }, {box});
  check_gradients([](const Tensors& in) { return Tensors{std::get<0>(adaptive_max_pool3d(in[0], 2))}; }, {box});
}

TEST_CASE("pooling: 16-bit gradients are summed in 32 bits") {
  const Tensor x = zeros({1, 1, 1, 257}, kBFloat16).requires_grad_();
  adaptive_avg_pool2d(x, {1, 1}).backward();
  CHECK(values(x.grad()).front() == doctest::Approx(1.0 / 257).epsilon(0.01));
  const Tensor wide = zeros({1, 1, 40, 40}, kBFloat16).requires_grad_();
  avg_pool2d(wide, {20, 20}, {1, 1}, 0, false, true, 1).sum().backward();
  CHECK(values(wide.grad())[20 * 40 + 20] == 400);
}

// A kernel may take neighbouring channels or positions of a row at once, where they fill 16 bytes.
TEST_CASE("max pooling of many channels and of long rows, in every layout and dtype") {
  const PoolCase cases[] = {
      {{2, 16, 7, 16}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false}, {{2, 8, 9, 16}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false},
      {{1, 16, 8, 24}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false}, {{2, 16, 9, 8}, {2, 3}, {3, 4}, {1, 1}, {1, 1}, true},
      {{1, 8, 8, 32}, {3, 2}, {1, 5}, {0, 1}, {2, 3}, false},  {{2, 12, 5, 20}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, true},
  };
  for (const PoolCase& c : cases) {
    for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
      manual_seed(3);
      const Tensor numbers = randint(-8, 9, c.sizes).to(dtype);
      for (const MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
        const Tensor x = numbers.contiguous(format).detach().requires_grad_();
        const auto [out, where] = max_pool2d_with_indices(x, c.kernel, c.stride, c.padding, c.dilation, c.ceil_mode);
        Doubles largest, expected(static_cast<size_t>(x.numel()));
        Longs first;
        const Doubles in = values(numbers);
        walk(
            c,
            [&] {
              largest.push_back(-INFINITY);
              first.push_back(-1);
            },
            [&](int64_t at, int64_t position, bool) {
              if (at < 0 || in[static_cast<size_t>(at)] <= largest.back()) return;
              largest.back() = in[static_cast<size_t>(at)];
              first.back() = position;
            });
        CHECK(values(out) == largest);
        CHECK(values(where) == Doubles(first.begin(), first.end()));
        const Tensor grad = randint(-4, 5, out.sizes()).to(dtype).contiguous(format);
        out.backward(grad);
        const Doubles each = values(grad);
        const size_t windows = static_cast<size_t>(out.size(2) * out.size(3)),
                     plane = static_cast<size_t>(x.size(2) * x.size(3));
        for (size_t i = 0; i < each.size(); ++i)
          expected[i / windows * plane + static_cast<size_t>(first[i])] += each[i];
        CHECK(values(x.grad()) == expected);
      }
    }
  }
  // Sizes that both layouts take in vectors: a wrong index is found in each lane.
  const Tensor x = zeros({1, 8, 4, 16});
  for (const int64_t lane : {0, 3, 7}) {
    Tensor indices = zeros({1, 8, 2, 8}, kInt64);
    indices.select(1, lane).fill_(64);
    for (const MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
      const auto backward = [&] {
        return ops::max_pool2d_with_indices_backward(ones({1, 8, 2, 8}).contiguous(format), x.contiguous(format), 2, 2,
                                                     0, 1, false, indices.contiguous(format))
            .sum()
            .item<float>();
      };
      CHECK_THROWS_AS(backward(), IndexError);
    }
  }
}

TEST_CASE("average pooling: gradients of many channels, in every layout and dtype") {
  const Tensor image = scrambled({2, 70, 6, 7}), grad = scrambled({2, 70, 3, 2}) / 8;
  const Tensor x = image.clone().requires_grad_();
  const Tensor expected = autograd::grad({adaptive_avg_pool2d(x, {3, 2})}, {x}, {grad})[0];
  for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16}) {
    CAPTURE(dtype);
    for (const MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
      const Tensor other = image.to(dtype).contiguous(format).requires_grad_();
      const Tensor y = adaptive_avg_pool2d(other, {3, 2});
      const Tensor got = autograd::grad({y}, {other}, {grad.to(dtype).contiguous(format)})[0];
      const double size = expected.abs().max().item<double>();
      CHECK((got.to(kFloat64) - expected).abs().max().item<double>() < size * (dtype == kFloat64   ? 1e-14
                                                                               : dtype == kFloat32 ? 1e-6
                                                                                                   : 2e-2));
    }
  }
}

TEST_CASE("pooling: of the backward passes, the input has a gradient, which is zero") {
  const TensorOptions leaf = TensorOptions(kFloat64).requires_grad(true);
  const Tensor x = ones({1, 2, 4, 4}, leaf), volume = ones({1, 2, 4, 4, 4}, leaf);
  const Tensor g = ones({1, 2, 2, 2}, kFloat64), deep = ones({1, 2, 2, 2, 2}, kFloat64);
  const Tensor at = zeros({1, 2, 2, 2}, kInt64), deep_at = zeros({1, 2, 2, 2, 2}, kInt64);
  const std::pair<Tensor, Tensor> cases[] = {
      {ops::max_pool2d_with_indices_backward(g, x, 2, 2, 0, 1, false, at), x},
      {ops::max_pool3d_with_indices_backward(deep, volume, 2, 2, 0, 1, false, deep_at), volume},
      {ops::adaptive_max_pool2d_backward(g, x, at), x},
      {ops::adaptive_max_pool3d_backward(deep, volume, deep_at), volume},
      {ops::avg_pool2d_backward(g, x, 2, 2, 0, false, true, std::nullopt), x},
      {ops::avg_pool3d_backward(deep, volume, 2, 2, 0, false, true, std::nullopt), volume},
      {ops::_adaptive_avg_pool2d_backward(g, x), x},
      {ops::_adaptive_avg_pool3d_backward(deep, volume), volume},
      {ops::reflection_pad2d_backward(ones({1, 2, 6, 6}, kFloat64), x, {1, 1, 1, 1}), x},
      {ops::replication_pad2d_backward(ones({1, 2, 6, 6}, kFloat64), x, {1, 1, 1, 1}), x}};
  for (const auto& [result, input] : cases) {
    CAPTURE(result.grad_fn_name());
    const Tensor grad = autograd::grad({result.sum()}, {input})[0];
    CHECK(grad.equal(zeros_like(input)));
  }
}

TEST_CASE("pooling: meta tensors have shapes only") {
  const Tensor meta = empty({2, 3, 9, 9}, TensorOptions(kMeta).dtype(kFloat32));
  const auto [out, indices] = max_pool2d_with_indices(meta, 3, 2);
  CHECK(out.is_meta());
  CHECK(out.sizes() == IntArrayRef({2, 3, 4, 4}));
  CHECK(indices.scalar_type() == kInt64);
  CHECK(avg_pool2d(meta, 2).sizes() == IntArrayRef({2, 3, 4, 4}));
  CHECK(adaptive_avg_pool2d(meta, {5, 1}).sizes() == IntArrayRef({2, 3, 5, 1}));
}

TEST_CASE("pooling: an empty result is ready at once, however many windows it has") {
  constexpr int64_t huge = int64_t{1} << 50;
  const Tensor x = ones({1, 3, 4}, requires_grad());
  for (const auto& pool : {+[](const Tensor& t) {
                             return adaptive_avg_pool2d(t, {huge, 0});
                           },
                           +[](const Tensor& t) {
                             return std::get<0>(ops::adaptive_max_pool2d(t, {huge, 0}));
                           }}) {
    const Tensor out = pool(x);
    CHECK(out.sizes() == IntArrayRef({1, huge, 0}));
    out.sum().backward();
    CHECK(x.grad().equal(zeros({1, 3, 4})));
  }
}

TEST_CASE("pooling: a window far larger than the input costs no more than the input") {
  constexpr int64_t huge = 2'000'000'000;
  const Tensor x = arange(12.0, TensorOptions(kFloat32)).view({1, 1, 3, 4});
  CHECK(avg_pool2d(x, huge, huge, huge / 2, false, false).item<float>() == doctest::Approx(5.5));
  CHECK(max_pool2d(x, huge, huge, huge / 2).item<float>() == 11);
  CHECK(max_pool2d(x, huge, 1, huge / 2).equal(full({1, 1, 4, 5}, 11.0)));
}

TEST_CASE("pooling: wrong arguments") {
  const Tensor x = zeros({1, 2, 4, 4});
  CHECK_THROWS_AS(max_pool2d(x, INT64_MAX, INT64_MAX, 0, 1, true), ValueError);
  CHECK_THROWS_AS(avg_pool2d(x, INT64_MAX, 1, INT64_MAX / 2), ValueError);
  CHECK_THROWS_AS(max_pool2d(zeros({4, 4}), 2), ValueError);
  CHECK_THROWS_AS(max_pool2d(zeros({1, 0, 4, 4}), 2), ValueError);
  CHECK_THROWS_AS(max_pool2d(x, {2, 2, 2}), ValueError);
  CHECK_THROWS_AS(max_pool2d(x, IntArrayRef()), ValueError);
  CHECK_THROWS_AS(max_pool2d(x, 0), ValueError);
  CHECK_THROWS_AS(max_pool2d(x, 2, -1), ValueError);
  CHECK_THROWS_AS(max_pool2d(x, 2, 2, 2), ValueError);
  CHECK_THROWS_AS(max_pool2d(x, 5), ValueError);
  CHECK_THROWS_AS(max_pool2d(x, 2, 2, 0, 0), ValueError);
  CHECK_THROWS_AS(max_pool2d(zeros({1, 1, 1, 1}), 2, 1, 1, 2), ValueError);  // a window of padding only
  CHECK_THROWS_AS(avg_pool2d(x, 2, 2, 0, false, true, 0), ValueError);
  CHECK_THROWS_AS(max_pool1d(x, 2), ValueError);
  CHECK_THROWS_AS(adaptive_avg_pool2d(x, {-1, 2}), ValueError);
  CHECK_THROWS_AS(max_pool2d(x.to(kBool), 2), NotImplementedError);
  CHECK_THROWS_AS(avg_pool2d(x.to(kInt32), 2), NotImplementedError);
  const auto backward = [&](const Tensor& indices) {
    return ops::max_pool2d_with_indices_backward(ones({1, 2, 2, 2}), x, 2, 2, 0, 1, false, indices);
  };
  CHECK_THROWS_AS(backward(full({1, 2, 2, 2}, 16, kInt64)), IndexError);
  CHECK_THROWS_AS(backward(full({1, 2, 2, 2}, -1, kInt64)), IndexError);
  CHECK_THROWS_AS(backward(zeros({1, 2, 2, 2})), TypeError);
  CHECK_THROWS_AS(backward(zeros({1, 2, 2, 3}, kInt64)), ValueError);
  CHECK_THROWS_WITH_AS(
      max_pool2d(x, 5),
      "max_pool2d: Output size is too small, since a window of 5 with dilation 1 and padding 0 does not fit "
      "an input of size 4",
      ValueError);
}

}  // namespace
