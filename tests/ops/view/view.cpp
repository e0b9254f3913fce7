#include "core/ops/view/view.h"

#include <doctest/doctest.h>

#include "rushlight.h"

#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

// The element at a position, straight from the geometry.
double at(const Tensor& t, IntArrayRef position) {
  int64_t offset = t.storage_offset();
  for (size_t d = 0; d < position.size(); ++d) offset += position[d] * t.strides()[d];
  return static_cast<const double*>(t.storage()->data())[offset];
}

using ViewFunction = Tensor (*)(const Tensor&);

TEST_CASE("views of shapes and dimension orders: geometry, values, and no copy") {
  const struct {
    const char* name;
    ViewFunction view;
    DimVector input, sizes, strides;
  } cases[] = {
      {"view",
       [](const Tensor& x) {
         return x.view({4, -1});
       },
       {2, 6},
       {4, 3},
       {3, 1}},
      {"view adds ones",
       [](const Tensor& x) {
         return x.view({1, 2, 1, 6});
       },
       {2, 6},
       {1, 2, 1, 6},
       {12, 6, 6, 1}},
      {"view of a column",
       [](const Tensor& x) {
         return x.select(1, 2).view({2, 1});
       },
       {2, 6},
       {2, 1},
       {6, 6}},
      {"view of 0-d",
       [](const Tensor& x) {
         return x.view({1, 1});
       },
       {},
       {1, 1},
       {1, 1}},
      {"reshape",
       [](const Tensor& x) {
         return x.reshape({3, 4});
       },
       {2, 6},
       {3, 4},
       {4, 1}},
      {"flatten", [](const Tensor& x) { return x.flatten(1, 2); }, {2, 3, 4}, {2, 12}, {12, 1}},
      {"flatten 0-d", [](const Tensor& x) { return x.flatten(); }, {}, {1}, {1}},
      {"unflatten",
       [](const Tensor& x) {
         return x.unflatten(-1, {2, -1});
       },
       {2, 6},
       {2, 2, 3},
       {6, 3, 1}},
      {"expand",
       [](const Tensor& x) {
         return x.expand({5, -1, 3});
       },
       {2, 1},
       {5, 2, 3},
       {0, 1, 0}},
      {"expand_as",
       [](const Tensor& x) {
         return x.expand_as(zeros({2, 2}));
       },
       {2},
       {2, 2},
       {0, 1}},
      {"broadcast_to",
       [](const Tensor& x) {
         return x.broadcast_to({3, 2});
       },
       {2},
       {3, 2},
       {0, 1}},
      {"permute",
       [](const Tensor& x) {
         return x.permute({2, 0, -2});
       },
       {2, 3, 4},
       {4, 2, 3},
       {1, 12, 4}},
      {"transpose", [](const Tensor& x) { return x.transpose(0, -1); }, {2, 3, 4}, {4, 3, 2}, {1, 4, 12}},
      {"movedim", [](const Tensor& x) { return x.movedim(0, -1); }, {2, 3, 4}, {3, 4, 2}, {4, 1, 12}},
      {"movedims",
       [](const Tensor& x) {
         return x.movedim({2, 0}, {0, 1});
       },
       {2, 3, 4},
       {4, 2, 3},
       {1, 12, 4}},
      {"swapaxes", [](const Tensor& x) { return x.swapaxes(0, 1); }, {2, 3}, {3, 2}, {1, 3}},
      {"t", [](const Tensor& x) { return x.t(); }, {2, 3}, {3, 2}, {1, 3}},
      {"t of a vector", [](const Tensor& x) { return x.t(); }, {3}, {3}, {1}},
      {"mT", [](const Tensor& x) { return x.mT(); }, {2, 3, 4}, {2, 4, 3}, {12, 1, 4}},
      {"numpy_T", [](const Tensor& x) { return x.numpy_T(); }, {2, 3, 4}, {4, 3, 2}, {1, 4, 12}},
      {"squeeze", [](const Tensor& x) { return x.squeeze(); }, {1, 2, 1, 3}, {2, 3}, {3, 1}},
      {"squeeze dim", [](const Tensor& x) { return x.squeeze(-2); }, {1, 2, 1, 3}, {1, 2, 3}, {6, 3, 1}},
      {"squeeze kept", [](const Tensor& x) { return x.squeeze(1); }, {1, 2}, {1, 2}, {2, 1}},
      {"squeeze dims",
       [](const Tensor& x) {
         return x.squeeze({0, 1, 2});
       },
       {1, 2, 1, 3},
       {2, 3},
       {3, 1}},
      {"unsqueeze", [](const Tensor& x) { return x.unsqueeze(1); }, {2, 3}, {2, 1, 3}, {3, 3, 1}},
      {"unsqueeze last", [](const Tensor& x) { return x.unsqueeze(-1); }, {2, 3}, {2, 3, 1}, {3, 1, 1}},
      {"atleast_2d", [](const Tensor& x) { return atleast_2d(x); }, {3}, {1, 3}, {3, 1}},
      {"atleast_3d", [](const Tensor& x) { return atleast_3d(x); }, {3}, {1, 3, 1}, {3, 1, 1}},
      {"as_strided",
       [](const Tensor& x) {
         return x.as_strided({2, 2}, {1, 2}, 1);
       },
       {2, 3},
       {2, 2},
       {1, 2}},
      {"alias", [](const Tensor& x) { return x.alias(); }, {2, 3}, {2, 3}, {3, 1}},
      {"empty view",
       [](const Tensor& x) {
         return x.view({3, 0});
       },
       {0, 5},
       {3, 0},
       {1, 1}},
  };
  for (const auto& c : cases) {
    INFO(std::string(c.name));
    const Tensor x = counting(c.input);
    const Tensor y = c.view(x);
    CHECK(y.sizes() == IntArrayRef(c.sizes));
    CHECK(y.strides() == IntArrayRef(c.strides));
    CHECK(y.is_alias_of(x));
    const Tensor meta = c.view(empty(c.input, kMeta));
    CHECK(meta.sizes() == y.sizes());
    CHECK(meta.strides() == y.strides());
  }
}

