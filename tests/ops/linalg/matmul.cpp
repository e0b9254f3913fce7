#include "core/ops/linalg/matmul.h"

#include <cmath>
#include <limits>

#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

const ScalarType kRealTypes[] = {kFloat64, kFloat32, kBFloat16, kFloat16, kInt64, kInt32, kInt16, kInt8, kUInt8};

// Small whole numbers, which every dtype holds and sums exactly.
Tensor whole(IntArrayRef sizes, ScalarType dtype, int seed) {
  const Tensor t = zeros(sizes, kFloat64);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data_ptr<double>()[i] = static_cast<double>((i * 7 + seed * 3) % 5 - (dtype == kUInt8 ? 0 : 1));
  return t.to(dtype);
}

// What the product of two matrices is by its definition, in double precision.
Doubles reference(const Tensor& a, const Tensor& b) {
  const Doubles x = values(a), y = values(b);
  const size_t n = static_cast<size_t>(a.size(0)), k = static_cast<size_t>(a.size(1));
  const size_t m = static_cast<size_t>(b.size(1));
  Doubles out(n * m, 0.0);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < m; ++j) {
      for (size_t d = 0; d < k; ++d) out[i * m + j] += x[i * k + d] * y[d * m + j];
    }
  }
  return out;
}

void check_equal(const Tensor& actual, const Doubles& expected) {
  const Doubles got = values(actual);
  REQUIRE(got.size() == expected.size());
  size_t wrong = 0;
  const bool wraps = actual.scalar_type() == kUInt8;
  for (size_t i = 0; i < got.size(); ++i) wrong += got[i] != (wraps ? std::fmod(expected[i], 256.0) : expected[i]);
  CHECK(wrong == 0);
}

TEST_CASE("dot products and outer products of any length, stride and dtype") {
  for (const int64_t n : {1, 7, 8, 9, 31, 64, 257, 1000}) {
    for (const ScalarType dtype : {kFloat32, kFloat64, kBFloat16, kInt64, kInt32, kComplexFloat, kComplexDouble}) {
      CAPTURE(n);
      CAPTURE(dtype);
      const Tensor numbers = (arange(4 * n, kInt64) * 2654435761) % 97 % 7 - 3;
      Tensor all = numbers.to(dtype);
      if (is_complex(dtype)) all = all * complex<double>(1, 2) + all.flip(0) * complex<double>(0, 1);
      const Tensor x = all.narrow(0, 0, n), y = all.narrow(0, n, n), apart = all.as_strided({n}, {2}, 2 * n - 1);
      for (const Tensor& left : {x, apart}) {
        for (const Tensor& right : {y, apart}) {
          CHECK(allclose(left.dot(right), (left * right).sum().to(dtype)));
          CHECK(equal(left.unsqueeze(1).mm(right.unsqueeze(0)), left.unsqueeze(1) * right));
          CHECK(equal(left.unsqueeze(1).mm(right.narrow(0, 0, 1).unsqueeze(0)).squeeze(1), left * right[0]));
        }
      }
    }
  }
}

TEST_CASE("mm: sizes around those of tiles and blocks, in every real dtype") {
  for (const ScalarType dtype : kRealTypes) {
    CAPTURE(dtype);
    for (const auto& [n, k, m] : std::vector<std::array<int64_t, 3>>{
             {1, 1, 1}, {1, 5, 33}, {33, 5, 1}, {2, 3, 4}, {15, 16, 17}, {14, 30, 32}, {31, 9, 65}, {70, 0, 3}}) {
      CAPTURE(n);
      const Tensor a = whole({n, k}, dtype, 1), b = whole({k, m}, dtype, 2);
      const Tensor c = a.mm(b);
      CHECK(c.scalar_type() == dtype);
      CHECK(c.sizes() == IntArrayRef({n, m}));
      check_equal(c, reference(a, b));
    }
  }
  // Beyond a block in every dimension.
  const Tensor a = whole({460, 300}, kFloat32, 1), b = whole({300, 2070}, kFloat32, 2);
  check_equal(a.mm(b), reference(a, b));
}

