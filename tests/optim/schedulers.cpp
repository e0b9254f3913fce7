#include <doctest/doctest.h>

#include <cmath>
#include <memory>

#include "rushlight.h"
#include "tests/fixtures.h"

namespace {

using namespace rush;
using namespace rush::optim;

using Schedules = std::vector<std::shared_ptr<LRScheduler>>;

struct Case {
  const char* name;
  Schedules (*make)(Optimizer& optimizer);
};

// The schedules of make_fixtures.py.
const Case kCases[] = {
    {"StepLR(3, 0.5)", [](Optimizer& o) { return Schedules{std::make_shared<StepLR>(o, 3, 0.5)}; }},
    {"MultiStepLR({2, 5, 5, 9}, 0.3)",
     [](Optimizer& o) {
       return Schedules{std::make_shared<MultiStepLR>(o, std::vector<int64_t>{5, 2, 9, 5}, 0.3)};
     }},
    {"ExponentialLR(0.9)", [](Optimizer& o) { return Schedules{std::make_shared<ExponentialLR>(o, 0.9)}; }},
    {"LinearLR(0.1, 0.8, 7)", [](Optimizer& o) { return Schedules{std::make_shared<LinearLR>(o, 0.1, 0.8, 7)}; }},
    {"CosineAnnealingLR(6, 0.01)",
     [](Optimizer& o) { return Schedules{std::make_shared<CosineAnnealingLR>(o, 6, 0.01)}; }},
    {"LambdaLR(1 / (1 + epoch))",
     [](Optimizer& o) {
       return Schedules{std::make_shared<LambdaLR>(o, [](int64_t e) { return 1 / (1 + static_cast<double>(e)); })};
     }},
    {"OneCycleLR(0.5, 100)", [](Optimizer& o) { return Schedules{std::make_shared<OneCycleLR>(o, 0.5, 100)}; }},
    {"OneCycleLR(0.5, 100, linear, three phases)",
     [](Optimizer& o) {
       const auto options = OneCycleLROptions(0.5, 100)
                                .anneal_strategy(OneCycleLROptions::Anneal::Linear)
                                .three_phase(true)
                                .pct_start(0.4);
       return Schedules{std::make_shared<OneCycleLR>(o, options)};
     }},
    {"SequentialLR(LinearLR, CosineAnnealingLR, ExponentialLR)",
     [](Optimizer& o) {
       Schedules parts = {std::make_shared<LinearLR>(o, 0.25, 1.0, 4), std::make_shared<CosineAnnealingLR>(o, 8, 0.02),
                          std::make_shared<ExponentialLR>(o, 0.8)};
       return Schedules{std::make_shared<SequentialLR>(o, parts, std::vector<int64_t>{4, 12})};
     }},
    {"ConstantLR(0.3, 4)", [](Optimizer& o) { return Schedules{std::make_shared<ConstantLR>(o, 0.3, 4)}; }},
    {"PolynomialLR(8, 1.7)", [](Optimizer& o) { return Schedules{std::make_shared<PolynomialLR>(o, 8, 1.7)}; }},
    {"CosineAnnealingWarmRestarts(4)",
     [](Optimizer& o) { return Schedules{std::make_shared<CosineAnnealingWarmRestarts>(o, 4)}; }},
    {"CosineAnnealingWarmRestarts(3, 2, 0.01)",
     [](Optimizer& o) { return Schedules{std::make_shared<CosineAnnealingWarmRestarts>(o, 3, 2, 0.01)}; }},
    {"SequentialLR(ConstantLR, PolynomialLR, CosineAnnealingWarmRestarts)",
     [](Optimizer& o) {
       Schedules parts = {std::make_shared<ConstantLR>(o, 0.5, 3), std::make_shared<PolynomialLR>(o, 9, 2.0),
                          std::make_shared<CosineAnnealingWarmRestarts>(o, 3, 2)};
       return Schedules{std::make_shared<SequentialLR>(o, parts, std::vector<int64_t>{5, 9})};
     }},
    {"StepLR and ExponentialLR together",
     [](Optimizer& o) {
       return Schedules{std::make_shared<StepLR>(o, 3, 0.5), std::make_shared<ExponentialLR>(o, 0.9)};
     }},
};

Tensor zero_parameter() { return zeros(1, TensorOptions().requires_grad(true)); }

TEST_CASE("every schedule sets PyTorch's rates") {
  const nlohmann::json fixtures = read_fixtures("optim/fixtures.json");
  CHECK(fixtures["schedules"].size() == std::size(kCases));
  for (const Case& test : kCases) {
    CAPTURE(test.name);
    const nlohmann::json& expected = fixtures["schedules"].at(test.name);
    std::vector<OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<Tensor>{zero_parameter()});
    groups.emplace_back(std::vector<Tensor>{zero_parameter()}, std::make_unique<AdamOptions>(0.2));
    Adam adam(groups, AdamOptions(0.1));
    const Schedules schedules = test.make(adam);
    size_t kept = 0;
    for (int step = 0; step < 100; ++step) {
      CAPTURE(step);
      if (step < 20 || step % 10 == 9) {
        for (size_t g = 0; g < 2; ++g) {
          const double lr = adam.param_groups()[g].options().get_lr(), should = expected["lrs"][kept][g];
          CHECK(std::abs(lr - should) <= 1e-12 * std::abs(should));
          CHECK(schedules.back()->get_last_lr()[g] == lr);
        }
        CHECK(*adam.param_groups()[0].options().get_momentum() ==
              doctest::Approx(expected["beta1"][kept].get<double>()).epsilon(1e-13));
        ++kept;
      }
      for (const auto& schedule : schedules) schedule->step();
    }
    CHECK(kept == expected["lrs"].size());
  }
}

