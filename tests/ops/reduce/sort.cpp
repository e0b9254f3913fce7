#include <cmath>

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
    for (int64_t n : {0, 1, 2, 50, 1000}) {
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

TEST_CASE("topk is the head of a sort") {
  for (int64_t n : {5, 200}) {
    for (int64_t k : {0, 1, 2, 5}) {
      const Tensor x = waves({3, n, 2});
      for (bool largest : {true, false}) {
        const auto [top, index] = x.topk(k, 1, largest);
        CHECK(values(top) == values(std::get<0>(x.sort(1, largest)).narrow(1, 0, k)));
        CHECK(values(x.gather(1, index)) == values(top));
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