TEST_CASE("views show the right elements") {
  const Tensor x = counting({2, 3, 4});
  const Tensor p = x.permute({2, 0, 1});
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      for (int64_t k = 0; k < 4; ++k) CHECK(at(p, {k, i, j}) == static_cast<double>(12 * i + 4 * j + k));
    }
  }
  CHECK(values(x.select(1, 1)) == Doubles{4, 5, 6, 7, 16, 17, 18, 19});
  CHECK(values(x.reshape({-1}).slice(0, 1, 8, 3)) == Doubles{1, 4, 7});
  CHECK(values(p.reshape({2, -1}).select(0, 0)) == Doubles{0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21});
  CHECK_FALSE(p.reshape({-1}).is_alias_of(x));
  CHECK(values(p.ravel()) == values(p));
}

TEST_CASE("view.dtype shows the same bytes") {
  const Tensor x = tensor({1.0, -2.0}, kFloat32);
  CHECK(x.view(kInt32)[0].item<int64_t>() == 0x3f800000);
  CHECK(x.view(kInt16).sizes() == IntArrayRef({4}));
  CHECK(x.view(kUInt8).view(kFloat32)[1].item<double>() == -2);
  CHECK_THROWS_AS(tensor({1, 2, 3}, kInt32).view(kInt64), ValueError);
}