TEST_CASE("a sequence that comes first in another sets its own rates from the first epoch on") {
  SGD sgd({zero_parameter()}, SGDOptions(0.5));
  const auto inner = [&](int64_t milestone) {
    Schedules parts = {std::make_shared<LinearLR>(sgd, 0.2, 1.0, 2), std::make_shared<ExponentialLR>(sgd, 0.9)};
    return std::make_shared<SequentialLR>(sgd, parts, std::vector<int64_t>{milestone});
  };
  Schedules parts = {inner(3), std::make_shared<StepLR>(sgd, 2, 0.5)};
  SequentialLR outer(sgd, parts, {5});
  for (const double expected : {0.1, 0.3, 0.5, 0.5, 0.45, 0.5, 0.5, 0.25}) {
    CHECK(sgd.param_groups()[0].options().get_lr() == doctest::Approx(expected).epsilon(1e-12));
    CHECK(outer.get_last_lr()[0] == sgd.param_groups()[0].options().get_lr());
    outer.step();
  }
}

TEST_CASE("a sequence whose first milestone is 0 starts with its second schedule") {
  SGD sgd({zero_parameter()}, SGDOptions(0.5));
  Schedules parts = {std::make_shared<ConstantLR>(sgd, 0.1, 5), std::make_shared<CosineAnnealingLR>(sgd, 4)};
  SequentialLR schedule(sgd, parts, {0});
  for (int epoch = 0; epoch < 6; ++epoch) {
    const double expected = 0.25 * (1 + std::cos(std::acos(-1.0) * epoch / 4));
    CHECK(sgd.param_groups()[0].options().get_lr() == doctest::Approx(expected).epsilon(1e-12));
    CHECK(schedule.get_last_lr()[0] == sgd.param_groups()[0].options().get_lr());
    schedule.step();
  }
}

ReduceLROnPlateauOptions plateau_options(const nlohmann::json& given) {
  ReduceLROnPlateauOptions o;
  if (given.value("mode", "min") == "max") o.mode(ReduceLROnPlateauOptions::Mode::Max);
  if (given.value("threshold_mode", "rel") == "abs") o.threshold_mode(ReduceLROnPlateauOptions::ThresholdMode::Abs);
  o.factor(given.value("factor", o.factor())).patience(given.value("patience", o.patience()));
  o.threshold(given.value("threshold", o.threshold())).cooldown(given.value("cooldown", o.cooldown()));
  o.eps(given.value("eps", o.eps()));
  if (given.contains("min_lr")) {
    const nlohmann::json& least = given["min_lr"];
    o.min_lr(least.is_array() ? least.get<std::vector<double>>() : std::vector<double>{least.get<double>()});
  }
  return o;
}

double metric(int step) { return 2 * std::sin(step / 9.0) + 0.3 * std::sin(2.0 * step) + 3; }

TEST_CASE("ReduceLROnPlateau lowers the rates when PyTorch's does") {
  const nlohmann::json fixtures = read_fixtures("optim/fixtures.json");
  CHECK(fixtures["plateaus"].size() == 4);
  for (const nlohmann::json& fixture : fixtures["plateaus"]) {
    CAPTURE(fixture["options"].dump());
    SGD sgd({zero_parameter()}, SGDOptions(0.1));
    sgd.add_param_group({{zero_parameter()}, std::make_unique<SGDOptions>(0.2)});
    ReduceLROnPlateau schedule(sgd, plateau_options(fixture["options"]));
    std::vector<double> rates = {0.1, 0.2};
    for (int step = 0; step < 100; ++step) {
      CAPTURE(step);
      schedule.step(metric(step));
      const auto change = fixture["lrs"].find(std::to_string(step));
      if (change != fixture["lrs"].end()) rates = change->get<std::vector<double>>();
      for (size_t g = 0; g < 2; ++g) {
        CHECK(std::abs(sgd.param_groups()[g].options().get_lr() - rates[g]) <= 1e-13 * rates[g]);
        CHECK(schedule.get_last_lr()[g] == sgd.param_groups()[g].options().get_lr());
      }
    }
  }
}