TEST_CASE("mm: any strides, without copies") {
  const Tensor a = whole({40, 60}, kFloat32, 1), b = whole({60, 50}, kFloat32, 2);
  const Doubles expected = reference(a, b);
  check_equal(a.t().contiguous().t().mm(b), expected);
  check_equal(a.mm(b.t().contiguous().t()), expected);
  check_equal(a.t().contiguous().t().mm(b.t().contiguous().t()), expected);
  // Every second element of a larger matrix, and a broadcast row.
  const Tensor wide = whole({40, 120}, kFloat32, 3);
  const Tensor half = wide.as_strided({40, 60}, {120, 2});
  check_equal(half.mm(b), reference(half, b));
  const Tensor row = whole({1, 60}, kFloat32, 4).expand({40, 60});
  check_equal(row.mm(b), reference(row, b));
}

TEST_CASE("mm: few vectors by a matrix of contiguous rows, on either side") {
  for (const ScalarType dtype : {kFloat32, kFloat64, kBFloat16, kFloat16, kInt64}) {
    CAPTURE(dtype);
    for (const int64_t vectors : {2, 3, 4, 5}) {
      CAPTURE(vectors);
      const Tensor weight = whole({203, 611}, dtype, 1), x = whole({vectors, 611}, dtype, 2);
      const Tensor expected = x.to(kFloat64).mm(weight.to(kFloat64).t()).to(dtype).to(kFloat64);
      CHECK(equal(x.mm(weight.t()).to(kFloat64), expected));
      CHECK(equal(weight.mm(x.t()).to(kFloat64), expected.t()));
      const Tensor apart = whole({vectors, 2 * 611}, dtype, 3).as_strided({vectors, 611}, {2 * 611, 2});
      CHECK(equal(apart.mm(weight.t()), apart.contiguous().mm(weight.t())));
      const Tensor bias = whole({vectors, 203}, dtype, 4);
      const Tensor sum = addmm(bias, x, weight.t(), 2, 3);
      CHECK(equal(sum.to(kFloat64),
                  (bias.to(kFloat64) * 2 + x.to(kFloat64).mm(weight.to(kFloat64).t()) * 3).to(dtype).to(kFloat64)));
    }
  }
}

TEST_CASE("mm: few rows or few columns, read where they lie") {
  const auto layouts = [](const Tensor& t) {
    Tensor gaps = full({2 * t.size(0), 3 * t.size(1)}, std::numeric_limits<double>::quiet_NaN(), t.scalar_type());
    gaps = gaps.slice(0, 0, std::nullopt, 2).slice(1, 1, std::nullopt, 3);
    gaps.copy_(t);
    return Tensors{t, t.t().contiguous().t(), gaps};
  };
  for (const ScalarType dtype : {kFloat64, kFloat32}) {
    for (const auto& [n, k, m] : std::vector<std::array<int64_t, 3>>{
             {5, 33, 70}, {15, 1, 64}, {29, 40, 101}, {56, 17, 96}, {57, 9, 65}, {70, 300, 20}, {131, 31, 64}}) {
      CAPTURE(dtype);
      CAPTURE(n);
      const Tensor a = whole({n, k}, dtype, 1), b = whole({k, m}, dtype, 2), c = whole({n, m}, dtype, 3);
      const Doubles product = reference(a, b), added = values(c);
      Doubles blended(product.size());
      for (size_t i = 0; i < product.size(); ++i) blended[i] = 2 * added[i] - 3 * product[i];
      for (const Tensor& x : layouts(a)) {
        for (const Tensor& y : layouts(b)) {
          check_equal(x.mm(y), product);
          check_equal(addmm(c, x, y, 2, -3), blended);
          check_equal(y.t().mm(x.t()).t(), product);
        }
      }
    }
  }
  const Tensor a = randn({40, 70}), b = randn({70, 300});
  const int threads = get_num_threads();
  set_num_threads(1);
  const Tensor alone = a.mm(b);
  set_num_threads(3);
  CHECK(a.mm(b).equal(alone));
  set_num_threads(threads);
}

TEST_CASE("mm: integers wrap around") {
  const Tensor a = full({1, 2}, 100, kInt8), b = full({2, 1}, 3, kInt8);
  CHECK(a.mm(b).item<int64_t>() == static_cast<int8_t>(600));
}