TEST_CASE("complex numbers and pairs of real ones") {
  const Tensor pairs = counting({3, 2});
  const Tensor z = view_as_complex(pairs);
  CHECK(z.scalar_type() == kComplex128);
  CHECK(z.sizes() == IntArrayRef({3}));
  CHECK(z[2].item().to<complex<double>>() == complex<double>(4, 5));
  CHECK(view_as_real(z).is_alias_of(pairs));
  CHECK(values(view_as_real(z)) == values(pairs));
  CHECK_THROWS_AS(view_as_complex(counting({2, 3})), ValueError);
  CHECK_THROWS_AS(view_as_complex(counting({2, 4}).t()), ValueError);
  CHECK_THROWS_AS(view_as_complex(counting({4}, kInt64)), TypeError);
  CHECK_THROWS_AS(view_as_real(pairs), TypeError);
  check_gradients_as_laid_out(
      [](const Tensors& x) { return Tensors{view_as_real(view_as_complex(x[0]) * view_as_complex(x[0]))}; },
      {leaf({2, 3, 2})});
}

TEST_CASE("a write through a real view of a complex tensor reaches the complex tensor's gradient") {
  check_gradients_as_laid_out(
      [](const Tensors& x) {
        const Tensor z = view_as_complex(x[0]) * 1;
        view_as_real(z).select(-1, 0).copy_(x[1]);
        const Tensor w = x[0] * 1;  // and the other way round
        view_as_complex(w).mul_(z);
        return Tensors{view_as_real(z), w};
      },
      {leaf({3, 2}), leaf({3}, 1)});
}

TEST_CASE("views: what does not fit is a typed error") {
  const Tensor x = counting({2, 3});
  CHECK_THROWS_WITH_AS(x.view({4, 2}), "view: shape '[4, 2]' is invalid for input of size 6", ValueError);
  CHECK_THROWS_AS(x.view({-1, -1}), ValueError);
  CHECK_THROWS_AS(x.t().view({6}), ValueError);
  CHECK_THROWS_AS(x.expand({2, 4}), ValueError);
  CHECK_THROWS_AS(x.expand({3}), ValueError);
  CHECK_THROWS_AS(x.flatten(1, 0), ValueError);
  CHECK_THROWS_AS(x.unflatten(1, {2, 2}), ValueError);
  CHECK_THROWS_AS(x.permute({0}), ValueError);
  CHECK_THROWS_AS(x.permute({0, 0}), ValueError);
  CHECK_THROWS_AS(x.transpose(0, 2), IndexError);
  CHECK_THROWS_AS(x.movedim({0, 1}, {0}), ValueError);
  CHECK_THROWS_AS(counting({1, 1, 1}).t(), ValueError);
  CHECK_THROWS_AS(counting({3}).mT(), ValueError);
  CHECK_THROWS_AS(x.squeeze(2), IndexError);
  CHECK_THROWS_AS(x.unsqueeze(3), IndexError);
  CHECK(x.as_strided({0}, {1}, INT64_MAX).data_ptr() == x.data_ptr());  // nothing lies there
  CHECK_THROWS_AS(x.as_strided({3, 3}, {3, 1}), ValueError);
  CHECK_THROWS_AS(x.as_strided({2}, {-1}), ValueError);
  CHECK_THROWS_AS(x.as_strided({2}, {1}, -1), ValueError);
  CHECK_THROWS_AS(x.as_strided({2}, {1, 1}), ValueError);
}

TEST_CASE("views of nothing, whose strides may be out of range") {
  constexpr int64_t huge = int64_t{1} << 60;
  const Tensor complex = empty({0, huge + 1, 3}, kComplex128);
  CHECK(view_as_real(complex).sizes() == IntArrayRef({0, huge + 1, 3, 2}));
  CHECK(complex.unsqueeze(0).sizes() == IntArrayRef({1, 0, huge + 1, 3}));
  const Tensor far = empty({0}).as_strided({0, 4}, {1, 3 * huge});
  CHECK(far.select(1, 3).sizes() == IntArrayRef({0}));
  CHECK(far.unsqueeze(1).sizes() == IntArrayRef({0, 1, 4}));
  CHECK_THROWS_AS(empty({0, huge, huge}).flatten(1, 2), ValueError);
  Tensor leaf = ones({4}).requires_grad_();
  CHECK_THROWS_AS(leaf.as_strided({2}, {1}, INT64_MIN), Error);
}

