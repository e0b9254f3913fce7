#include <cmath>

#include "tests/ops/reduce/reduce_testing.h"

using namespace rush;
using namespace rush::testing;

namespace {

double sum_of(const Doubles& v) {
  double total = 0;
  for (double x : v) total += x;
  return total;
}
double product_of(const Doubles& v) {
  double total = 1;
  for (double x : v) total *= x;
  return total;
}
double deviations(const Doubles& v) {
  const double mean = sum_of(v) / static_cast<double>(v.size());
  double total = 0;
  for (double x : v) total += (x - mean) * (x - mean);
  return total;
}
double power_norm(const Doubles& v, double p) {
  double total = 0;
  for (double x : v) total += std::pow(std::abs(x), p);
  return std::pow(total, 1 / p);
}
double extreme_size(const Doubles& v, bool largest) {
  double best = largest ? 0 : kInf;
  for (double x : v) best = largest ? std::max(best, std::abs(x)) : std::min(best, std::abs(x));
  return best;
}

struct Reducing {
  std::string name;
  std::function<Tensor(const Tensor&, IntArrayRef, bool)> run;
  NaiveFunction expected;
  bool needs_elements = false;
};

// The answers of all reductions to a set of dimensions, written out as loops in double.
const std::vector<Reducing>& reductions() {
  static const std::vector<Reducing> table = {
      {"sum", [](const Tensor& t, IntArrayRef d, bool k) { return t.sum(d, k); }, sum_of},
      {"nansum", [](const Tensor& t, IntArrayRef d, bool k) { return t.nansum(d, k); }, sum_of},
      {"mean", [](const Tensor& t, IntArrayRef d, bool k) { return t.mean(d, k); },
       [](const Doubles& v) { return sum_of(v) / static_cast<double>(v.size()); }},
      {"amax", [](const Tensor& t, IntArrayRef d, bool k) { return t.amax(d, k); },
       [](const Doubles& v) { return *std::max_element(v.begin(), v.end()); }, true},
      {"amin", [](const Tensor& t, IntArrayRef d, bool k) { return t.amin(d, k); },
       [](const Doubles& v) { return *std::min_element(v.begin(), v.end()); }, true},
      {"var", [](const Tensor& t, IntArrayRef d, bool k) { return t.var(d, Scalar(0), k); },
       [](const Doubles& v) { return deviations(v) / static_cast<double>(v.size()); }},
      {"std", [](const Tensor& t, IntArrayRef d, bool k) { return t.std(d, Scalar(0.5), k); },
       [](const Doubles& v) {
         return v.empty() ? kNan : std::sqrt(deviations(v) / (static_cast<double>(v.size()) - 0.5));
       }},
      {"logsumexp", [](const Tensor& t, IntArrayRef d, bool k) { return t.logsumexp(d, k); },
       [](const Doubles& v) {
         double total = 0;
         for (double x : v) total += std::exp(x);
         return std::log(total);
       }},
      {"norm 0", [](const Tensor& t, IntArrayRef d, bool k) { return t.norm(0, d, k); },
       [](const Doubles& v) { return static_cast<double>(v.size()); }},
      {"norm 1", [](const Tensor& t, IntArrayRef d, bool k) { return t.norm(1, d, k); },
       [](const Doubles& v) { return power_norm(v, 1); }},
      {"norm 2", [](const Tensor& t, IntArrayRef d, bool k) { return t.norm(std::nullopt, d, k); },
       [](const Doubles& v) { return power_norm(v, 2); }},
      {"norm 3.5", [](const Tensor& t, IntArrayRef d, bool k) { return t.norm(3.5, d, k); },
       [](const Doubles& v) { return power_norm(v, 3.5); }},
      {"norm inf", [](const Tensor& t, IntArrayRef d, bool k) { return t.norm(kInf, d, k); },
       [](const Doubles& v) { return extreme_size(v, true); }, true},
      {"norm -inf", [](const Tensor& t, IntArrayRef d, bool k) { return t.norm(-kInf, d, k); },
       [](const Doubles& v) { return extreme_size(v, false); }, true}};
  return table;
}

bool reduces_nothing(const Tensor& self, const DimVector& dims) {
  for (int64_t d : dims) {
    if (self.size(d) == 0) return true;
  }
  return false;
}

void check_all(ScalarType dtype, double tolerance) {
  for (const Arrangement& layout : arrangements(dtype)) {
    for (const DimVector& dims : dimension_choices(layout.tensor)) {
      for (const Reducing& reduction : reductions()) {
        CAPTURE(layout.name);
        CAPTURE(reduction.name);
        CAPTURE(str(IntArrayRef(dims)));
        if (reduction.needs_elements && reduces_nothing(layout.tensor, dims)) {
          CHECK_THROWS_AS(reduction.run(layout.tensor, dims, false), Error);
          continue;
        }
        const Tensor result = reduction.run(layout.tensor, dims, false);
        CHECK(close(values(result), naive(layout.tensor, dims, reduction.expected), tolerance));
        DimVector kept(layout.tensor.sizes());
        for (int64_t d : dims) kept[d] = 1;
        CHECK(reduction.run(layout.tensor, dims, true).sizes() == IntArrayRef(kept));
      }
    }
  }
}

}  // namespace

