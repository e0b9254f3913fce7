#include <algorithm>
#include <cmath>

#include "tests/ops/reduce/reduce_testing.h"

using namespace rush;
using namespace rush::testing;

TEST_CASE("kthvalue and median are elements of the sorted line") {
  for (int64_t n : {1, 2, 5, 6, 301}) {
    const Tensor x = waves({3, n, 2});
    const Tensor sorted = std::get<0>(x.sort(1));
    for (int64_t k : {int64_t(1), n / 2 + 1, n}) {
      const auto [value, index] = x.kthvalue(k, 1);
      CHECK(values(value) == values(sorted.select(1, k - 1)));
      CHECK(values(x.gather(1, index.unsqueeze(1)).squeeze(1)) == values(value));
    }
    const auto [middle, at] = x.median(1, true);
    CHECK(values(middle) == values(sorted.narrow(1, (n - 1) / 2, 1)));
    CHECK(values(x.gather(1, at)) == values(middle));
    CHECK(x.median().item<double>() == std::get<0>(x.flatten().sort())[(x.numel() - 1) / 2].item<double>());
  }
}

TEST_CASE("medians with NaN") {
  const Tensor x = tensor({3., 1., 2., 1., kNan, 2.}, kFloat64);
  CHECK(std::isnan(x.median().item<double>()));
  CHECK(std::get<1>(x.median(0)).item<int64_t>() == 4);
  CHECK(x.nanmedian().item<double>() == 2);
  CHECK(std::get<1>(x.nanmedian(0)).item<int64_t>() == 2);
  CHECK(std::isnan(tensor({kNan, kNan}).nanmedian().item<double>()));
  CHECK(std::isnan(zeros({0}).median().item<double>()));
  CHECK(std::isnan(std::get<0>(x.kthvalue(6)).item<double>()));
}

TEST_CASE("mode is the smallest of the most frequent, at its last place") {
  const auto [value, index] = tensor({3, 1, 2, 1, 2}).mode();
  CHECK(value.item<int64_t>() == 1);
  CHECK(index.item<int64_t>() == 3);
  CHECK(std::get<0>(tensor({5, 5, 4}).view({1, 3}).mode(1, true)).sizes() == IntArrayRef({1, 1}));
}

TEST_CASE("mode of lines of any length and stride") {
  for (int64_t n : {1, 9, 130, 1500, 9000}) {
    CAPTURE(n);
    const Tensor x = ((arange(6 * n, kInt64) * 2654435761) % 97 % 13).view({3, n, 2}).to(kFloat32);
    const auto [value, index] = x.mode(1);
    for (int64_t line = 0; line < 6; ++line) {
      const Doubles v = values(x.select(2, line % 2).select(0, line / 2));
      double best = 0;
      int64_t most = 0, last = 0;
      for (const double each : v) {
        const auto count = static_cast<int64_t>(std::count(v.begin(), v.end(), each));
        if (count < most || (count == most && each >= best)) continue;
        best = each;
        most = count;
        last = v.rend() - std::find(v.rbegin(), v.rend(), each) - 1;
      }
      CHECK(values(value)[static_cast<size_t>(line)] == best);
      CHECK(values(index)[static_cast<size_t>(line)] == static_cast<double>(last));
    }
  }
  CHECK(std::get<1>(tensor({kNan, 1., kNan}).mode()).item<int64_t>() == 2);
  CHECK(std::get<0>(zeros({0, 3}).mode()).numel() == 0);
}

TEST_CASE("order statistics check their input") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_AS(x.kthvalue(0), ValueError);
  CHECK_THROWS_AS(x.kthvalue(4), ValueError);
  CHECK_THROWS_AS(x.median(2), IndexError);
  CHECK_THROWS_AS(zeros({0}).kthvalue(1), IndexError);
  CHECK_THROWS_AS(zeros({2, 0}).mode(), IndexError);
  CHECK_THROWS_AS(zeros({0}, kInt64).median(), IndexError);
  const Tensor meta = empty({2, 5}, TensorOptions().device(Device(DeviceType::Meta)));
  CHECK(std::get<0>(meta.median(1, true)).sizes() == IntArrayRef({2, 1}));
  CHECK(std::get<1>(meta.kthvalue(2)).sizes() == IntArrayRef(2));
}

TEST_CASE("derivatives of order statistics") {
  for (int64_t dim : {0, 1}) {
    const auto all = [=](const Tensors& x) {
      return Tensors{std::get<0>(x[0].kthvalue(2, dim)).exp(), std::get<0>(x[0].median(dim, true)).exp(),
                     std::get<0>(x[0].nanmedian(dim)).exp(), std::get<0>(x[0].mode(dim))};
    };
    check_gradients(all, {leaf({3, 4})});
  }
  check_gradients([](const Tensors& x) { return Tensors{std::get<0>(x[0].median(0))}; }, {leaf({})});
}

TEST_CASE("quantile between ranks, every way") {
  const Tensor x = tensor({4., 1., 3., 2.}, kFloat64);
  CHECK(x.quantile(0.5).item<double>() == 2.5);
  CHECK(x.quantile(0.5, 0, false, "lower").item<double>() == 2);
  CHECK(x.quantile(0.5, 0, false, "higher").item<double>() == 3);
  CHECK(x.quantile(0.4, 0, false, "nearest").item<double>() == 2);
  CHECK(x.quantile(0.1, 0, false, "midpoint").item<double>() == 1.5);
  CHECK(close(values(x.quantile(tensor({0., 0.1, 1.}, kFloat64))), {1, 1.3, 4}, 1e-12));
  const Tensor rows = counting({3, 5});
  CHECK(values(rows.quantile(0.5, 1)) == Doubles{2, 7, 12});
  CHECK(rows.quantile(0.5, 0, true).sizes() == IntArrayRef({1, 5}));
  CHECK(rows.quantile(0.5, std::nullopt, true).sizes() == IntArrayRef({1, 1}));
  CHECK(rows.quantile(tensor({0.1, 0.9}, kFloat64), 0, true).sizes() == IntArrayRef({2, 1, 5}));
  const Tensor with_nan = tensor({kNan, 1., 3.}, kFloat64);
  CHECK(std::isnan(with_nan.quantile(0.5).item<double>()));
  CHECK(with_nan.nanquantile(0.5).item<double>() == 2);
  CHECK(std::isnan(tensor({kNan}).nanquantile(0.5).item<double>()));
}

TEST_CASE("quantile checks its input") {
  const Tensor x = ones({3});
  CHECK_THROWS_AS(x.quantile(1.5), ValueError);
  CHECK_THROWS_AS(x.quantile(tensor({-0.1})), ValueError);
  CHECK_THROWS_AS(x.quantile(0.5, 1), IndexError);
  CHECK_THROWS_AS(x.quantile(0.5, 0, false, "cubic"), ValueError);
  CHECK_THROWS_AS(x.quantile(tensor({0.5}, kFloat64)), TypeError);
  CHECK_THROWS_AS(x.to(kFloat16).quantile(0.5), TypeError);
  CHECK_THROWS_AS(zeros({0}).quantile(0.5), ValueError);
}

TEST_CASE("derivatives of quantile") {
  check_gradients(
      [](const Tensors& x) {
        return Tensors{x[0].quantile(0.3, 1).exp(), x[0].quantile(x[1], 0, true), x[0].nanquantile(0.6)};
      },
      {leaf({3, 4}), tensor({0.15, 0.7}, kFloat64).requires_grad_()});
}