TEST_CASE("mm: complex numbers multiply by their parts") {
  for (const ScalarType dtype : {kComplex64, kComplex128}) {
    const Tensor a = view_as_complex(leaf({20, 17, 2}).detach()).to(dtype);
    const Tensor b = view_as_complex(leaf({17, 19, 2}, 1).detach()).to(dtype);
    const auto part = [](const Tensor& t, int64_t i) { return view_as_real(t).select(-1, i).to(kFloat64); };
    const Tensor c = a.mm(b), ar = part(a, 0), ai = part(a, 1), br = part(b, 0), bi = part(b, 1);
    const double tolerance = dtype == kComplex64 ? 1e-5 : 1e-13;
    for (double e : values(part(c, 0) - (ar.mm(br) - ai.mm(bi)))) CHECK(std::abs(e) < tolerance);
    for (double e : values(part(c, 1) - (ar.mm(bi) + ai.mm(br)))) CHECK(std::abs(e) < tolerance);
  }
}

TEST_CASE("mm: 16-bit floats are summed in float") {
  const Tensor ones_row = ones({1, 4096}, kBFloat16), ones_column = ones({4096, 1}, kBFloat16);
  CHECK(ones_row.mm(ones_column).item<double>() == 4096);
  CHECK(ones({2, 4096}, kBFloat16).mm(ones({4096, 3}, kBFloat16)).select(0, 1).select(0, 2).item<double>() == 4096);
}

TEST_CASE("bmm: every matrix of the batch, batches of one broadcast by strides") {
  const Tensor a = whole({5, 6, 7}, kFloat64, 1), b = whole({5, 7, 9}, kFloat64, 2);
  const Tensor c = a.bmm(b);
  for (int64_t i = 0; i < 5; ++i) check_equal(c.select(0, i), reference(a.select(0, i), b.select(0, i)));
  const Tensor shared = b.select(0, 1).unsqueeze(0).expand({5, 7, 9});
  for (int64_t i = 0; i < 5; ++i) check_equal(a.bmm(shared).select(0, i), reference(a.select(0, i), b.select(0, 1)));
  CHECK(empty({0, 2, 3}).bmm(empty({0, 3, 4})).sizes() == IntArrayRef({0, 2, 4}));
  check_equal(empty({2, 2, 0}).bmm(empty({2, 0, 3})), Doubles(12, 0.0));
}

TEST_CASE("cross") {
  const Tensor x = tensor({1., 0., 0.}), y = tensor({0., 1., 0.});
  check_equal(cross(x, y), {0, 0, 1});
  check_equal(y.cross(x), {0, 0, -1});
  // Rows against a single one, and along the first dimension.
  check_equal(linalg_cross(whole({2, 3}, kFloat64, 1), tensor({1., 2., 3.}, kFloat64).view({1, 3})).select(0, 0),
              values(cross(whole({2, 3}, kFloat64, 1)[0], tensor({1., 2., 3.}, kFloat64))));
  check_equal(cross(x.view({1, 3}).t(), y.view({1, 3}).t()), {0, 0, 1});
  check_gradients([](const Tensors& t) { return Tensors{cross(t[0], t[1], 1)}; }, {leaf({2, 3}), leaf({1, 3}, 5)});
  check_gradients([](const Tensors& t) { return Tensors{linalg_cross(t[0], t[1], 1)}; },
                  {leaf({2, 3, 4}), leaf({4, 3, 2}, 5).detach().transpose(0, 2).requires_grad_()});
  // The inner dimension of three and others, of every kind of number, in tensors of two dtypes, and of none.
  for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16, kInt64, kUInt8, kComplex128}) {
    const Tensor a = whole({5, 3, 7}, kFloat64, 1).to(dtype), b = whole({5, 3, 7}, kFloat64, 2).to(dtype);
    const auto part = [](const Tensor& t, int64_t i) { return t.select(1, i % 3); };
    const Tensor c = linalg_cross(a, b, 1), rows = linalg_cross(a.transpose(1, 2), b.transpose(1, 2));
    for (int64_t i = 0; i < 3; ++i) {
      CHECK(part(c, i).equal(part(a, i + 1) * part(b, i + 2) - part(a, i + 2) * part(b, i + 1)));
    }
    CHECK(rows.transpose(1, 2).equal(c));
  }
  CHECK(linalg_cross(ones({3}, kInt64), ones({3})).scalar_type() == kFloat32);
  CHECK(linalg_cross(ones({0, 3}), ones({3, 3}).narrow(0, 0, 1)).sizes() == IntArrayRef({0, 3}));
  CHECK_THROWS_AS(cross(ones({2}), ones({2})), ValueError);
  CHECK_THROWS_AS(linalg_cross(ones({3, 2}), ones({3, 2})), ValueError);
  CHECK_THROWS_AS(linalg_cross(ones({3}), ones({1, 3})), ValueError);
  CHECK_THROWS_AS(linalg_cross(ones({3}), ones({3}), 4), IndexError);
}

