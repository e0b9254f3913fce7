#include "core/ops/view/copy.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

// Copies one element after another.
template <class T>
std::vector<T> one_by_one(const Tensor& t) {
  std::vector<T> result;
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t offset = 0, rest = i;
    for (int64_t d = t.dim(); d-- > 0;) {
      offset += rest % t.size(d) * t.stride(d);
      rest /= t.size(d);
    }
    result.push_back(static_cast<const T*>(t.data_ptr())[offset]);
  }
  return result;
}

template <class T>
void check_layouts(ScalarType dtype) {
  // Transposed planes with whole and partial tiles, with planes before, between and after; slices, repeats, holes.
  const Tensor x = arange(3 * 70 * 5 * 41).remainder(120).to(dtype).view({3, 70, 5, 41});
  const Tensor inputs[] = {x,
                           x.permute({0, 3, 2, 1}),
                           x.permute({3, 2, 1, 0}),
                           x.permute({2, 0, 3, 1}),
                           x[0].transpose(0, 2),
                           x.select(2, 1).transpose(1, 2),
                           x.slice(3, 1, 40, 3).transpose(1, 3),
                           x.slice(1, 0, 1).expand({3, 70, 5, 41}),
                           x.select(3, 0),
                           x[0][0][0].unsqueeze(0).expand({50, 41}),
                           x[0][0][0].unsqueeze(1).expand({41, 50})};
  for (const Tensor& input : inputs) {
    const Tensor copy = input.clone(MemoryFormat::Contiguous);
    CHECK(one_by_one<T>(copy) == one_by_one<T>(input));
    const Tensor holes = zeros(input.sizes(), dtype).repeat_interleave(2, -1).slice(-1, 0, {}, 2);
    holes.copy_(input);
    CHECK(one_by_one<T>(holes) == one_by_one<T>(input));
  }
}

TEST_CASE("copies of what has gaps keep the order of its dimensions") {
  const Tensor whole = arange(0, 48).view({4, 3, 4}), x = whole.slice(0, 0, 4, 2).transpose(0, 2);  // (4, 3, 2)
  REQUIRE_FALSE(x.is_non_overlapping_and_dense());
  for (const Tensor& each : {x.clone(), empty_like(x), x.to(kFloat64), x + 1})
    CHECK(each.strides() == IntArrayRef({1, 4, 12}));
  CHECK(equal(x.clone(), x));
  CHECK(equal(x.flip({0}), x.contiguous().flip({0})));
  CHECK(x.narrow(0, 0, 1).expand({5, 3, 2}).clone().strides() == (x.narrow(0, 0, 1).expand({5, 3, 2}) + 1).strides());
}

TEST_CASE("copies of all layouts equal a plain loop") {
  check_layouts<uint8_t>(kUInt8);
  check_layouts<int16_t>(kInt16);
  check_layouts<float>(kFloat32);
  check_layouts<double>(kFloat64);
  const Tensor z = view_as_complex(counting({40, 60, 2}));
  CHECK(values(view_as_real(z.t().contiguous())) == values(view_as_real(z).transpose(0, 1)));
}

TEST_CASE("conversions: every pair of dtypes on small integers") {
  const ScalarType dtypes[] = {kBool,    kUInt8,    kInt8,    kInt16,   kInt32,     kInt64,
                               kFloat16, kBFloat16, kFloat32, kFloat64, kComplex64, kComplex128};
  for (const ScalarType from : dtypes) {
    for (const ScalarType to : dtypes) {
      const Tensor x = arange(35).remainder(2).to(from);
      CHECK(values(real(x.to(to))) == values(arange(35).remainder(2)));
      CHECK(values(real(x.view({5, 7}).t().to(to))) == values(arange(35).view({5, 7}).t().remainder(2)));
    }
  }
}

TEST_CASE("conversions round, cut and saturate as PyTorch's do") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(values(tensor({-1.9, 1.9}).to(kInt64)) == Doubles{-1, 1});
  CHECK(values(tensor({0.0, 0.1, nan, -3.0}).to(kBool)) == Doubles{0, 1, 1, 1});
  CHECK(values(tensor({300, -1}).to(kUInt8)) == Doubles{44, 255});
  CHECK(values(tensor({complex<double>(0, 2), complex<double>(3, 0)}).to(kBool)) == Doubles{1, 1});
  // Long enough for the vector loops and their tails: ties go to even, large numbers to infinity, nan stays nan.
  Doubles exact, half, bfloat;
  for (int i = 0; i < 21; ++i) {
    for (double value : {1 + i / 4096.0, 65519.0, 65520.0, -70000.0, 1e-8, 3e38, inf}) exact.push_back(value);
  }
  const Tensor x = tensor(exact, kFloat32);
  for (const ScalarType dtype : {kFloat16, kBFloat16}) {
    const Doubles rounded = values(x.to(dtype));
    for (size_t i = 0; i < exact.size(); ++i) {
      const auto number = static_cast<float>(exact[i]);
      CHECK(rounded[i] == (dtype == kFloat16 ? static_cast<double>(static_cast<float>(Half(number)))
                                             : static_cast<double>(static_cast<float>(BFloat16(number)))));
    }
    CHECK(values(x.to(dtype).to(kFloat32)) == rounded);
    CHECK(std::isnan(tensor({nan}).to(dtype).item<double>()));
    for (double value : values(full({100}, nan, kFloat32).to(dtype))) CHECK(std::isnan(value));
  }
  CHECK(values(tensor({65519.0, 65520.0}).to(kFloat16)) == Doubles{65504, inf});
}