TEST_CASE("reductions over any dimensions of any layout agree with plain loops") {
  check_all(kFloat64, 1e-11);
  check_all(kFloat32, 3e-5);
}

TEST_CASE("prod and the counts agree with plain loops") {
  for (const Arrangement& layout : arrangements(kFloat64)) {
    CAPTURE(layout.name);
    for (int64_t d = 0; d < layout.tensor.dim(); ++d) {
      CHECK(close(values(layout.tensor.prod(d)), naive(layout.tensor, {d}, product_of), 1e-11));
    }
    const Tensor positive = (layout.tensor + 0.5).to(kInt32).to(kBool);  // false below 0.5
    for (const DimVector& dims : dimension_choices(positive)) {
      const auto count = [](const Doubles& v) { return sum_of(v); };
      CHECK(values(positive.count_nonzero(IntArrayRef(dims))) == naive(positive, dims, count));
      if (dims.empty()) continue;
      CHECK(values(positive.any(dims)) == naive(positive, dims, [](const Doubles& v) { return sum_of(v) > 0; }));
      CHECK(values(positive.all(dims)) ==
            naive(positive, dims, [](const Doubles& v) { return sum_of(v) == static_cast<double>(v.size()); }));
    }
  }
}

TEST_CASE("long sums are accurate, and the same on any number of threads") {
  const int64_t n = 1 << 20;
  const Tensor x = full({n}, 0.1f);
  const double exact = static_cast<double>(n) * static_cast<double>(0.1f);
  const int threads = get_num_threads();
  Doubles seen;
  for (int t : {1, 2, 3}) {
    set_num_threads(t);
    const double whole = x.sum().item<double>(), columns = x.view({n / 4, 4}).sum(0)[1].item<double>();
    const double wide = x.view({1024, 1024}).sum(0)[7].item<double>();
    CHECK(std::abs(whole - exact) < 1e-6 * exact);
    CHECK(std::abs(columns - exact / 4) < 1e-6 * exact);
    CHECK(std::abs(wide - exact / 1024) < 1e-6 * exact);
    for (double v : {whole, columns, wide}) seen.push_back(v);
  }
  set_num_threads(threads);
  CHECK(Doubles(seen.begin(), seen.begin() + 3) == Doubles(seen.begin() + 3, seen.begin() + 6));
  CHECK(Doubles(seen.begin(), seen.begin() + 3) == Doubles(seen.begin() + 6, seen.end()));
}

TEST_CASE("integers wrap around") {
  const Tensor most = tensor({INT64_MAX, int64_t{1}, int64_t{3}});
  CHECK(most.sum().item<int64_t>() == INT64_MIN + 3);
  CHECK(most.prod().item<int64_t>() == INT64_MAX - 2);
}

TEST_CASE("16-bit tensors are summed in float") {
  for (ScalarType dtype : {kFloat16, kBFloat16}) {
    CHECK(ones({4096}, dtype).sum().item<double>() == 4096);
    CHECK(ones({4096, 3}, dtype).sum(0)[2].item<double>() == 4096);
    CHECK(ones({4096}, dtype).mean().item<double>() == 1);
    CHECK(ones({4096}, dtype).sum().scalar_type() == dtype);
  }
}

TEST_CASE("dtypes of results") {
  for (ScalarType dtype : {kUInt8, kInt8, kInt16, kInt32, kInt64, kBool}) {
    const Tensor x = tensor({3, 0, 5}).to(dtype);
    CHECK(x.sum().scalar_type() == kInt64);
    CHECK(x.prod().scalar_type() == kInt64);
    CHECK(x.nansum().scalar_type() == kInt64);
    CHECK(x.sum().item<int64_t>() == (dtype == kBool ? 2 : 8));
    CHECK(x.any().scalar_type() == (dtype == kUInt8 ? kUInt8 : kBool));
    CHECK(x.all().scalar_type() == (dtype == kUInt8 ? kUInt8 : kBool));
    CHECK(x.count_nonzero().item<int64_t>() == 2);
    CHECK_THROWS_AS(x.mean(), TypeError);
    CHECK(x.mean(kFloat64).scalar_type() == kFloat64);
    CHECK(x.sum(kFloat32).scalar_type() == kFloat32);
    CHECK(x.sum(kInt16).scalar_type() == kInt16);
    CHECK(x.logsumexp(0).scalar_type() == kFloat32);
  }
  CHECK(tensor({200, 100}, kUInt8).sum().item<int64_t>() == 300);
  CHECK(tensor({3, -3}).sum(kBool).item<bool>());
  CHECK(tensor({1.9, 1.9}).sum(kInt64).item<int64_t>() == 2);
  const Tensor z = tensor({1., 2.}).to(kComplex64);
  CHECK(z.sum().scalar_type() == kComplex64);
  CHECK(z.mean().item<complex<double>>() == complex<double>(1.5));
  CHECK(z.norm().scalar_type() == kFloat32);
  CHECK(z.var().scalar_type() == kFloat32);
  CHECK_THROWS_AS(z.nansum(), TypeError);
  CHECK_THROWS_AS(z.amax(), NotImplementedError);
}