TEST_CASE("mv, dot, vdot, outer, inner") {
  const Tensor a = whole({37, 300}, kFloat32, 1), x = whole({300}, kFloat32, 2);
  check_equal(a.mv(x), reference(a, x.unsqueeze(1)));
  check_equal(a.t().mv(whole({37}, kFloat32, 3)), reference(a.t(), whole({37, 1}, kFloat32, 3)));
  const Tensor strided = whole({600}, kFloat32, 2).as_strided({300}, {2});
  check_equal(a.mv(strided), reference(a, strided.unsqueeze(1)));
  check_equal(x.dot(strided), reference(x.unsqueeze(0), strided.unsqueeze(1)));
  CHECK(empty({0}).dot(empty({0})).item<double>() == 0);
  check_equal(whole({3}, kInt32, 1).outer(whole({4}, kInt32, 2)),
              reference(whole({3, 1}, kInt32, 1), whole({1, 4}, kInt32, 2)));
  check_equal(whole({2, 3, 4}, kInt64, 1).inner(whole({5, 4}, kInt64, 2)),
              reference(whole({6, 4}, kInt64, 1), whole({5, 4}, kInt64, 2).t()));
  check_equal(inner(tensor(3.0), tensor({1.0, 2.0})), {3, 6});
  const Tensor z = view_as_complex(tensor({1.0, 2.0, 3.0, -1.0}).view({2, 2}));
  check_equal(view_as_real(z.vdot(z)), {15, 0});
}

// As in PyTorch: bool has no products, but where nothing is multiplied there is a result.
TEST_CASE("products of bool") {
  const auto flags = [](IntArrayRef sizes) { return ones(sizes, kBool); };
  for (const auto& [product, sizes] : {std::pair(flags({0, 3}).mm(flags({3, 2})), DimVector{0, 2}),
                                       std::pair(flags({2, 0}).mm(flags({0, 2})), DimVector{2, 2}),
                                       std::pair(flags({2, 0}).mv(flags({0})), DimVector{2}),
                                       std::pair(flags({2, 2, 0}).bmm(flags({2, 0, 2})), DimVector{2, 2, 2}),
                                       std::pair(inner(flags({2, 0}), flags({3, 0})), DimVector{2, 3}),
                                       std::pair(inner(flags({0, 3}), flags({2, 3})), DimVector{0, 2}),
                                       std::pair(inner(flags({0}), flags({2, 0})), DimVector{2})}) {
    CHECK(product.sizes() == IntArrayRef(sizes));
    CHECK(product.scalar_type() == kBool);
    CHECK_FALSE(product.any().item<bool>());
  }
  CHECK_THROWS_AS(flags({2, 3}).mm(flags({3, 2})), NotImplementedError);
  CHECK_THROWS_AS(inner(flags({3}), flags({3})), NotImplementedError);
  CHECK_THROWS_AS(flags({0}).dot(flags({0})), NotImplementedError);
  CHECK_THROWS_AS(ops::addmm(flags({0, 2}), flags({0, 3}), flags({3, 2}), 1, 1), NotImplementedError);
}