TEST_CASE("detach leaves the graph and alias stays in it") {
  const Tensor x = leaf({2});
  CHECK_FALSE(detach(x).requires_grad());
  CHECK_FALSE(ops::detach(x).requires_grad());
  CHECK(x.alias().requires_grad());
}

TEST_CASE("derivatives of views") {
  const struct {
    const char* name;
    ViewFunction view;
    DimVector input;
  } cases[] = {
      {"view",
       [](const Tensor& x) {
         return x.view({3, 2});
       },
       {2, 3}},
      {"reshape copies",
       [](const Tensor& x) {
         return x.t().reshape({2, 3});
       },
       {2, 3}},
      {"expand",
       [](const Tensor& x) {
         return x.expand({2, 3, 2});
       },
       {3, 1}},
      {"permute",
       [](const Tensor& x) {
         return x.permute({2, 0, -2});
       },
       {2, 1, 3}},
      {"movedim", [](const Tensor& x) { return x.movedim(0, 2); }, {2, 1, 3}},
      {"t", [](const Tensor& x) { return x.t(); }, {2, 3}},
      {"squeeze", [](const Tensor& x) { return x.squeeze(); }, {2, 1, 2, 1}},
      {"squeeze dim", [](const Tensor& x) { return x.squeeze(-1); }, {2, 1, 2, 1}},
      {"squeeze dims",
       [](const Tensor& x) {
         return x.squeeze({1, 2});
       },
       {2, 1, 2, 1}},
      {"unsqueeze", [](const Tensor& x) { return x.unsqueeze(0); }, {2, 2}},
      {"flatten", [](const Tensor& x) { return x.flatten(0, 1); }, {2, 2, 2}},
      {"unflatten",
       [](const Tensor& x) {
         return x.unflatten(0, {2, 2});
       },
       {4}},
      {"0-d", [](const Tensor& x) { return x.view({1}).expand({3}); }, {}},
      {"empty",
       [](const Tensor& x) {
         return x.view({3, 0}).t();
       },
       {0, 3}},
      {"as_strided",
       [](const Tensor& x) {
         return x.as_strided({2, 2}, {1, 3}, 1);
       },
       {2, 4}},
      {"as_strided overlaps",
       [](const Tensor& x) {
         return x.as_strided({3, 3}, {1, 1}, 1);
       },
       {6}},
      {"as_strided repeats",
       [](const Tensor& x) {
         return x.as_strided({2, 3}, {0, 2});
       },
       {6}},
      {"as_strided of a part",
       [](const Tensor& x) {
         return x.select(0, 1).as_strided({2, 2}, {2, 1}, 4);
       },
       {3, 4}},
      {"as_strided before a part", [](const Tensor& x) { return x.slice(0, 2).as_strided({2}, {2}, 2); }, {6}},
      {"as_strided of expanded",
       [](const Tensor& x) {
         return x.expand({2, 3}).as_strided({3}, {1});
       },
       {3}},
      {"as_strided of a transpose", [](const Tensor& x) { return x.t().as_strided({4}, {1}, 1); }, {2, 3}},
  };
  for (const auto& c : cases) {
    INFO(std::string(c.name));
    // Squared, so that the second derivative is not zero.
    const auto squared = [&](const Tensors& x) {
      const Tensor y = c.view(x[0]);
      return Tensors{y * y};
    };
    const std::string_view name = c.name;
    const bool any_layout = name != "view" && !name.starts_with("as_strided");
    (any_layout ? check_gradients : check_gradients_as_laid_out)(squared, {leaf(c.input)});
  }
}

TEST_CASE("as_strided: each element's gradient is the sum over all places that show it") {
  const Tensor x = leaf({5});
  const Tensor y = x.as_strided({3, 3}, {1, 1});
  y.backward(counting({3, 3}).add(1));
  // Anti-diagonals of 1 2 3 / 4 5 6 / 7 8 9.
  CHECK(values(x.grad()) == Doubles{1, 6, 15, 14, 9});
}

}  // namespace
