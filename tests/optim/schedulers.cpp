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
    {"OneCycleLR(0.5, 20)", [](Optimizer& o) { return Schedules{std::make_shared<OneCycleLR>(o, 0.5, 20)}; }},
    {"OneCycleLR(0.5, 20, linear, three phases)",
     [](Optimizer& o) {
       const auto options = OneCycleLROptions(0.5, 20)
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
    {"StepLR and ExponentialLR together",
     [](Optimizer& o) {
       return Schedules{std::make_shared<StepLR>(o, 3, 0.5), std::make_shared<ExponentialLR>(o, 0.9)};
     }},
};

Tensor parameter() { return zeros(1, TensorOptions().requires_grad(true)); }

TEST_CASE("every schedule sets PyTorch's rates") {
  const nlohmann::json fixtures = read_fixtures("optim/fixtures.json");
  CHECK(fixtures["schedules"].size() == std::size(kCases));
  for (const Case& test : kCases) {
    CAPTURE(test.name);
    const nlohmann::json& expected = fixtures["schedules"].at(test.name);
    std::vector<OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<Tensor>{parameter()});
    groups.emplace_back(std::vector<Tensor>{parameter()}, std::make_unique<AdamOptions>(0.2));
    Adam adam(groups, AdamOptions(0.1));
    const Schedules schedules = test.make(adam);
    for (size_t step = 0; step < expected["lrs"].size(); ++step) {
      CAPTURE(step);
      for (size_t g = 0; g < 2; ++g) {
        const double lr = adam.param_groups()[g].options().get_lr(), should = expected["lrs"][step][g];
        CHECK(std::abs(lr - should) <= 1e-13 * std::abs(should));
        CHECK(schedules.back()->get_last_lr()[g] == lr);
      }
      CHECK(*adam.param_groups()[0].options().get_momentum() ==
            doctest::Approx(expected["beta1"][step].get<double>()).epsilon(1e-13));
      for (const auto& schedule : schedules) schedule->step();
    }
  }
}

TEST_CASE("schedules refuse what makes no sense") {
  SGD sgd({parameter()}, SGDOptions(0.1));
  SGD other({parameter()}, SGDOptions(0.1));
  CHECK_THROWS_AS(StepLR(sgd, 0), ValueError);
  CHECK_THROWS_AS(LinearLR(sgd, 0.0), ValueError);
  CHECK_THROWS_AS(LinearLR(sgd, 0.5, 2.0), ValueError);
  CHECK_THROWS_AS(CosineAnnealingLR(sgd, 0), ValueError);
  CHECK_THROWS_AS(LambdaLR(sgd, std::vector<LambdaLR::Lambda>()), ValueError);
  CHECK_THROWS_AS(OneCycleLR(sgd, OneCycleLROptions(0.1, 0)), ValueError);
  CHECK_THROWS_AS(OneCycleLR(sgd, OneCycleLROptions({0.1, 0.2}, 5)), ValueError);
  CHECK_THROWS_AS(SequentialLR(sgd, {}, {}), ValueError);
  CHECK_THROWS_AS(SequentialLR(sgd, {std::make_shared<StepLR>(other, 1)}, {}), ValueError);
  OneCycleLR cycle(sgd, 0.1, 2);
  cycle.step();
  cycle.step();
  CHECK_THROWS_AS(cycle.step(), ValueError);
}

}  // namespace
