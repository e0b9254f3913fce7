// Operators on lists of tensors against the same on each.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/ops/reduce/reduce_testing.h"

using namespace rush;
using namespace rush::testing;

namespace {

// Tensors of many sizes: empty, of a vector and a bit, of several chunks of a launch; and one that starts in the middle
// of a vector.
std::vector<Tensor> list_of(ScalarType dtype, size_t most_elements) {
  manual_seed(3);
  std::vector<Tensor> tensors;
  for (const int64_t size : {1, 7, 8, 0, 4097, 32768, 70001}) {
    if (static_cast<size_t>(size) <= most_elements) tensors.push_back(randn({size}, kFloat64).to(dtype));
  }
  tensors.push_back(randn({6, 5}, kFloat64).to(dtype).t());
  tensors.push_back(randn({1030}, kFloat64).to(dtype).slice(0, 1));
  return tensors;
}

double reference_norm(const Tensor& t, double ord) {
  double norm = 0;
  for (const double x : values(t.to(kFloat64))) {
    norm = ord == kInf ? std::max(norm, std::abs(x)) : norm + std::pow(std::abs(x), ord);
  }
  return ord == kInf ? norm : std::pow(norm, 1 / ord);
}

double rounding(ScalarType dtype) {
  return dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-5 : dtype == kFloat16 ? 2e-3 : 1e-2;
}

}  // namespace

TEST_CASE("_foreach_norm is the norm of each") {
  for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    for (const double ord : {1.0, 2.0, kInf, 3.0}) {
      INFO(str(dtype, " order ", ord));
      std::vector<Tensor> tensors = list_of(dtype, 100000);
      if (ord == kInf) tensors.erase(tensors.begin() + 3);  // nothing has no largest magnitude
      // Sums of thousands of magnitudes do not fit a float16.
      const auto wide = dtype == kFloat16 ? std::optional(kFloat32) : std::nullopt;
      const std::vector<Tensor> norms = _foreach_norm(tensors, ord, wide);
      REQUIRE(norms.size() == tensors.size());
      for (size_t i = 0; i < tensors.size(); ++i) {
        CAPTURE(i);
        CHECK(norms[i].dim() == 0);
        CHECK(norms[i].scalar_type() == wide.value_or(dtype));
        CHECK(norms[i].to(kFloat64).item<double>() ==
              doctest::Approx(reference_norm(tensors[i], ord)).epsilon(rounding(dtype)));
      }
    }
  }
}

TEST_CASE("foreach_total_norm is the norm of all as one vector") {
  for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    for (const double ord : {1.0, 2.0, kInf, 3.0}) {
      INFO(str(dtype, " order ", ord));
      // Sums of many magnitudes do not fit a float16.
      std::vector<Tensor> tensors = list_of(dtype, dtype == kFloat16 ? 3000 : 100000);
      if (ord == kInf) tensors.erase(tensors.begin() + 3);
      std::vector<Tensor> flat;
      for (const Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
      const Tensor norm = foreach_total_norm(tensors, ord);
      CHECK(norm.dim() == 0);
      CHECK(norm.scalar_type() == dtype);
      // Where there is no kernel, the norms of which this is the norm are rounded too.
      const double tolerance = rounding(dtype) * (ord == 3 ? 2 : 1);
      CHECK(norm.to(kFloat64).item<double>() == doctest::Approx(reference_norm(cat(flat), ord)).epsilon(tolerance));
    }
  }
  CHECK(foreach_total_norm({ones({2, 2}).expand({3, 2, 2}), ones({4})}).item<double>() == doctest::Approx(4));
  CHECK(std::isnan(foreach_total_norm({full({5}, NAN), ones({3})}, kInf).item<double>()));
  CHECK_THROWS_AS(foreach_total_norm(std::vector<Tensor>()), ValueError);
  CHECK_THROWS_AS(foreach_total_norm({ones({2}), ones({2}, kFloat64)}), TypeError);
}

