#include "core/ops/random/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/functors/random.h"
#include "core/box_muller.h"
#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

constexpr int64_t kDraws = 200000;

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments(const Doubles& x) {
  Moments m;
  for (double v : x) m.mean += v;
  m.mean /= static_cast<double>(x.size());
  for (double v : x) m.variance += (v - m.mean) * (v - m.mean);
  m.variance /= static_cast<double>(x.size());
  return m;
}

// The largest distance between the numbers' distribution and this one (Kolmogorov and Smirnov), in units of what
// happens by chance: above 1.95 once in a thousand times.
template <class Cdf>
double distance(Doubles x, const Cdf& cdf) {
  std::sort(x.begin(), x.end());
  const auto n = static_cast<double>(x.size());
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double p = cdf(x[i]);
    largest = std::max({largest, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
  }
  return largest * std::sqrt(n);
}

Tensor fresh(ScalarType dtype = kFloat32, int64_t n = kDraws) { return zeros(n, dtype); }

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

TEST_CASE("continuous distributions have their distribution functions") {
  manual_seed(1);
  for (const ScalarType dtype : {kFloat32, kFloat64}) {
    CAPTURE(dtype == kFloat64);
    CHECK(distance(values(fresh(dtype).uniform_(-1, 3)), [](double x) { return (x + 1) / 4; }) < 1.95);
    CHECK(distance(values(fresh(dtype).normal_(2, 3)), [](double x) { return normal_cdf((x - 2) / 3); }) < 1.95);
    CHECK(distance(values(fresh(dtype).log_normal_(1, 0.5)),
                   [](double x) { return normal_cdf((std::log(x) - 1) / 0.5); }) < 1.95);
    CHECK(distance(values(fresh(dtype).exponential_(2)), [](double x) { return -std::expm1(-2 * x); }) < 1.95);
    CHECK(distance(values(fresh(dtype).cauchy_(1, 2)),
                   [](double x) { return std::atan((x - 1) / 2) / 3.141592653589793 + 0.5; }) < 1.95);
  }
}

TEST_CASE("discrete distributions have their means and variances") {
  manual_seed(2);
  const double n = kDraws;
  const auto near = [&](const Doubles& x, double mean, double variance) {
    const Moments m = moments(x);
    CHECK(std::abs(m.mean - mean) < 5 * std::sqrt(variance / n));
    CHECK(std::abs(m.variance - variance) < 0.05 * variance);
  };
  for (const ScalarType dtype : {kFloat32, kFloat64, kBool, kInt64}) {
    near(values(fresh(dtype).bernoulli_(0.3)), 0.3, 0.21);
    near(values(fresh(dtype).bernoulli_(full({}, 0.7))), 0.7, 0.21);
  }
  near(values(bernoulli(full(kDraws, 0.9, kFloat64))), 0.9, 0.09);
  near(values(bernoulli(fresh(), 0.5)), 0.5, 0.25);
  for (const ScalarType dtype : {kFloat32, kFloat64, kInt32}) near(values(fresh(dtype).geometric_(0.2)), 5, 20);
  near(values(randint(-3, 8, kDraws)), 2, 10);
  near(values(randint(0, 2, kDraws, kFloat32)), 0.5, 0.25);
  near(values(fresh(kUInt8).random_()), 127.5, 65535 / 12.0);
  near(values(fresh(kBool).random_()), 0.5, 0.25);
  CHECK(distance(values(fresh(kInt64).random_()), [](double x) { return x * 0x1p-63; }) < 1.95);
  CHECK(distance(values(fresh(kInt64).random_(std::numeric_limits<int64_t>::min(), std::optional<int64_t>())),
                 [](double x) { return x * 0x1p-64 + 0.5; }) < 1.95);
  CHECK(distance(values(randint(int64_t{3} << 40, kDraws)), [](double x) { return x / 3 * 0x1p-40; }) < 1.95);
  CHECK(distance(values(randint(int64_t{3} << 30, kDraws)), [](double x) { return x / 3 * 0x1p-30; }) < 1.95);
  const Doubles few = values(randint(5, 8, 1000));
  CHECK(*std::min_element(few.begin(), few.end()) == 5);
  CHECK(*std::max_element(few.begin(), few.end()) == 7);
}

TEST_CASE("16-bit numbers stay inside the range and have the right moments") {
  manual_seed(3);
  for (const ScalarType dtype : {kFloat16, kBFloat16}) {
    const Doubles x = values(rand(kDraws, dtype));
    CHECK(*std::min_element(x.begin(), x.end()) >= 0);
    CHECK(*std::max_element(x.begin(), x.end()) < 1);
    CHECK(std::abs(moments(x).mean - 0.5) < 0.005);
    const Doubles shifted = values(fresh(dtype).uniform_(99, 100));
    CHECK(*std::min_element(shifted.begin(), shifted.end()) >= 99);
    CHECK(*std::max_element(shifted.begin(), shifted.end()) < 100);
    const Moments m = moments(values(randn(kDraws, dtype)));
    CHECK(std::abs(m.mean) < 0.01);
    CHECK(std::abs(m.variance - 1) < 0.02);
    const Doubles e = values(fresh(dtype).exponential_());
    CHECK(*std::min_element(e.begin(), e.end()) > 0);
    CHECK(std::abs(moments(e).mean - 1) < 0.02);
  }
  const Moments parts = moments(values(view_as_real(randn(kDraws, kComplex64))));
  CHECK(std::abs(parts.variance - 0.5) < 0.01);
  CHECK(values(fresh().uniform_(2, 2)) == Doubles(kDraws, 2));
}

// Note [Normal numbers of 16 bits]: over words that lie evenly, the two numbers of a word have the normal distribution
// far better than as many random ones would, each alone and both together.
TEST_CASE("the numbers of one word are normal and independent") {
  constexpr int kWords = 1 << 20;
  Doubles sine(kWords), cosine(kWords);
  double product = 0, of_squares = 0, of_cubes = 0;
  int in_quadrant[4] = {}, in_tail = 0;
  for (size_t i = 0; i < kWords; ++i) {
    const uint32_t word = static_cast<uint32_t>(i) * 4096 + 2049;
    const NormalPair<float> pair = box_muller(word, functors::spread(word));
    const double s = sine[i] = pair.sine, c = cosine[i] = pair.cosine;
    product += s * c;
    of_squares += s * s * c * c;
    of_cubes += s * s * s * c;
    in_quadrant[(s > 0) * 2 + (c > 0)] += 1;
    in_tail += std::abs(s) > 4;
  }
  constexpr double n = kWords;
  CHECK(distance(sine, normal_cdf) < 0.1);
  CHECK(distance(cosine, normal_cdf) < 0.1);
  CHECK(std::abs(product / n) < 1e-4);
  CHECK(std::abs(of_squares / n - 1) < 1e-3);
  CHECK(std::abs(of_cubes / n) < 1e-3);
  for (int count : in_quadrant) CHECK(std::abs(count / n - 0.25) < 1e-4);
  CHECK(in_tail == doctest::Approx(n * 2 * normal_cdf(-4)).epsilon(0.1));
}

// The numbers of Note [One random stream], computed here word by word.
TEST_CASE("element i takes the words that the Note gives it") {
  const PhiloxState first{5, 0};
  const auto draw = [](const Tensor& t, auto fill) {
    manual_seed(5);
    fill(t);
    return values(t);
  };
  const auto uniform = [](const Tensor& t) { t.uniform_(); };
  const auto normal = [](const Tensor& t) { t.normal_(); };
  const Doubles u = draw(fresh(kFloat32, 11), uniform), ud = draw(fresh(kFloat64, 11), uniform);
  const Doubles z = draw(fresh(kFloat32, 11), normal), zd = draw(fresh(kFloat64, 11), normal);
  const Doubles zh = draw(fresh(kHalf, 11), normal), zb = draw(fresh(kBFloat16, 11), normal);
  for (uint64_t i = 0; i < 11; ++i) {
    CHECK(u[i] == uniform_real(philox_word(first, i)));
    CHECK(ud[i] == uniform_real_double(join_words(philox_word(first, 2 * i), philox_word(first, 2 * i + 1))));
    const auto pair = box_muller(philox_word(first, i / 2 * 2), philox_word(first, i / 2 * 2 + 1));
    CHECK(z[i] == (i % 2 ? pair.cosine : pair.sine));
    const auto wide = box_muller(philox_block(first, i / 2));
    CHECK(zd[i] == (i % 2 ? wide.cosine : wide.sine));
    const uint32_t word = philox_word(first, i / 2);
    const auto short_pair = box_muller(word, word * 2654435769u);
    CHECK(zh[i] == Half(i % 2 ? short_pair.cosine : short_pair.sine));
    CHECK(zb[i] == BFloat16(i % 2 ? short_pair.cosine : short_pair.sine));
  }
  // One reservation of a block, whatever the size.
  manual_seed(5);
  rand({3});
  CHECK(default_generator().get_offset() == 4);
  rand({0});
  rand({2}, kMeta);
  CHECK(default_generator().get_offset() == 4);
}

TEST_CASE("strides and threads change nothing") {
  const int threads = get_num_threads();
  const auto all = [] {
    manual_seed(6);
    Doubles drawn;
    const auto add = [&](const Tensor& t) {
      for (double v : values(t)) drawn.push_back(v);
    };
    add(rand({300, 701}));
    add(randn({300, 701}, kFloat64));
    add(randint(1000, {300, 701}));
    add(randperm(100001));
    add(dropout(ones({300, 701}), 0.3, true));
    return drawn;
  };
  set_num_threads(1);
  const Doubles one = all();
  for (const int count : {2, 3}) {
    set_num_threads(count);
    CHECK(all() == one);
  }
  set_num_threads(threads);
  manual_seed(7);
  const Doubles straight = values(zeros({3, 5}).uniform_());
  manual_seed(7);
  CHECK(values(zeros({5, 3}).t().uniform_()) == straight);
}

TEST_CASE("generators: seeds, states and their devices") {
  manual_seed(8);
  const Doubles first = values(randn({5})), second = values(randn({5}));
  CHECK(first != second);
  manual_seed(8);
  CHECK(values(randn({5})) == first);
  CHECK(values(randn({5})) == second);

  Generator own = make_generator<CPUGeneratorImpl>(8);
  CHECK(values(randn({5}, own)) == first);
  const auto state = own.get_state();
  CHECK(values(zeros({5}).normal_(0, 1, own)) == second);
  own.set_state(state);
  CHECK(values(normal(0, 1, {5}, own)) == second);
  own.set_current_seed(8);
  CHECK(values(rand({2}, own, kFloat64)) != values(rand({2}, own, kFloat64)));
  const auto untouched = default_generator().get_offset();
  randperm(5, own);
  bernoulli(rand({5}, own), own);
  CHECK(default_generator().get_offset() == untouched);
  // A call that fails draws nothing.
  CHECK_THROWS_AS(zeros({3}).uniform_(1, 0), ValueError);
  CHECK_THROWS_AS(zeros({3}, kInt64).uniform_(), TypeError);
  CHECK_THROWS_AS(zeros({1}).expand({3}).uniform_(), ValueError);
  CHECK(default_generator().get_offset() == untouched);
}

TEST_CASE("randperm holds every number once and favours none") {
  manual_seed(9);
  Longs seen(20, 0);
  double first_sum = 0;
  for (int round = 0; round < 2000; ++round) {
    const Doubles order = values(randperm(20));
    std::vector<bool> there(20, false);
    for (double v : order) there[static_cast<size_t>(v)] = true;
    CHECK(std::count(there.begin(), there.end(), true) == 20);
    first_sum += order[0];
    ++seen[static_cast<size_t>(order[3])];
  }
  CHECK(std::abs(first_sum / 2000 - 9.5) < 0.7);
  for (int64_t count : seen) CHECK(std::abs(static_cast<double>(count) - 100) < 50);
  CHECK(randperm(5, kInt32).scalar_type() == kInt32);
  CHECK(randperm(0).sizes() == IntArrayRef({0}));
  CHECK(randperm(4, kMeta).sizes() == IntArrayRef({4}));
  CHECK_THROWS_AS(randperm(-1), ValueError);
  CHECK_THROWS_AS(randperm(300, kUInt8), ValueError);
  CHECK_THROWS_AS(randperm(3, kBool), TypeError);
}

TEST_CASE("normal numbers around tensors, and numbers like a tensor") {
  manual_seed(10);
  const Tensor mean = full({kDraws}, 3.0), std = full({kDraws}, 2.0);
  for (const Tensor& x : {normal(mean, 2), normal(3, std), normal(mean, std), normal(3, 2, kDraws)}) {
    CHECK(distance(values(x), [](double v) { return normal_cdf((v - 3) / 2); }) < 1.95);
  }
  CHECK(normal(zeros({2, 1}), ones({3})).sizes() == IntArrayRef({2, 3}));
  CHECK_THROWS_AS(normal(zeros({2}), -1), ValueError);
  CHECK_THROWS_AS(normal(0, full({2}, -1.0)), ValueError);
  const Tensor columns = zeros({2, 3}, kFloat64).t();
  for (const Tensor& like : {rand_like(columns), randn_like(columns), randint_like(columns, 5)}) {
    CHECK(like.sizes() == columns.sizes());
    CHECK(like.strides() == columns.strides());
    CHECK(like.scalar_type() == kFloat64);
  }
  CHECK(randint_like(columns, 2, 5, kInt8).scalar_type() == kInt8);
  CHECK(rand({2, 3}, requires_grad()).requires_grad());
  CHECK(randint(5, {2, 3}, kMeta).sizes() == IntArrayRef({2, 3}));
}

TEST_CASE("bad parameters are refused and change nothing") {
  const Tensor x = ones({3});
  CHECK_THROWS_AS(x.normal_(0, -1), ValueError);
  CHECK_THROWS_AS(x.exponential_(0), ValueError);
  CHECK_THROWS_AS(x.log_normal_(0, 0), ValueError);
  CHECK_THROWS_AS(x.cauchy_(0, -1), ValueError);
  CHECK_THROWS_AS(x.geometric_(1), ValueError);
  CHECK_THROWS_AS(x.bernoulli_(1.5), ValueError);
  CHECK_THROWS_AS(x.bernoulli_(full({3}, 1.5)), ValueError);
  CHECK_THROWS_AS(x.bernoulli_(zeros({2})), ValueError);
  CHECK_THROWS_AS(x.bernoulli_(zeros({3}, kInt64)), TypeError);
  CHECK_THROWS_AS(x.random_(5, 5), ValueError);
  CHECK_THROWS_AS(x.random_((1 << 24) + 2), ValueError);
  CHECK_THROWS_AS(x.uniform_(-INFINITY, 0), ValueError);
  CHECK_THROWS_AS(zeros({3}, kUInt8).random_(-1, 3), ValueError);
  CHECK_THROWS_AS(zeros({3}, kComplex64).random_(), TypeError);
  CHECK_THROWS_AS(zeros({3}, kInt64).normal_(), TypeError);
  CHECK_THROWS_AS(bernoulli(zeros({3}, kInt64)), TypeError);
  CHECK_THROWS_AS(randint(0, {3}), ValueError);
  CHECK_THROWS_AS(randint(INT64_MIN, {3}), ValueError);
  CHECK(values(x) == Doubles{1, 1, 1});
}

TEST_CASE("multinomial") {
  manual_seed(11);
  const Tensor weights = tensor({1.0, 0.0, 3.0, 6.0}, kFloat64);
  Doubles often(4, 0);
  for (double i : values(multinomial(weights, kDraws, true))) ++often[static_cast<size_t>(i)];
  CHECK(often[1] == 0);
  for (size_t i = 0; i < 4; ++i) {
    const double p = weights.data_ptr<double>()[i] / 10;
    CHECK(std::abs(often[i] / kDraws - p) < 5 * std::sqrt(0.25 / kDraws));
  }
  // Without replacement: the first of two is drawn as one is, and both differ.
  Doubles first(4, 0);
  const Tensor pairs = multinomial(weights.expand({20000, 4}), 2);
  CHECK(pairs.sizes() == IntArrayRef({20000, 2}));
  const Doubles drawn = values(pairs);
  bool distinct = true;
  for (size_t i = 0; i < drawn.size(); i += 2) {
    ++first[static_cast<size_t>(drawn[i])];
    distinct = distinct && drawn[i] != drawn[i + 1] && drawn[i] != 1 && drawn[i + 1] != 1;
  }
  CHECK(distinct);
  CHECK(std::abs(first[3] / 20000 - 0.6) < 0.02);
  CHECK(std::abs(first[0] / 20000 - 0.1) < 0.02);
  Doubles order = values(multinomial(ones({7}, kFloat16), 7));
  std::sort(order.begin(), order.end());
  CHECK(order == Doubles{0, 1, 2, 3, 4, 5, 6});
  // However many are drawn, the first is the one that is drawn alone; the rows are of every length that is sorted
  // apart.
  for (const int64_t n : {100, 1000, 10000}) {
    const Tensor rows = rand({3, n}, kFloat64);
    const auto draw = [&](int64_t samples) {
      manual_seed(15);
      return multinomial(rows, samples);
    };
    const Tensor several = draw(40);
    CHECK(several.slice(1, 0, 1).equal(draw(1)));
    CHECK(several.slice(1, 0, 7).equal(draw(7)));
    CHECK(std::get<0>(several.sort(1)).diff(1, 1).ne(0).all().item<bool>());
  }
  CHECK(multinomial(zeros({0, 3}), 2).sizes() == IntArrayRef({0, 2}));
  CHECK(multinomial(empty({5, 3}, kMeta), 2).sizes() == IntArrayRef({5, 2}));
  CHECK_THROWS_AS(multinomial(weights, 4), ValueError);
  CHECK_THROWS_AS(multinomial(weights, 5), ValueError);
  CHECK_THROWS_AS(multinomial(weights, 0), ValueError);
  CHECK_THROWS_AS(multinomial(zeros({3}), 1, true), ValueError);
  CHECK_THROWS_AS(multinomial(tensor({1.0, -1.0}), 1), ValueError);
  CHECK_THROWS_AS(multinomial(tensor({1.0, NAN}), 1), ValueError);
  CHECK_THROWS_AS(multinomial(tensor({1, 2}), 1), TypeError);
  CHECK_THROWS_AS(multinomial(zeros({1, 2, 3}), 1), ValueError);
}

TEST_CASE("native_dropout_backward multiplies by the mask and the scale, in every layout and dtype") {
  manual_seed(14);
  for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kComplexFloat, kComplexDouble}) {
    for (const int64_t columns : {1, 7, 8, 1003}) {
      const Tensor grad = randn({5, columns}, dtype), mask = rand({5, columns}).gt(0.4);
      const Tensor wanted = grad * mask * 1.25;
      for (const Tensor& laid_out : {grad, grad.t().contiguous().t(), cat({grad, grad}, 1).slice(1, 1, columns + 1)}) {
        const Tensor expected = laid_out.equal(grad) ? wanted : laid_out * mask * 1.25;
        CHECK(native_dropout_backward(laid_out, mask, 1.25).equal(expected));
        CHECK(native_dropout_backward(laid_out, mask.t().contiguous().t(), 1.25).equal(expected));
      }
    }
  }
  // The scale of a double is a double, complex or not.
  const Tensor z = randn({100}, kComplexDouble);
  const auto [dropped, flags] = native_dropout(z, 0.3, true);
  CHECK(allclose(dropped, z * flags / 0.7, 1e-15, 0));
  CHECK(allclose(native_dropout_backward(z, flags, 1 / 0.7), dropped, 1e-15, 0));
  const Doubles rare =
      values(native_dropout_backward(tensor({INFINITY, INFINITY, NAN, 3.0}), tensor({true, false, false, false}), 2));
  CHECK(rare[0] == INFINITY);
  CHECK((std::isnan(rare[1]) && std::isnan(rare[2])));
  CHECK(rare[3] == 0);
  CHECK(native_dropout_backward(empty({0, 3}), empty({0, 3}, kBool), 2).sizes() == IntArrayRef({0, 3}));
  CHECK(native_dropout_backward(empty({4, 3}, kMeta), empty({4, 3}, TensorOptions(kBool).device(kMeta)), 2).sizes() ==
        IntArrayRef({4, 3}));
  CHECK_THROWS_AS(native_dropout_backward(ones({3}), ones({3}), 2), TypeError);
  // Integers times a scale that is a double: of the default dtype. A mask of integers is multiplied with.
  const Tensor whole = native_dropout_backward(tensor({3, 5, 7}), tensor({true, false, true}), 1.5);
  CHECK(whole.scalar_type() == kFloat32);
  CHECK(values(whole) == std::vector<double>{4.5, 0, 10.5});
  CHECK(values(native_dropout_backward(tensor({3., 5., 7.}), tensor({1, 0, 2}), 1.5)) ==
        std::vector<double>{4.5, 0, 21});
  CHECK(native_dropout_backward(ones({3}, kInt64), ones({3}, kInt32), 2).equal(full({3}, 2.0)));
}

