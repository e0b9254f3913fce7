#include <algorithm>
#include <cmath>

#include "backends/functors/entries.h"
#include "tests/ops/reduce/reduce_testing.h"

using namespace rush;
using namespace rush::testing;

namespace {

// Stable positions of sorted elements, NaN last (first when descending).
Longs naive_order(const Doubles& v, bool descending) {
  Longs order(v.size());
  for (size_t i = 0; i < v.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const double x = v[static_cast<size_t>(a)], y = v[static_cast<size_t>(b)];
    if (std::isnan(x) || std::isnan(y))
      return descending ? std::isnan(x) && !std::isnan(y) : !std::isnan(x) && std::isnan(y);
    return descending ? x > y : x < y;
  });
  return order;
}

// Numbers with ties, both zeros, infinities and NaN.
Tensor mixed(int64_t n, ScalarType dtype) {
  const Tensor t = zeros(n, kFloat64);
  const double special[] = {kNan, -0.0, 0.0, kInf, -kInf};
  for (int64_t i = 0; i < n; ++i) {
    const int64_t hash = i * 2654435761 % 97;
    t.data_ptr<double>()[i] =
        hash < 5 && is_floating_point(dtype) ? special[hash] : static_cast<double>(hash % 23) - 11;
  }
  return t.to(dtype);
}

}  // namespace

TEST_CASE("sort is right and stable for every dtype and length") {
  for (ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kInt16, kInt8, kBool}) {
    for (int64_t n : {0, 1, 2, 50, 128, 129, 1000, 1025, 4097, 8193}) {
      const Tensor x = mixed(n, dtype);
      const Doubles v = values(x);
      for (bool descending : {false, true}) {
        const Longs order = naive_order(v, descending);
        const auto [sorted, index] = x.sort(0, descending);
        CAPTURE(name(dtype));
        CAPTURE(n);
        CHECK(values(index) == Doubles(order.begin(), order.end()));
        Doubles expected;
        for (int64_t i : order) expected.push_back(v[static_cast<size_t>(i)]);
        CHECK(close(values(sorted), expected, 0));
      }
    }
  }
}

TEST_CASE("sort, argsort and msort along a dimension") {
  const Tensor x = waves({4, 300, 3});
  const auto [sorted, index] = x.sort(1);
  CHECK(values(x.gather(1, index)) == values(sorted));
  CHECK(values(x.argsort(int64_t(1))) == values(index));
  CHECK(values(x.argsort(true, -2)) == values(index));
  const Tensor first = sorted.narrow(1, 0, 299), second = sorted.narrow(1, 1, 299);
  CHECK(values((second - first).amin())[0] >= 0);
  CHECK(values(msort(x)) == values(std::get<0>(x.sort(0))));
  CHECK(values(std::get<0>(x.transpose(0, 1).sort(0))) == values(sorted.transpose(0, 1)));
  CHECK(std::get<1>(zeros({}).sort()).item<int64_t>() == 0);
  CHECK_THROWS_AS(x.sort(3), IndexError);
  CHECK_THROWS_AS(x.to(kComplex64).sort(), NotImplementedError);
}

TEST_CASE("every line is sorted by itself, of any length and stride, and ranks of it are taken") {
  for (ScalarType dtype : {kFloat64, kFloat32, kBFloat16, kInt64, kUInt8, kBool}) {
    for (int64_t n : {7, 128, 129, 1024, 1025, 4096, 4097, 8193}) {
      CAPTURE(name(dtype));
      CAPTURE(n);
      const Tensor x = mixed(4 * n, dtype).view({2, n, 2});
      const auto [up, up_at] = x.sort(1);
      const auto [down, down_at] = x.sort(1, true);
      const auto [top, top_at] = x.topk(6, 1);
      const auto [middle, middle_at] = x.median(1);
      const auto [number, number_at] = x.nanmedian(1);
      for (int64_t line = 0; line < 4; ++line) {
        const auto of = [&](const Tensor& t) { return values(t.select(-1, line % 2).select(0, line / 2)); };
        const Doubles v = of(x);
        const Longs order = naive_order(v, false), reversed = naive_order(v, true);
        CHECK(of(up_at) == Doubles(order.begin(), order.end()));
        CHECK(of(down_at) == Doubles(reversed.begin(), reversed.end()));
        const auto nans = std::count_if(v.begin(), v.end(), [](double each) { return std::isnan(each); });
        const int64_t numbers = n - nans;
        CHECK(of(middle_at) == Doubles{double(order[static_cast<size_t>(nans > 0 ? numbers : (n - 1) / 2)])});
        CHECK(of(number_at) == Doubles{double(order[static_cast<size_t>((numbers - 1) / 2)])});
      }
      CHECK(close(values(x.gather(1, up_at)), values(up), 0));
      CHECK(close(values(x.gather(1, down_at)), values(down), 0));
      CHECK(close(values(x.gather(1, top_at)), values(top), 0));
      CHECK(close(values(top), values(down.narrow(1, 0, 6)), 0));
      CHECK(close(values(middle), values(x.gather(1, middle_at.unsqueeze(1))), 0));
      CHECK(close(values(number), values(x.gather(1, number_at.unsqueeze(1))), 0));
      CHECK(close(values(std::get<0>(x.kthvalue(n / 3 + 1, 1))), values(up.select(1, n / 3)), 0));
    }
  }
}