TEST_CASE("addmm and its like: beta, alpha, broadcasting, in place") {
  const Tensor s = whole({3, 4}, kFloat64, 5), a = whole({3, 2}, kFloat64, 1), b = whole({2, 4}, kFloat64, 2);
  const Doubles product = reference(a, b);
  Doubles expected(12);
  for (size_t i = 0; i < 12; ++i) expected[i] = 2 * values(s)[i] + 3 * product[i];
  check_equal(addmm(s, a, b, 2, 3), expected);
  Tensor target = s.clone();
  target.addmm_(a, b, 2, 3);
  check_equal(target, expected);
  // A bias broadcasts.
  const Tensor bias = whole({4}, kFloat64, 3);
  for (size_t i = 0; i < 12; ++i) expected[i] = values(bias)[i % 4] + product[i];
  check_equal(addmm(bias, a, b), expected);
  check_equal(addbmm(bias, a.unsqueeze(0), b.unsqueeze(0)), expected);
  const Tensor many = ones({1, 1, 1}, kMeta).expand({int64_t{1} << 48, 1, 1});  // is not counted through
  CHECK(addbmm(ones({1, 1}, kMeta), many, many).sizes() == IntArrayRef({1, 1}));
  check_equal(baddbmm(bias, a.unsqueeze(0), b.unsqueeze(0)), expected);
  // With beta 0 self is not read.
  const Tensor nan = full({3, 4}, std::numeric_limits<double>::quiet_NaN(), kFloat64);
  check_equal(addmm(nan, a, b, 0, 1), product);
  check_equal(addr(nan, a.select(1, 0), b.select(0, 0), 0, 1), reference(a.narrow(1, 0, 1), b.narrow(0, 0, 1)));
  check_equal(addmv(nan.select(1, 0), a, b.select(1, 0), 0, 1), reference(a, b.narrow(1, 0, 1)));
  // A factor may be the target.
  Tensor square = whole({3, 3}, kFloat64, 4);
  const Doubles squared = reference(square, square);
  square.addmm_(square, square, 0, 1);
  check_equal(square, squared);
  // Integers take the integer part of beta and alpha.
  const Tensor i = whole({2, 2}, kInt32, 1);
  check_equal(addmm(i, i, i, 0.7, 1.9), reference(i, i));
  CHECK(addr(ones({2, 2}, kBool), zeros({2}, kBool), ones({2}, kBool), 3, 2).scalar_type() == kBool);
  CHECK(addr(ones({2, 2}, kBool), zeros({2}, kBool), ones({2}, kInt32)).scalar_type() == kInt32);
  CHECK_THROWS_AS(addr(ones({2, 2}, kInt16), ones({2}, kInt16), ones({2}, kInt16), 2.0), TypeError);
  CHECK_THROWS_AS(addr(ones({2, 2}, kInt16), ones({2}, kInt16), ones({2}, kInt16), 1, true), TypeError);
}

TEST_CASE("addmm_: a float32 takes products of 16-bit factors without rounding them") {
  manual_seed(5);
  for (const ScalarType dtype : {kFloat16, kBFloat16}) {
    for (const double beta : {0.0, 1.0, -0.5}) {
      CAPTURE(str(dtype));
      CAPTURE(beta);
      const Tensor a = randn({9, 40}, kFloat64).to(dtype), b = randn({24, 40}, kFloat64).to(dtype);
      const Tensor before = randn({9, 24}, kFloat32);
      Tensor sum = before.clone();
      const auto version = sum._version();
      sum.addmm_(a, b.t(), beta, 2);
      CHECK(sum._version() > version);
      const Tensor expected = before.to(kFloat64) * beta + a.to(kFloat64).mm(b.to(kFloat64).t()) * 2;
      CHECK(sum.to(kFloat64).allclose(expected, 1e-5, 1e-5));
      Tensor turned = before.t().contiguous().t();
      turned.addmm_(a, b.t(), beta, 2);
      CHECK(turned.allclose(sum, 1e-5, 1e-5));
    }
  }
  Tensor uninitialised = full({2, 2}, NAN, kFloat32);
  uninitialised.addmm_(ones({2, 3}, kBFloat16), ones({3, 2}, kBFloat16), 0);
  CHECK(uninitialised.equal(full({2, 2}, 3, kFloat32)));
  Tensor wide = zeros({2, 2}, kFloat64), small = zeros({2, 1}, kFloat32);
  CHECK_THROWS_AS(wide.addmm_(ones({2, 3}, kBFloat16), ones({3, 2}, kBFloat16)), TypeError);
  CHECK_THROWS_AS(small.addmm_(ones({2, 3}, kBFloat16), ones({3, 2}, kBFloat16)), Error);
}