TEST_CASE("norms of more tensors than a launch takes, and of those that differ") {
  std::vector<Tensor> tensors;
  for (int i = 0; i < 1100; ++i) tensors.push_back(full({1 + i % 3}, i, kFloat32));
  const Tensor norms = foreach_norms(tensors);
  REQUIRE(norms.sizes() == IntArrayRef({1100}));
  for (const int64_t i : {0, 1, 94, 95, 479, 480, 481, 959, 960, 1099}) {
    CHECK(norms[i].item<double>() ==
          doctest::Approx(static_cast<double>(i) * std::sqrt(1 + static_cast<double>(i % 3))));
  }
  double squares = 0;
  for (int i = 0; i < 1100; ++i) squares += static_cast<double>(i) * i * (1 + i % 3);
  CHECK(foreach_total_norm(tensors).item<double>() == doctest::Approx(std::sqrt(squares)));
  const std::vector<Tensor> mixed =
      _foreach_norm({tensor({3., 4.}, kFloat32), tensor({6., 8.}, kFloat64), zeros({2}, kComplex64)});
  CHECK(mixed[0].item<double>() == doctest::Approx(5));
  CHECK(mixed[1].scalar_type() == kFloat64);
  CHECK(mixed[1].item<double>() == doctest::Approx(10));
  CHECK(mixed[2].scalar_type() == kFloat32);
  CHECK(foreach_norms({ones({2, 2}).expand({3, 2, 2})}).item<double>() == doctest::Approx(std::sqrt(12.)));
  CHECK(std::isnan(foreach_norms({full({5}, NAN)}, kInf).item<double>()));
  CHECK_THROWS_AS(_foreach_norm(std::vector<Tensor>()), ValueError);
  CHECK_THROWS_AS(foreach_norms({ones({2}), ones({2}, kFloat64)}), TypeError);
  CHECK_THROWS_AS(_foreach_norm({tensor({1, 2})}), TypeError);
}

TEST_CASE("_foreach_norm is differentiable") {
  check_gradients(
      [](const Tensors& in) {
        return Tensors(_foreach_norm({in[0], in[1]}, 3));
      },
      {leaf({3, 4}, 0.5), leaf(5, 0.4)});
}

TEST_CASE("_foreach_mul_ multiplies each") {
  for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    for (const double factor : {-0.75, 1.0}) {
      INFO(str(dtype, " factor ", factor));
      const std::vector<Tensor> tensors = list_of(dtype, 100000);
      std::vector<Tensor> expected;
      for (const Tensor& t : tensors) expected.push_back((t.to(kFloat64) * factor).to(dtype));
      const auto version = tensors[0]._version();
      _foreach_mul_(tensors, full({}, factor, dtype));
      CHECK(tensors[0]._version() > version);
      for (size_t i = 0; i < tensors.size(); ++i) CHECK(tensors[i].equal(expected[i]));
    }
  }
}

TEST_CASE("_foreach_mul_: other dtypes, and what is refused") {
  const Tensor real = ones({2}, kFloat64), complex = ones({2}, kComplex64), number = full({}, 3, kFloat32);
  _foreach_mul_({real, complex}, number);
  CHECK(real[1].item<double>() == 3);
  CHECK(complex.abs()[1].item<double>() == 3);
  const Tensor integers = ones({2}, kInt64);
  CHECK_THROWS_AS(_foreach_mul_({real, integers}, number), TypeError);
  CHECK(real[1].item<double>() == 3);  // unchanged
  CHECK_THROWS_AS(_foreach_mul_({real}, ones({1})), ValueError);
  CHECK_THROWS_AS(_foreach_mul_(std::vector<Tensor>(), number), ValueError);
}

TEST_CASE("foreach_to_copy casts each, with its strides") {
  std::vector<Tensor> tensors = {randn({40001}), randn({3, 5}).t(), empty({0}), randn({}),
                                 randn({70}).narrow(0, 1, 69)};
  for (const ScalarType from : {kFloat32, kFloat64, kBFloat16, kFloat16}) {
    for (const ScalarType to : {kFloat32, kFloat64, kBFloat16, kFloat16}) {
      CAPTURE(from);
      CAPTURE(to);
      std::vector<Tensor> sources;
      for (const Tensor& t : tensors) sources.push_back(t.to(from));
      const std::vector<Tensor> copies = foreach_to_copy(sources, to);
      REQUIRE(copies.size() == sources.size());
      for (size_t i = 0; i < copies.size(); ++i) {
        CHECK(copies[i].scalar_type() == to);
        CHECK(copies[i].strides() == sources[i].strides());
        CHECK(copies[i].equal(sources[i].to(to)));
      }
    }
  }
  CHECK_THROWS_AS(foreach_to_copy(std::vector<Tensor>(), kFloat32), ValueError);
  CHECK_THROWS_AS(foreach_to_copy({ones({2}), ones({2}, kFloat64)}, kFloat16), TypeError);
  CHECK_THROWS_AS(foreach_to_copy({ones({2})}, kInt32), TypeError);
  CHECK_THROWS_AS(foreach_to_copy({ones({2})}, kFloat8_e4m3fn), TypeError);
  CHECK_THROWS_AS(foreach_to_copy({ones({2}).to(kFloat8_e4m3fn)}, kFloat32), TypeError);
  CHECK_THROWS_AS(foreach_to_copy({ones({4, 4}).narrow(1, 0, 2)}, kFloat16), ValueError);
}