TEST_CASE("NaN, infinities and nothing") {
  const Tensor x = tensor({1., kNan, 3.}, kFloat64);
  CHECK(std::isnan(x.sum().item<double>()));
  CHECK(x.nansum().item<double>() == 4);
  CHECK(std::isnan(x.amax().item<double>()));
  CHECK(std::isnan(x.amin().item<double>()));
  CHECK(std::isnan(x.norm(kInf).item<double>()));
  CHECK(x.all().item<bool>());
  CHECK(tensor({kInf, 1.}).logsumexp(0).item<double>() == kInf);
  CHECK(tensor({-kInf, -kInf}).logsumexp(0).item<double>() == -kInf);
  const Tensor none = zeros({0}, kFloat64);
  CHECK(none.sum().item<double>() == 0);
  CHECK(none.prod().item<double>() == 1);
  CHECK(std::isnan(none.mean().item<double>()));
  CHECK(std::isnan(none.var().item<double>()));
  CHECK(none.logsumexp(0).item<double>() == -kInf);
  CHECK(!none.any().item<bool>());
  CHECK(none.all().item<bool>());
  CHECK(none.norm().item<double>() == 0);
  CHECK_THROWS_AS(none.amax(), IndexError);
  CHECK_THROWS_AS(none.norm(-1), ValueError);
}

TEST_CASE("bad dimensions are named") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_WITH_AS(x.sum(2), doctest::Contains("sum"), IndexError);
  CHECK_THROWS_AS(x.sum({0, 0}), ValueError);
  CHECK_THROWS_AS(x.prod(-3), IndexError);
  CHECK_THROWS_AS(x.trace().trace(), ValueError);
  CHECK(zeros({}).sum(-1).dim() == 0);
  CHECK(x.any(IntArrayRef()).sizes() == x.sizes());
}

TEST_CASE("reductions have shapes on the meta device") {
  const Tensor x = empty({2, 3, 4}, TensorOptions(kFloat32).device(Device(DeviceType::Meta)));
  CHECK(x.sum(1).sizes() == IntArrayRef({2, 4}));
  CHECK(x.mean({0, 2}, true).sizes() == IntArrayRef({1, 3, 1}));
  CHECK(x.any().scalar_type() == kBool);
  CHECK(x.logsumexp({0, 1}).sizes() == IntArrayRef(4));
  CHECK(x.softmax(1).sizes() == x.sizes());
}

TEST_CASE("trace") {
  CHECK(counting({3, 4}).trace().item<double>() == 15);
  CHECK(counting({3, 3}, kInt32).trace().scalar_type() == kInt64);
}

TEST_CASE("derivatives of sums") {
  const Tensors inputs[] = {{leaf({2, 3, 4})}, {leaf(5)}, {leaf({})}, {leaf({4, 3}).detach().t().requires_grad_()}};
  for (const Tensors& in : inputs) {
    check_gradients([](const Tensors& x) { return Tensors{x[0].sum() * x[0].sum()}; }, in);
    check_gradients([](const Tensors& x) { return Tensors{x[0].mean().exp()}; }, in);
    check_gradients([](const Tensors& x) { return Tensors{x[0].sum(-1).exp()}; }, in);
    check_gradients([](const Tensors& x) { return Tensors{x[0].mean(0, true).exp()}; }, in);
    check_gradients([](const Tensors& x) { return Tensors{x[0].logsumexp(0)}; }, in);
    check_gradients([](const Tensors& x) { return Tensors{x[0].logsumexp({}, true)}; }, in);
  }
  check_gradients([](const Tensors& x) { return Tensors{x[0].logsumexp(1)}; }, {complex_leaf({3, 4})});
  check_gradients([](const Tensors& x) { return Tensors{x[0].trace().exp()}; }, {leaf({3, 4})});
}

TEST_CASE("derivatives of products, with and without zeros") {
  const Tensor zeros_inside = leaf({3, 4}).detach();
  zeros_inside[1][2].zero_();
  zeros_inside[0][0].zero_();
  zeros_inside[0][3].zero_();
  for (const Tensor& x : {leaf({3, 4}), leaf(3), leaf({}), zeros_inside.requires_grad_()}) {
    check_gradients([](const Tensors& in) { return Tensors{in[0].prod()}; }, {x});
    check_gradients([](const Tensors& in) { return Tensors{in[0].prod(-1)}; }, {x});
    check_gradients([](const Tensors& in) { return Tensors{in[0].prod(0, true)}; }, {x});
  }
}

TEST_CASE("the derivative of nansum passes over NaN") {
  const Tensor x = tensor({1., kNan, 3.}, kFloat64).requires_grad_();
  (x.nansum() * 2).backward();
  CHECK(values(x.grad()) == Doubles{2, 0, 2});
  check_gradients([](const Tensors& in) { return Tensors{in[0].nansum(0).exp()}; }, {leaf({3, 4})});
}
