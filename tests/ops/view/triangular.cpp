#include "core/ops/view/triangular.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

TEST_CASE("tril and triu: all diagonals, against the definition") {
  const Tensor wide = counting({3, 5, 16}, kFloat32) + 1;  // rows of whole accesses, and the same from elsewhere on
  const Tensor inputs[] = {counting({3, 4}) + 1,
                           counting({2, 4, 3}) + 1,
                           (counting({4, 2, 5}) + 1).permute({1, 2, 0}),
                           wide,
                           wide.transpose(0, 1),
                           wide.to(kFloat16),
                           wide.to(kInt64),
                           wide.slice(2, 1, 9),
                           wide.slice(2, 4, 12),
                           (counting({2, 1030}, kFloat32) + 1).t()};
  for (const Tensor& x : inputs) {
    const int64_t rows = x.size(-2), columns = x.size(-1);
    for (int64_t k :
         {int64_t{-9}, int64_t{-2}, int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{3}, INT64_MAX, INT64_MIN}) {
      Doubles lower = values(x), upper = lower;
      for (size_t n = 0; n < lower.size(); ++n) {
        const auto place = static_cast<int64_t>(n);
        const int64_t distance = place % columns - place / columns % rows;
        if (distance > k) lower[n] = 0;
        if (distance < k) upper[n] = 0;
      }
      CHECK(values(x.tril(k)) == lower);
      CHECK(values(x.triu(k)) == upper);
      Tensor written = x.clone(MemoryFormat::Preserve);
      written.tril_(k);
      CHECK(values(written) == lower);
      CHECK(values(x.clone().triu_(k)) == upper);
    }
  }
}

TEST_CASE("tril and triu: large, empty, dtypes, meta") {
  const Tensor large = ones({300, 400}, kFloat32);
  CHECK(large.tril().sum().item<double>() == 300 * 301 / 2);
  CHECK(zeros({0, 3}).tril().sizes() == IntArrayRef({0, 3}));
  CHECK(zeros({2, 3, 0}).triu().sizes() == IntArrayRef({2, 3, 0}));
  for (const ScalarType dtype : {kBool, kUInt8, kInt64, kFloat16, kBFloat16, kComplex64}) {
    CHECK(values(real(ones({2, 2}, dtype).triu())) == Doubles{1, 1, 0, 1});
  }
  CHECK(empty({2, 3}, kMeta).tril().sizes() == IntArrayRef({2, 3}));
  CHECK_THROWS_AS(ones({3}).tril(), ValueError);
  CHECK_THROWS_AS(ones({3}).triu_(), ValueError);
  CHECK_THROWS_AS(ones({1, 3}).expand({3, 3}).tril_(), ValueError);
}

TEST_CASE("positions of triangles") {
  CHECK(values(tril_indices(3, 2)) == Doubles{0, 1, 1, 2, 2, 0, 0, 1, 0, 1});
  CHECK(values(triu_indices(2, 3, 1)) == Doubles{0, 0, 1, 1, 2, 2});
  CHECK(tril_indices(0, 5).sizes() == IntArrayRef({2, 0}));
  CHECK(tril_indices(3, 3, INT64_MAX).sizes() == IntArrayRef({2, 9}));
  CHECK(triu_indices(3, 3, INT64_MAX).sizes() == IntArrayRef({2, 0}));
  CHECK(triu_indices(3, 3, INT64_MIN, kInt32).scalar_type() == kInt32);
  CHECK(tril_indices(4, 4, 0, TensorOptions(kInt64).device(kMeta)).sizes() == IntArrayRef({2, 10}));
  // Sizes at which a loop over all rows would not end, and sums of sizes overflow.
  constexpr int64_t huge = int64_t{1} << 40;
  CHECK(values(tril_indices(huge, 1, 2 - huge)) == Doubles{huge - 2., huge - 1., 0, 0});
  CHECK(triu_indices(huge, 4, 4).sizes() == IntArrayRef({2, 0}));
  CHECK(values(triu_indices(1, INT64_MAX, INT64_MAX - 1)) == Doubles{0, 9223372036854775806.});
  CHECK(values(tril_indices(INT64_MAX, 1, 1 - INT64_MAX)) == Doubles{9223372036854775806., 0});
  for (int64_t offset = -5; offset <= 5; ++offset) {
    CAPTURE(offset);
    CHECK(tril_indices(3, 4, offset).equal(ones({3, 4}).tril(offset).nonzero().t()));
    CHECK(triu_indices(4, 2, offset).equal(ones({4, 2}).triu(offset).nonzero().t()));
  }
  CHECK_THROWS_AS(tril_indices(-1, 2), ValueError);
  CHECK_THROWS_AS(tril_indices(2, 2, 0, kFloat32), NotImplementedError);
}

TEST_CASE("diagonal matrices") {
  const Tensor x = tensor({1, 2});
  CHECK(values(diag(x)) == Doubles{1, 0, 0, 2});
  CHECK(values(diag(x, -1)) == Doubles{0, 0, 0, 1, 0, 0, 0, 2, 0});
  CHECK(values(diag(counting({3, 3}), 1)) == Doubles{1, 5});
  CHECK_FALSE(diag(counting({2, 2})).is_view());
  CHECK(values(diagflat(tensor({{1}, {2}}))) == Doubles{1, 0, 0, 2});
  const Tensor batch = diag_embed(counting({2, 3}) + 1, 0, 0, 2);
  CHECK(batch.sizes() == IntArrayRef({3, 2, 3}));
  CHECK(values(batch.diagonal(0, 0, 2)) == values(counting({2, 3}) + 1));
  CHECK(batch.sum().item<double>() == 21);
  CHECK_THROWS_AS(diag(counting({1, 1, 1})), ValueError);
  CHECK_THROWS_AS(diag_embed(counting({})), ValueError);
  CHECK_THROWS_AS(diag_embed(x, 0, 1, -1), ValueError);
  CHECK_THROWS_AS(diag_embed(x, INT64_MIN), ValueError);
}

TEST_CASE("derivatives of triangles and diagonals") {
  using Function = Tensor (*)(const Tensor&);
  const Function cases[] = {
      [](const Tensor& x) { return x.tril(1); },
      [](const Tensor& x) { return x.t().triu(-1); },
      [](const Tensor& x) { return diag(x); },
      [](const Tensor& x) { return diag(x.select(0, 1), 1); },
      [](const Tensor& x) { return diag_embed(x, -1, 0, 1); },
      [](const Tensor& x) { return (x * 1).tril_(); },
  };
  for (const Function& f : cases) {
    const auto squared = [&](const Tensors& x) {
      const Tensor y = f(x[0]);
      return Tensors{y * y};
    };
    check_gradients(squared, {leaf({3, 2})});
  }
}

}  // namespace