// Sizes that do not divide a tensor, that are larger, and of none; and more pieces than a launch takes.
TEST_CASE("foreach_to_blocks_ and foreach_from_blocks_ are each other's way back") {
  const int64_t rows = 3;
  std::vector<int64_t> lengths{40001, 15, 0, 1, 70, 7}, sizes{20000, 5, 0, 1, 24, 9};
  for (int64_t i = 0; i < 300; ++i) {
    lengths.push_back(i % 5);
    sizes.push_back(2);
  }
  const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  for (const ScalarType of_blocks : {kFloat32, kBFloat16, kFloat64}) {
    CAPTURE(of_blocks);
    std::vector<Tensor> tensors, back;
    for (const int64_t n : lengths) {
      tensors.push_back(randint(-100, 100, {n}).to(kFloat32));
      back.push_back(zeros({n}));
    }
    tensors[1] = randint(-100, 100, {5, 3}).to(kFloat32).t();
    back[1] = zeros({3, 5});
    const Tensor blocks = full({rows + 1, all}, -7, of_blocks).narrow(0, 1, rows);  // which begins in the middle
    const uint32_t version = blocks._version();
    foreach_to_blocks_(blocks, tensors, sizes);
    CHECK(blocks._version() > version);
    const Tensor expected = full({rows, all}, -7, of_blocks);
    for (size_t i = 0, start = 0; i < tensors.size(); start += static_cast<size_t>(sizes[i++])) {
      const Tensor flat = tensors[i].reshape({-1});
      for (int64_t r = 0; r * sizes[i] < flat.numel(); ++r) {
        const int64_t n = std::min(sizes[i], flat.numel() - r * sizes[i]);
        expected[r].narrow(0, static_cast<int64_t>(start), n).copy_(flat.narrow(0, r * sizes[i], n));
      }
    }
    CHECK(blocks.equal(expected));
    foreach_from_blocks_(back, blocks, sizes);
    for (size_t i = 0; i < tensors.size(); ++i) CHECK(back[i].equal(tensors[i]));
  }
  // What no kernel takes goes one by one.
  const Tensor mixed = zeros({2, 4});
  foreach_to_blocks_(mixed, {full({2}, 3, kInt64), full({3}, 5., TensorOptions(kFloat64).device(kCPU))}, {1, 3});
  CHECK(mixed.equal(tensor({3., 5., 5., 5., 3., 0., 0., 0.}).to(kFloat32).view({2, 4})));

  const Tensor one = ones({4});
  CHECK_THROWS_AS(foreach_to_blocks_(zeros({2, 3}), {one}, {3, 0}), ValueError);
  CHECK_THROWS_AS(foreach_to_blocks_(zeros({2, 3}), {one}, {2}), ValueError);
  CHECK_THROWS_AS(foreach_to_blocks_(zeros({2, 1}), {one}, {1}), ValueError);
  CHECK_THROWS_AS(foreach_to_blocks_(zeros({2, 2}), {one, one}, {3, -1}), ValueError);
  CHECK_THROWS_AS(foreach_to_blocks_(zeros({2, 4}).t(), {one}, {2}), ValueError);
  CHECK_THROWS_AS(foreach_to_blocks_(zeros({2}), {one}, {2}), ValueError);
  CHECK_THROWS_AS(foreach_to_blocks_(zeros({2, 2}), std::vector<Tensor>(), {}), ValueError);
  CHECK_THROWS_AS(foreach_to_blocks_(zeros({2, 2}), {Tensor()}, {2}), ValueError);
  CHECK_THROWS_AS(foreach_from_blocks_({zeros({2, 2}).t()}, zeros({2, 2}), {2}), ValueError);
  CHECK_THROWS_AS(foreach_to_blocks_(zeros({2, 2}), {one.to_sparse()}, {2}), NotImplementedError);
  const Tensor leaf = zeros({4}).requires_grad_();  // as in every operator in place
  CHECK_THROWS_AS(foreach_from_blocks_({leaf}, ones({2, 2}), {2}), Error);
  CHECK_THROWS_AS(foreach_to_blocks_(zeros({2, 2}).requires_grad_(), {one}, {2}), Error);
  CHECK(leaf.detach().equal(zeros({4})));
}

TEST_CASE("foreach_scale_ takes tensors that are alike") {
  const Tensor a = ones({3}), b = ones({2, 2});
  ops::foreach_scale_({a, b}, full({}, 3.));
  CHECK(a.equal(full({3}, 3.)));
  CHECK(b.equal(full({2, 2}, 3.)));
  CHECK_THROWS_AS(ops::foreach_scale_({a}, ones({1})), ValueError);
  CHECK_THROWS_AS(ops::foreach_scale_({a}, ones({}, kFloat64)), TypeError);
  CHECK_THROWS_AS(ops::foreach_scale_({a, ones({2}, kFloat64)}, ones({})), TypeError);
  CHECK(a.equal(full({3}, 3.)));
}