TEST_CASE("conversions between every two dtypes: blocks and their ends, strided and not") {
  const auto expected = [](double value, ScalarType dtype) {
    if (dtype == kBool) return value != 0 ? 1.0 : 0.0;
    const bool wraps = is_integral(dtype, false) && !traits_of(dtype).is_signed && value < 0;
    return wraps ? value + std::ldexp(1, 8 * static_cast<int>(element_size(dtype))) : value;
  };
  for (int from = 0; from < kNumScalarTypes; ++from) {
    for (int to = 0; to < kNumScalarTypes; ++to) {
      const auto source = static_cast<ScalarType>(from), target = static_cast<ScalarType>(to);
      CAPTURE(name(source));
      CAPTURE(name(target));
      const bool negative = traits_of(source).is_signed && source != kBool && !is_floating_point(source);
      for (const int64_t n : {1, 7, 513, 1100}) {
        const Tensor numbers = (counting({2 * n}).remainder(5) - (negative ? 2 : 0)).to(source);
        const Doubles exact = values(numbers);
        const Doubles dense = values(numbers.to(target)), strided = values(numbers.slice(0, 0, 2 * n, 2).to(target));
        bool equal = true;
        for (size_t i = 0; i < exact.size(); ++i) equal = equal && dense[i] == expected(exact[i], target);
        for (size_t i = 0; i < strided.size(); ++i) equal = equal && strided[i] == dense[2 * i];
        CHECK(equal);
        const Tensor places = zeros({2 * n}, target);
        places.slice(0, 0, 2 * n, 2).copy_(numbers.slice(0, 0, n));
        CHECK(values(places.slice(0, 0, 2 * n, 2)) == Doubles(dense.begin(), dense.begin() + n));
        CHECK(values(places.slice(0, 1, 2 * n, 2)) == Doubles(static_cast<size_t>(n), 0));
      }
    }
  }
}

TEST_CASE("conversions of what a 16-bit number does not hold, or only it holds") {
  const Doubles numbers = {65519, 65520, -1e9, 3e-8, 1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-30, -0.0, INFINITY};
  for (const int64_t times : {1, 100}) {
    const Tensor wide = tensor(numbers, kFloat64).repeat({times});
    CHECK(equal(wide.to(kFloat16), wide.to(kFloat32).to(kFloat16)));  // rounded twice, as PyTorch does it
    CHECK(equal(wide.to(kBFloat16), wide.to(kFloat32).to(kBFloat16)));
    for (const ScalarType half : {kFloat16, kBFloat16}) {
      const Tensor rounded = wide.to(half);
      CHECK(equal(rounded.to(kFloat64), rounded.to(kFloat32).to(kFloat64)));
      CHECK(equal(rounded.to(kBool), rounded != 0));
      CHECK(equal(full({513}, NAN, half).to(kBool), ones({513}, kBool)));
      CHECK(equal(tensor({int64_t{65519}, int64_t{-65520}}, kInt64).repeat({300}).to(half),
                  tensor({65519.0, -65520.0}, kFloat32).repeat({300}).to(half)));
    }
    const Tensor large = tensor({INT64_MAX, INT64_MIN, int64_t{1} << 53}, kInt64).repeat({times});
    CHECK(values(large.to(kUInt8))[1] == 0);
    CHECK(values(large.to(kInt32))[0] == -1);
    CHECK(values(large.to(kBool))[2] == 1);
  }
}

TEST_CASE("copy_, clone, contiguous and to") {
  Tensor x = zeros({2, 3}, kFloat64);
  x.copy_(tensor({1, 2, 3}));
  CHECK(values(x) == Doubles{1, 2, 3, 1, 2, 3});
  x.slice(1, 1).copy_(x.slice(1, 0, 2));  // overlapping: read before written
  CHECK(values(x) == Doubles{1, 1, 2, 1, 1, 2});
  CHECK_THROWS_AS(x.copy_(zeros({3, 3})), ValueError);
  CHECK_THROWS_AS(zeros({1}).expand({3}).copy_(zeros({3})), ValueError);
  CHECK(x.t().clone().strides() == IntArrayRef({1, 3}));
  CHECK(x.t().contiguous().strides() == IntArrayRef({2, 1}));
  CHECK(x.contiguous().is_same(x));
  CHECK(x.to(kFloat64).is_same(x));
  CHECK_FALSE(x.to(kFloat64, false, true).is_same(x));
  CHECK(x.to(tensor({1})).scalar_type() == kInt64);
  const Tensor images = zeros({2, 3, 4, 5});
  CHECK(images.to(kFloat64, false, false, MemoryFormat::ChannelsLast).stride(1) == 1);
  CHECK(ops::to_dtype(images, kFloat32, false, false, std::nullopt).is_same(images));
  CHECK(ops::to_dtype_layout(images, {}, {}, Device(kMeta), {}, false, false, {}).is_meta());
  CHECK(x.to(Device(kMeta)).sizes() == x.sizes());
  CHECK(x.to(kMeta).device() == Device(kMeta));
}

TEST_CASE("derivatives of copies") {
  check_gradients([](const Tensors& x) { return Tensors{x[0].t().clone() * x[0].t()}; }, {leaf({2, 3})});
  check_gradients([](const Tensors& x) { return Tensors{x[0].to(kComplex128).to(kFloat64) * x[0]}; }, {leaf({2, 2})});
  check_gradients(
      [](const Tensors& x) {
        const Tensor y = x[0] * 1;
        y.t().copy_(x[1]);
        return Tensors{y * y};
      },
      {leaf({3, 2}), leaf({3}, 1)});
}

}  // namespace
