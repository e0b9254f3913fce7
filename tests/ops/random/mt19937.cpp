// libtorch's random numbers, against PyTorch's own in mt19937.json.
#include "core/device/mt19937.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>

#include "rushlight.h"
#include "tests/fixtures.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

const std::map<std::string, std::function<void(const Tensor&, const Generator&)>> kFills = {
    {"uniform", [](const Tensor& t, const Generator& g) { t.uniform_(-1, 3, g); }},
    {"normal", [](const Tensor& t, const Generator& g) { t.normal_(0.5, 2, g); }},
    {"log_normal", [](const Tensor& t, const Generator& g) { t.log_normal_(0.5, 0.25, g); }},
    {"cauchy", [](const Tensor& t, const Generator& g) { t.cauchy_(1, 2, g); }},
    {"exponential", [](const Tensor& t, const Generator& g) { t.exponential_(1.5, g); }},
    {"geometric", [](const Tensor& t, const Generator& g) { t.geometric_(0.3, g); }},
    {"bernoulli", [](const Tensor& t, const Generator& g) { t.bernoulli_(0.3, g); }},
    {"bernoulli of floats", [](const Tensor& t, const Generator& g) { t.bernoulli_(full(t.sizes(), 0.3), g); }},
    {"bernoulli of doubles",
     [](const Tensor& t, const Generator& g) { t.bernoulli_(full(t.sizes(), 0.3, kFloat64), g); }},
    {"random", [](const Tensor& t, const Generator& g) { t.random_(g); }},
    {"random from to", [](const Tensor& t, const Generator& g) { t.random_(-3, 100, g); }},
    {"random in 2^40", [](const Tensor& t, const Generator& g) { t.random_(0, int64_t{1} << 40, g); }},
    {"random of all",
     [](const Tensor& t, const Generator& g) { t.random_(std::numeric_limits<int64_t>::min(), std::nullopt, g); }},
};

Tensor weights() { return tensor({0.1, 0.0, 2.0, 0.5, 1.0, 3.0, 0.2, 0.0, 0.1, 0.7}, kFloat32).view({2, 5}); }

const std::map<std::string, std::function<Tensor(const Generator&)>> kCalls = {
    {"randperm", [](const Generator& g) { return randperm(20, g); }},
    {"multinomial", [](const Generator& g) { return multinomial(weights(), 3, false, g); }},
    {"multinomial of one", [](const Generator& g) { return multinomial(weights(), 1, true, g); }},
    {"multinomial with replacement", [](const Generator& g) { return multinomial(weights(), 6, true, g); }},
    {"dropout", [](const Generator&) { return dropout(ones({12}), 0.3, true); }},
    {"transposed",
     [](const Generator& g) {
       return empty({3, 4}).t().uniform_(0, 1, g);
     }},
    {"strided",
     [](const Generator& g) {
       return zeros({6, 4}).slice(1, 0, 4, 2).uniform_(0, 1, g);
     }},
};

// Those that need the C library's functions in double precision may differ by its last bit.
double tolerance(const std::string& name, ScalarType dtype) {
  const bool exact = name != "log_normal" && name != "cauchy" && name != "exponential" && name != "normal";
  if (exact || (name == "normal" && dtype == kFloat32)) return 0;
  return dtype == kFloat64 ? 1e-14 : dtype == kFloat32 ? 1e-6 : dtype == kHalf ? 1e-3 : 1e-2;
}

// Puts the default generator back.
class DefaultGeneratorGuard {
 public:
  ~DefaultGeneratorGuard() { set_default_generator(before_); }

 private:
  Generator before_ = default_generator(kCPU);
};

TEST_CASE("mt19937: PyTorch's numbers, call after call") {
  const nlohmann::json recorded = read_fixtures("ops/random/mt19937.json");
  const DefaultGeneratorGuard guard;
  const Generator generator = make_generator<Mt19937GeneratorImpl>(recorded["seed"].get<uint64_t>());
  set_default_generator(generator);
  for (const auto& step : recorded["steps"]) {
    const auto name = step["name"].get<std::string>(), dtype = step["dtype"].get<std::string>();
    CAPTURE(name);
    CAPTURE(dtype);
    const auto want = step["values"].get<Doubles>();
    Tensor got;
    if (const auto call = kCalls.find(name); call != kCalls.end()) {
      got = call->second(generator);
    } else {
      const std::map<std::string, ScalarType> dtypes = {
          {"float32", kFloat32}, {"float64", kFloat64}, {"float16", kHalf}, {"bfloat16", kBFloat16}, {"uint8", kUInt8},
          {"int8", kInt8},       {"int16", kInt16},     {"int32", kInt32},  {"int64", kInt64},       {"bool", kBool}};
      got = empty({static_cast<int64_t>(want.size())}, dtypes.at(dtype));
      kFills.at(name)(got, generator);
    }
    const Doubles numbers = values(got);
    REQUIRE(numbers.size() == want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      CAPTURE(i);
      CHECK(std::abs(numbers[i] - want[i]) <= tolerance(name, got.scalar_type()) * std::abs(want[i]));
    }
  }
}

TEST_CASE("mt19937: states, seeds, and operators that know our own stream only") {
  const Generator generator = make_generator<Mt19937GeneratorImpl>(3);
  Tensor(empty({3})).normal_(0, 1, generator);  // leaves the second number of a pair
  Generator saved = generator.clone();
  const std::vector<uint8_t> state = generator.get_state();
  const auto draw = [](const Generator& g) { return values(empty({3}, kFloat64).normal_(0, 1, g)); };
  const Doubles next = draw(generator);
  CHECK(draw(saved) == next);
  CHECK(draw(saved) != next);
  saved.set_state(state);
  CHECK(draw(saved) == next);
  CHECK_THROWS_WITH_AS(saved.set_state({1, 2, 3}), doctest::Contains("libtorch's stream"), ValueError);
  CHECK_THROWS_WITH_AS(saved.set_offset(4), doctest::Contains("no offsets"), ValueError);

  const DefaultGeneratorGuard guard;
  set_default_generator(generator);
  const auto attend = [] {
    const Tensor q = ones({1, 2, 4, 8});
    return values(scaled_dot_product_attention(q, q, q, std::nullopt, 0.5));
  };
  manual_seed(5);
  CHECK(default_generator(kCPU) == generator);
  const Doubles first = attend(), second = attend();
  CHECK(first != second);
  manual_seed(5);
  CHECK(attend() == first);
}

TEST_CASE("mt19937: mistakes leave the generator as it was") {
  const Generator generator = make_generator<Mt19937GeneratorImpl>(3);
  const std::vector<uint8_t> state = generator.get_state();
  CHECK_THROWS_AS(multinomial(tensor({0.0, -1.0}), 1, false, generator), ValueError);
  CHECK_THROWS_AS(multinomial(tensor({0.0, 1.0}), 2, false, generator), ValueError);
  CHECK_THROWS_AS(empty({2}).bernoulli_(tensor({0.5, 2.0}), generator), ValueError);
  CHECK_THROWS_AS(empty({2}).uniform_(2, 1, generator), ValueError);
  CHECK(generator.get_state() == state);
}

}  // namespace