TEST_CASE("dropout keeps the mean, and its gradient the mask") {
  manual_seed(12);
  const Tensor x = full({kDraws}, 2.0);
  const auto [out, mask] = native_dropout(x, 0.25, true);
  CHECK(mask.scalar_type() == kBool);
  CHECK(std::abs(moments(values(out)).mean - 2) < 0.02);
  CHECK(values(out) == values(x * mask / 0.75));
  CHECK(values(dropout(x, 1, true)) == Doubles(kDraws, 0));
  CHECK(dropout(x, 0.5, false).is_same(x));
  CHECK(values(std::get<0>(native_dropout(x, 0.5, false))) == values(x));
  const Tensor channels = feature_dropout(ones({50, 40, 3, 3}), 0.5, true);
  const Doubles sums = values(channels.sum({2, 3}));
  CHECK(std::all_of(sums.begin(), sums.end(), [](double s) { return s == 0 || s == 18; }));
  CHECK(std::abs(moments(sums).mean - 9) < 0.7);
  const Moments alpha = moments(values(alpha_dropout(randn(kDraws), 0.3, true)));
  CHECK(std::abs(alpha.mean) < 0.02);
  CHECK(std::abs(alpha.variance - 1) < 0.03);
  CHECK(feature_alpha_dropout(randn({4, 5, 6}), 0.5, true).sizes() == IntArrayRef({4, 5, 6}));
  Tensor y = x.clone();
  CHECK(std::abs(moments(values(dropout_(y, 0.5, true))).mean - 2) < 0.05);
  CHECK(dropout(ones({100}, kBFloat16), 0.5, true).scalar_type() == kBFloat16);
  CHECK(dropout(empty({3}, kMeta), 0.5, true).sizes() == IntArrayRef({3}));
  CHECK_THROWS_AS(dropout(x, 1.5, true), ValueError);
  CHECK_THROWS_AS(dropout(zeros({3}, kInt64), 0.5, true), TypeError);
  CHECK_THROWS_AS(feature_dropout(zeros({3}), 0.5, true), ValueError);

  // The same seed for every evaluation makes a function of it.
  const auto seeded = [](auto fn) {
    return [fn](const Tensors& x) {
      manual_seed(13);
      return Tensors{fn(x[0])};
    };
  };
  check_gradients(seeded([](const Tensor& t) { return dropout(t, 0.4, true); }), {leaf({3, 4})});
  check_gradients(seeded([](const Tensor& t) { return dropout(t.t(), 0.4, true); }), {leaf({3, 4})});
  check_gradients(seeded([](const Tensor& t) { return feature_dropout(t, 0.4, true); }), {leaf({3, 4, 2})});
  check_gradients(seeded([](const Tensor& t) { return alpha_dropout(t, 0.4, true); }), {leaf({3, 4})});
  check_gradients(seeded([](const Tensor& t) {
                    Tensor y = t * t;
                    return dropout_(y, 0.4, true) * t;
                  }),
                  {leaf({3, 4})});
  check_gradients(seeded([](const Tensor& t) {
                    const Tensor y = t * t;
                    y.select(0, 1).normal_();
                    return y * t;
                  }),
                  {leaf({3, 4})});
}

}  // namespace