TEST_CASE("a schedule that starts from the groups' first rates refuses more or fewer groups") {
  SGD sgd({zero_parameter()}, SGDOptions(0.1).momentum(0.9));
  CosineAnnealingLR cosine(sgd, 3);
  LambdaLR lambda(sgd, [](int64_t) { return 0.5; });
  OneCycleLR cycle(sgd, 0.3, 20);
  ExponentialLR exponential(sgd, 0.5);
  const auto all_throw = [&] {
    for (LRScheduler* schedule : std::vector<LRScheduler*>{&cosine, &lambda, &cycle})
      CHECK_THROWS_WITH_AS(schedule->step(), doctest::Contains("the schedule was made for 1"), Error);
  };
  sgd.step();
  sgd.add_param_group({{zero_parameter()}, std::make_unique<SGDOptions>(SGDOptions(0.2).momentum(0.8))});
  const double before = sgd.param_groups()[0].options().get_lr();
  for (int step = 0; step < 5; ++step) all_throw();  // a cosine's formula is another one where it turns
  const auto& added = sgd.param_groups()[1].options();
  CHECK(sgd.param_groups()[0].options().get_lr() == before);
  CHECK(added.get_lr() == 0.2);
  CHECK(added.get_momentum() == 0.8);
  exponential.step();  // computes the next rate from the present one
  CHECK(added.get_lr() == 0.1);
  sgd.param_groups().clear();
  all_throw();
}

TEST_CASE("warm restarts can be stepped to fractions of epochs") {
  const nlohmann::json fixtures = read_fixtures("optim/fixtures.json");
  const std::vector<double> expected = fixtures["restarts in fractions"];
  SGD sgd({zero_parameter()}, SGDOptions(0.1));
  CosineAnnealingWarmRestarts schedule(sgd, 3, 2, 0.01);
  size_t i = 0;
  for (const double epoch : {0.25, 2.5, 3.0, 8.75, 9.5, 20.75, 26.0, -1.0, 1.5, -1.0, -1.0}) {
    epoch < 0 ? schedule.step() : schedule.step(epoch);
    CHECK(schedule.get_last_lr()[0] == doctest::Approx(expected.at(i++)).epsilon(1e-13));
  }
  CHECK_THROWS_AS(schedule.step(-0.5), ValueError);
  CHECK_THROWS_AS(schedule.step(std::nan("")), ValueError);
}

TEST_CASE("OneCycleLR is at the end of a phase that has no length") {
  SGD sgd({zero_parameter()}, SGDOptions(0.1));
  const OneCycleLR peak_first(sgd, OneCycleLROptions(2, 4).pct_start(0.25));
  CHECK(peak_first.get_last_lr()[0] == 2);
  OneCycleLR peak_last(sgd, OneCycleLROptions(2, 4).pct_start(1));
  for (int i = 0; i < 3; ++i) peak_last.step();
  CHECK(peak_last.get_last_lr()[0] == 2);
  peak_last.step();
  CHECK(peak_last.get_last_lr()[0] == doctest::Approx(2 / 25. / 1e4));
}

TEST_CASE("schedules refuse what makes no sense") {
  SGD sgd({zero_parameter()}, SGDOptions(0.1));
  SGD other({zero_parameter()}, SGDOptions(0.1));
  CHECK_THROWS_AS(StepLR(sgd, 0), ValueError);
  CHECK_THROWS_AS(LinearLR(sgd, 0.0), ValueError);
  CHECK_THROWS_AS(LinearLR(sgd, 0.5, 2.0), ValueError);
  CHECK_THROWS_AS(CosineAnnealingLR(sgd, 0), ValueError);
  CHECK_THROWS_AS(LambdaLR(sgd, std::vector<LambdaLR::Lambda>()), ValueError);
  CHECK_THROWS_AS(OneCycleLR(sgd, OneCycleLROptions(0.1, 0)), ValueError);
  CHECK_THROWS_AS(OneCycleLR(sgd, OneCycleLROptions({0.1, 0.2}, 5)), ValueError);
  CHECK_THROWS_AS(OneCycleLR(sgd, OneCycleLROptions(0.1, 5).div_factor(0)), ValueError);
  CHECK_THROWS_AS(SequentialLR(sgd, {}, {}), ValueError);
  CHECK_THROWS_AS(SequentialLR(sgd, {std::make_shared<StepLR>(other, 1)}, {}), ValueError);
  CHECK_THROWS_AS(ConstantLR(sgd, 0.0), ValueError);
  CHECK_THROWS_AS(PolynomialLR(sgd, 0), ValueError);
  CHECK_THROWS_AS(CosineAnnealingWarmRestarts(sgd, 0), ValueError);
  CHECK_THROWS_AS(CosineAnnealingWarmRestarts(sgd, 2, 0), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, ReduceLROnPlateauOptions().factor(1.0)), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, ReduceLROnPlateauOptions().min_lr({0.1, 0.2})), ValueError);
  const auto plateau = std::make_shared<ReduceLROnPlateau>(sgd);
  CHECK_THROWS_AS(plateau->step(), ValueError);
  CHECK_THROWS_AS(SequentialLR(sgd, {plateau}, {}), ValueError);
  OneCycleLR cycle(sgd, 0.1, 2);
  cycle.step();
  cycle.step();
  CHECK_THROWS_AS(cycle.step(), ValueError);
}

}  // namespace