TEST_CASE("matmul: the product that the dimensions ask for") {
  const auto sizes_of = [](IntArrayRef a, IntArrayRef b) { return DimVector(matmul(zeros(a), zeros(b)).sizes()); };
  CHECK(sizes_of({3}, {3}) == DimVector{});
  CHECK(sizes_of({2, 3}, {3}) == DimVector{2});
  CHECK(sizes_of({3}, {3, 4}) == DimVector{4});
  CHECK(sizes_of({2, 3}, {3, 4}) == DimVector{2, 4});
  CHECK(sizes_of({5, 2, 3}, {3, 4}) == DimVector{5, 2, 4});
  CHECK(sizes_of({5, 2, 3}, {3}) == DimVector{5, 2});
  CHECK(sizes_of({3}, {5, 3, 4}) == DimVector{5, 4});
  CHECK(sizes_of({2, 3}, {5, 3, 4}) == DimVector{5, 2, 4});
  CHECK(sizes_of({7, 1, 2, 3}, {5, 3, 4}) == DimVector{7, 5, 2, 4});
  CHECK(sizes_of({0, 2, 3}, {3, 4}) == DimVector{0, 2, 4});

  const Tensor a = whole({3, 1, 4, 5}, kFloat64, 1), b = whole({2, 5, 6}, kFloat64, 2);
  const Tensor c = a.matmul(b);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 2; ++j) {
      check_equal(c.select(0, i).select(0, j), reference(a.select(0, i).select(0, 0), b.select(0, j)));
    }
  }
  const Tensor batch = whole({4, 3, 5}, kFloat64, 3), matrix = b.select(0, 0);
  for (const Tensor& t : {batch, batch.transpose(0, 1), batch.transpose(0, 1).contiguous().transpose(0, 1)}) {
    const Tensor product = t.matmul(matrix);
    for (int64_t i = 0; i < t.size(0); ++i) check_equal(product.select(0, i), reference(t.select(0, i), matrix));
  }
}

TEST_CASE("tensordot: dimensions by pairs; one of size one meets all") {
  const Tensor a = whole({2, 3, 4}, kFloat64, 1), b = whole({4, 5, 2}, kFloat64, 2);
  const Tensor c = tensordot(a, b, {2, 0}, {0, -1});
  const Tensor left = a.permute({1, 2, 0}).reshape({3, 8}), right = b.permute({0, 2, 1}).reshape({8, 5});
  check_equal(c, reference(left, right));
  check_equal(tensordot(whole({1, 2}, kFloat64, 1), whole({3, 2}, kFloat64, 2), 0, 0),
              reference(whole({1, 2}, kFloat64, 1).t(), whole({3, 2}, kFloat64, 2).sum(0, true)));
}