TEST_CASE("topk is the head of a sort") {
  for (int64_t n : {5, 200, 300}) {
    for (int64_t k : {0, 1, 2, 5}) {
      const Tensor x = waves({3, n, 2});
      for (bool largest : {true, false}) {
        const auto [top, index] = x.topk(k, 1, largest);
        CHECK(values(top) == values(std::get<0>(x.sort(1, largest)).narrow(1, 0, k)));
        CHECK(values(x.gather(1, index)) == values(top));
      }
    }
  }
  // Lines that are too long for a block of a GPU, which takes them in chunks for k up to 128.
  for (const int64_t n : {4097, 8193, 60007}) {
    for (const int64_t k : {1, 50, 128, 129}) {
      for (const ScalarType dtype : {kFloat32, kFloat64}) {
        const Tensor x = waves({3, n}, dtype);
        for (const bool largest : {true, false}) {
          const auto [top, index] = x.topk(k, 1, largest);
          CHECK(top.equal(std::get<0>(x.sort(1, largest)).narrow(1, 0, k)));
          CHECK(x.gather(1, index).equal(top));
        }
      }
    }
  }
  CHECK(std::isnan(std::get<0>(tensor({1., kNan, 2.}).topk(1))[0].item<double>()));
  const auto [number, place] = scalar_tensor(-2).topk(0);  // of a number always the number
  CHECK(number.item<double>() == -2);
  CHECK(place.item<int64_t>() == 0);
  CHECK_THROWS_AS(zeros({3}).topk(4), ValueError);
  CHECK_THROWS_AS(zeros({3}).topk(-1), ValueError);
  CHECK(std::get<0>(zeros({}).topk(1)).dim() == 0);
}

TEST_CASE("of equal elements, topk and kthvalue take those that PyTorch's selection leaves") {
  for (const int64_t n : {130, 1000, 6000}) {
    const Tensor x = ((arange(n, TensorOptions().dtype(kInt64).device(kCPU)) * 2654435761) % 97 % 13).to(kFloat32);
    std::vector<functors::Entry<uint32_t>> entries(static_cast<size_t>(n));
    for (const int64_t k : {1, 2, 15, 100}) {
      for (const bool largest : {true, false}) {
        functors::load_entries(x.const_data_ptr<float>(), 1, n, largest, entries.data());
        const int64_t unsorted = functors::select_first(entries.data(), n, k);
        std::sort(entries.begin(), entries.begin() + unsorted);
        const Tensor index = std::get<1>(x.topk(k, 0, largest));
        for (int64_t i = 0; i < k; ++i) CHECK(index.data_ptr<int64_t>()[i] == entries[static_cast<size_t>(i)].index);
      }
      functors::load_entries(x.const_data_ptr<float>(), 1, n, false, entries.data());
      CHECK(std::get<1>(x.kthvalue(k)).item<int64_t>() == functors::quick_select(entries.data(), n, k - 1));
    }
  }
}

TEST_CASE("shapes of sorting on the meta device") {
  const Tensor x = empty({2, 5}, TensorOptions().device(Device(DeviceType::Meta)));
  CHECK(std::get<0>(x.topk(3)).sizes() == IntArrayRef({2, 3}));
  CHECK(std::get<1>(x.sort(0)).scalar_type() == kInt64);
}

TEST_CASE("derivatives of sorting") {
  for (int64_t dim : {0, 1, 2}) {
    check_gradients([=](const Tensors& x) { return Tensors{std::get<0>(x[0].sort(dim)).exp()}; }, {leaf({2, 3, 4})});
    check_gradients([=](const Tensors& x) { return Tensors{std::get<0>(x[0].topk(2, dim)).exp()}; }, {leaf({2, 3, 4})});
    check_gradients([=](const Tensors& x) { return Tensors{std::get<0>(x[0].sort(true, dim, true)).exp()}; },
                    {leaf({2, 3, 4})});
  }
  check_gradients([](const Tensors& x) { return Tensors{msort(x[0])}; }, {leaf({})});
}