TEST_CASE("products: derivatives") {
  const Tensor m34 = leaf({3, 4}), m45 = leaf({4, 5}, 1), m35 = leaf({3, 5}, 2), v4 = leaf({4}, 3), v3 = leaf({3}, 4);
  const Tensor b1 = leaf({2, 3, 4}, 5), b2 = leaf({2, 4, 5}, 6), b3 = leaf({2, 3, 5}, 7), v5 = leaf({5}, 8);
  const auto check = check_gradients;
  check([](const Tensors& x) { return Tensors{x[0].mm(x[1])}; }, {m34, m45});
  check([](const Tensors& x) { return Tensors{x[0].t().mm(x[1].t())}; }, {leaf({4, 2}), leaf({3, 4}, 1)});
  check([](const Tensors& x) { return Tensors{x[0].bmm(x[1])}; }, {b1, b2});
  check([](const Tensors& x) { return Tensors{x[0].mv(x[1])}; }, {m34, v4});
  check([](const Tensors& x) { return Tensors{x[0].dot(x[1])}; }, {v4, leaf({4}, 9)});
  check([](const Tensors& x) { return Tensors{x[0].addmm(x[1], x[2], 0.5, 2)}; }, {m35, m34, m45});
  check([](const Tensors& x) { return Tensors{x[0].addmm(x[1], x[2])}; }, {v5, m34, m45});
  check([](const Tensors& x) { return Tensors{x[0].baddbmm(x[1], x[2], 0.5, 2)}; }, {b3, b1, b2});
  check([](const Tensors& x) { return Tensors{x[0].addbmm(x[1], x[2], 0.5, 2)}; }, {m35, b1, b2});
  check([](const Tensors& x) { return Tensors{x[0].addmv(x[1], x[2], 0.5, 2)}; }, {v3, m34, v4});
  check([](const Tensors& x) { return Tensors{x[0].addr(x[1], x[2], 0.5, 2)}; }, {m34, v3, v4});
  check([](const Tensors& x) { return Tensors{x[0].clone().addmm_(x[1], x[2], 2, 3)}; }, {m35, m34, m45});
  check([](const Tensors& x) { return Tensors{x[0].matmul(x[1])}; }, {leaf({2, 1, 2, 3}), leaf({2, 3, 2}, 1)});
  check([](const Tensors& x) { return Tensors{x[0].matmul(x[1])}; }, {b1, m45});
  check([](const Tensors& x) { return Tensors{x[0].matmul(x[1])}; }, {m34, b2});
  check([](const Tensors& x) { return Tensors{x[0].inner(x[1])}; }, {b1, v4});
  check([](const Tensors& x) { return Tensors{tensordot(x[0], x[1], {1, 0}, {2, 0})}; }, {b1, leaf({2, 2, 3}, 9)});
}

TEST_CASE("products: shapes on the meta device") {
  const TensorOptions meta(kMeta);
  CHECK(empty({2, 3}, meta).mm(empty({3, 4}, meta)).sizes() == IntArrayRef({2, 4}));
  CHECK(empty({7, 2, 3}, meta).matmul(empty({3, 4}, meta)).is_meta());
  CHECK(addmm(empty({4}, meta), empty({2, 3}, meta), empty({3, 4}, meta)).sizes() == IntArrayRef({2, 4}));
}

TEST_CASE("products: bad input") {
  const Tensor a = zeros({2, 3}), b = zeros({3, 4});
  CHECK_THROWS_WITH_AS(a.mm(a), "mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3): 3 columns against 2 rows",
                       ValueError);
  CHECK_THROWS_AS(a.mm(zeros({3})), ValueError);
  CHECK_THROWS_AS(a.mm(b.to(kFloat64)), TypeError);
  CHECK_THROWS_AS(a.mm(empty({3, 4}, kMeta)), ValueError);
  CHECK_THROWS_AS(zeros({2, 3}, kBool).mm(zeros({3, 4}, kBool)), NotImplementedError);
  CHECK_THROWS_AS(a.bmm(b), ValueError);
  CHECK_THROWS_AS(zeros({2, 2, 3}).bmm(zeros({3, 3, 4})), ValueError);
  CHECK_THROWS_AS(a.mv(zeros({2})), ValueError);
  CHECK_THROWS_AS(a.dot(b), ValueError);
  CHECK_THROWS_AS(a.matmul(a), ValueError);
  CHECK_THROWS_AS(a.matmul(tensor(1.0)), ValueError);
  CHECK_THROWS_AS(zeros({2, 2, 3}).matmul(zeros({3, 3, 4})), ValueError);
  CHECK_THROWS_AS(addmm(zeros({5}), a, b), ValueError);
  CHECK_THROWS_AS(addmm(zeros({4}, kFloat64), a, b), TypeError);
  CHECK_THROWS_AS(tensordot(a, b, {0, 1}, 0), ValueError);
  CHECK_THROWS_AS(tensordot(a, b, 0, 0), ValueError);
  Tensor target = ones({2, 2});
  CHECK_THROWS_AS(target.addmm_(a, b), ValueError);
  CHECK(values(target) == Doubles(4, 1.0));
}

}  // namespace
