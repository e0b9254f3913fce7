// State dicts of optimisers and schedules, through files and with faults.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "core/io/safetensors.h"
#include "rushlight.h"
#include "tests/optim/misfits.h"
#include "tests/temporary_folder.h"

namespace {

using namespace rush;
using namespace rush::optim;

using rush::testing::TemporaryFolder;
using rush::testing::value_error_of;

using Params = std::vector<Tensor>;
using MakeOptimizer = std::unique_ptr<Optimizer> (*)(const Params& params);

template <class Kind, class Options>
std::unique_ptr<Optimizer> two_groups(const Params& params, const Options& first, const Options& second) {
  auto made = std::make_unique<Kind>(Params{params[0], params[1]}, first);
  made->add_param_group({{params[2]}, std::make_unique<Options>(second)});
  return made;
}

const std::pair<const char*, MakeOptimizer> kOptimizers[] = {
    {"SGD", [](const Params& p) { return two_groups<SGD>(p, SGDOptions(0.1), SGDOptions(0.2).momentum(0.9)); }},
    {"Adam", [](const Params& p) { return two_groups<Adam>(p, AdamOptions(0.1), AdamOptions(0.2).amsgrad(true)); }},
    {"AdamW", [](const Params& p) { return two_groups<AdamW>(p, AdamWOptions(0.1), AdamWOptions().maximize(true)); }},
    {"RMSprop",
     [](const Params& p) {
       return two_groups<RMSprop>(p, RMSpropOptions(0.1), RMSpropOptions(0.2).momentum(0.5).centered(true));
     }},
    {"Adagrad",
     [](const Params& p) { return two_groups<Adagrad>(p, AdagradOptions(0.1), AdagradOptions(0.2).lr_decay(0.1)); }},
    {"Adadelta",
     [](const Params& p) { return two_groups<Adadelta>(p, AdadeltaOptions(), AdadeltaOptions().rho(0.5)); }},
    {"NAdam", [](const Params& p) { return two_groups<NAdam>(p, NAdamOptions(), NAdamOptions().momentum_decay(0.1)); }},
    {"RAdam",
     [](const Params& p) {
       return two_groups<RAdam>(p, RAdamOptions(), RAdamOptions(0.1).betas({0.5, 0.9}));
     }},
    {"Adamax", [](const Params& p) { return two_groups<Adamax>(p, AdamaxOptions(), AdamaxOptions(0.1).eps(0.01)); }},
    {"ASGD", [](const Params& p) { return two_groups<ASGD>(p, ASGDOptions(), ASGDOptions(0.1).t0(1)); }},
    {"Rprop",
     [](const Params& p) {
       return two_groups<Rprop>(p, RpropOptions(), RpropOptions(0.1).etas({0.2, 2}));
     }},
    {"Adafactor",
     [](const Params& p) {
       return two_groups<Adafactor>(p, AdafactorOptions(), AdafactorOptions(0.1).eps({{0.01}, 0.1}));
     }},
    {"LBFGS",
     [](const Params& p) -> std::unique_ptr<Optimizer> {
       return std::make_unique<LBFGS>(p, LBFGSOptions().max_iter(2).history_size(3).line_search_fn("strong_wolfe"));
     }},
    {"LBFGS without a line search",
     [](const Params& p) -> std::unique_ptr<Optimizer> {
       return std::make_unique<LBFGS>(p, LBFGSOptions(0.1).max_iter(3).max_eval(7));
     }},
};

Params make_params(ScalarType dtype = kFloat32) {
  Params params;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 2}, {4}, {}}) {
    const Tensor values = (ones(sizes, kFloat64).flatten().cumsum(0) * 0.4 - 1).view(sizes);
    params.push_back(values.to(dtype).requires_grad_());
  }
  return params;
}

// A step on a loss whose minimum moves.
void take_step(Optimizer& optimizer, const Params& params, int step) {
  optimizer.step([&] {
    optimizer.zero_grad();
    Tensor loss = zeros({}, params[0].options());
    for (const Tensor& param : params) loss = loss + ((param - std::sin(0.3 * step)).square() + param.pow(4)).sum();
    loss.backward();
    return loss;
  });
}

bool equal(const Params& a, const Params& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].detach().equal(b[i].detach())) return false;
  }
  return true;
}

StateDict from_file(const std::string& path) {
  StateDict dict;
  for (auto& [name, value] : io::load_safetensors(path)) dict.insert(name, value);
  return dict;
}

StateDict deep_copy(const StateDict& dict) {
  StateDict copy;
  for (const auto& item : dict) copy.insert(item.key(), item.value().clone());
  return copy;
}

bool equal(const StateDict& a, const StateDict& b) {
  if (a.keys() != b.keys()) return false;
  for (const auto& item : a) {
    if (item.value().scalar_type() != b[item.key()].scalar_type() || !item.value().equal(b[item.key()])) return false;
  }
  return true;
}

TEST_CASE("an optimizer that is loaded from a file goes on bit by bit") {
  const TemporaryFolder folder;
  for (const auto& [name, make] : kOptimizers) {
    for (const int steps : {0, 1, 6}) {
      CAPTURE(name);
      CAPTURE(steps);
      const Params params = make_params();
      const auto optimizer = make(params);
      for (int step = 0; step < steps; ++step) take_step(*optimizer, params, step);
      const std::string path = folder / "optimizer.safetensors";
      io::save_safetensors(path, optimizer->state_dict().pairs());

      Params copies;
      for (const Tensor& param : params) copies.push_back(param.detach().clone().requires_grad_());
      const auto loaded = make(copies);
      for (OptimizerParamGroup& group : loaded->param_groups()) group.options().set_lr(0.77);
      take_step(*loaded, copies, 99);  // a state that loading replaces
      for (size_t i = 0; i < params.size(); ++i) copies[i].detach().copy_(params[i].detach());
      loaded->load_state_dict(from_file(path));
      CHECK(equal(loaded->state_dict(), optimizer->state_dict()));
      for (int step = steps; step < steps + 5; ++step) {
        take_step(*optimizer, params, step);
        take_step(*loaded, copies, step);
      }
      CHECK(equal(params, copies));
    }
  }
}

TEST_CASE("parameters are numbered across groups, and keys are PyTorch's with dots") {
  const Params params = make_params();
  const auto adam = two_groups<Adam>(params, AdamOptions(0.1), AdamOptions(0.2).amsgrad(true));
  params[2].mutable_grad() = ones({});
  adam->step();
  const StateDict dict = adam->state_dict();
  CHECK(dict["param_groups.1.lr"].item<double>() == 0.2);
  CHECK(dict["param_groups.1.params"].item<int64_t>() == 2);
  CHECK(dict["param_groups.0.betas"].equal(tensor({0.9, 0.999}, dtype(kFloat64).device(kCPU))));
  CHECK(dict["state.2.step"].item<int64_t>() == 1);
  CHECK(dict["state.2.max_exp_avg_sq"].sizes().empty());
  CHECK(!dict.contains("state.0.step"));  // it had no gradient
}

TEST_CASE("a state dict that does not fit is refused with all faults in one message, and changes nothing") {
  const Params params = make_params();
  const auto adam = two_groups<Adam>(params, AdamOptions(0.1), AdamOptions(0.2).amsgrad(true));
  for (int step = 0; step < 3; ++step) take_step(*adam, params, step);
  const StateDict good = deep_copy(adam->state_dict());

  StateDict bad = good;
  bad.erase("state.1.exp_avg");
  bad.erase("state.2.max_exp_avg_sq");
  bad.erase("param_groups.0.eps");
  bad.insert("state.3.exp_avg", ones(2));
  bad["state.0.exp_avg"] = ones({2, 3});
  bad["state.0.step"] = full({}, 2.5, kFloat64);
  bad["state.1.exp_avg_sq"] = ones({4}, kInt64);
  bad["state.1.step"] = full({}, std::numeric_limits<int64_t>::max(), kInt64);
  bad["state.2.step"] = Tensor();
  bad["param_groups.0.params"] = tensor({0, 1, 2}, kInt64);
  bad["param_groups.1.betas"] = ones({3}, kFloat64);
  const std::string message = value_error_of([&] { adam->load_state_dict(bad); });
  for (const char* part : {"missing: param_groups.0.eps, state.1.exp_avg, state.2.max_exp_avg_sq;",
                           "unexpected: state.3.exp_avg;", "wrong: ", "state.0.exp_avg is", "state.0.step is",
                           "state.1.exp_avg_sq is", "state.1.step is out of range", "state.2.step is undefined",
                           "param_groups.0.params has 3 entries instead of 2", "param_groups.1.betas has 3"}) {
    CHECK_MESSAGE(message.find(part) != std::string::npos, part, " is not in: ", message);
  }
  CHECK(message.find('\n') == std::string::npos);
  CHECK(equal(adam->state_dict(), good));

  for (const double lr : {-1.0, std::nan("")}) {
    StateDict wrong = good;
    wrong["param_groups.1.lr"] = full({}, lr, kFloat64);
    CHECK(value_error_of([&] { adam->load_state_dict(wrong); }).find("Adam: Invalid learning rate: ") == 0);
    CHECK(equal(adam->state_dict(), good));
  }
  SGD sgd(params, SGDOptions(0.1));
  CHECK(value_error_of([&] { sgd.load_state_dict(good); }).find("param_groups.0.betas") != std::string::npos);
  CHECK(value_error_of([&] { adam->load_state_dict(StateDict()); }).find("missing: param_groups.0.lr") !=
        std::string::npos);
  adam->load_state_dict(good);
}

TEST_CASE("LBFGS refuses a history whose parts differ in length") {
  const Params params = make_params();
  LBFGS lbfgs(params, LBFGSOptions(0.1).max_iter(4));
  take_step(lbfgs, params, 0);
  StateDict bad = lbfgs.state_dict();
  bad["state.0.ro"] = ones({1}, kFloat64);
  CHECK(value_error_of([&] { lbfgs.load_state_dict(bad); }).find("state.0.ro is not as long") != std::string::npos);
}

TEST_CASE("a state is converted to the parameter's dtype and layout") {
  const Params narrow = make_params(), wide = make_params(kFloat64);
  Adam from(narrow), to(wide);
  take_step(from, narrow, 0);
  to.load_state_dict(from.state_dict());
  const auto& state = static_cast<const AdamParamState&>(*to.state().at(wide[0].impl()));
  CHECK(state.exp_avg().scalar_type() == kFloat64);
  CHECK(state.exp_avg().equal(from.state_dict()["state.0.exp_avg"].to(kFloat64)));

  const Tensor transposed = ones({2, 3}).t().clone(MemoryFormat::Preserve).requires_grad_();
  Adam other({transposed});
  transposed.mutable_grad() = ones({3, 2});
  other.step();
  StateDict dict = deep_copy(other.state_dict());
  dict["state.0.exp_avg"] = arange(6, kFloat32).view({3, 2});
  other.load_state_dict(dict);
  CHECK(other.state_dict()["state.0.exp_avg"].equal(dict["state.0.exp_avg"]));
  CHECK(other.state_dict()["state.0.exp_avg"].strides() == transposed.strides());
}

// ---- schedules

using MakeSchedule = std::shared_ptr<LRScheduler> (*)(Optimizer& optimizer);

// With other options, a schedule of the same kind: loading brings the options back.
struct ScheduleCase {
  const char* name;
  MakeSchedule make, make_other;
};

template <class Kind, auto... args>
std::shared_ptr<LRScheduler> schedule(Optimizer& optimizer) {
  return std::make_shared<Kind>(optimizer, args...);
}

std::shared_ptr<LRScheduler> sequence(Optimizer& o, double factor, int64_t milestone) {
  std::vector<std::shared_ptr<LRScheduler>> parts = {std::make_shared<LinearLR>(o, factor, 1.0, 3),
                                                     std::make_shared<CosineAnnealingWarmRestarts>(o, 2, 2)};
  return std::make_shared<SequentialLR>(o, parts, std::vector<int64_t>{milestone});
}

const ScheduleCase kSchedules[] = {
    {"StepLR", schedule<StepLR, 3, 0.5>, schedule<StepLR, 2, 0.9>},
    {"MultiStepLR",
     [](Optimizer& o) -> std::shared_ptr<LRScheduler> {
       return std::make_shared<MultiStepLR>(o, std::vector<int64_t>{2, 6, 6}, 0.5);
     },
     [](Optimizer& o) -> std::shared_ptr<LRScheduler> {
       return std::make_shared<MultiStepLR>(o, std::vector<int64_t>{}, 0.5);
     }},
    {"ExponentialLR", schedule<ExponentialLR, 0.9>, schedule<ExponentialLR, 0.8>},
    {"ConstantLR", schedule<ConstantLR, 0.5, 6>, schedule<ConstantLR, 0.25, 9>},
    {"LinearLR", schedule<LinearLR, 0.1, 0.9, 7>, schedule<LinearLR, 0.5, 1.0, 3>},
    {"PolynomialLR", schedule<PolynomialLR, 8, 2.0>, schedule<PolynomialLR, 5, 1.0>},
    {"LambdaLR",
     [](Optimizer& o) -> std::shared_ptr<LRScheduler> {
       return std::make_shared<LambdaLR>(o, [](int64_t epoch) { return 1 / (1 + static_cast<double>(epoch)); });
     },
     [](Optimizer& o) -> std::shared_ptr<LRScheduler> {
       return std::make_shared<LambdaLR>(o, [](int64_t epoch) { return 1 / (1 + static_cast<double>(epoch)); });
     }},
    {"CosineAnnealingLR", schedule<CosineAnnealingLR, 6, 0.01>, schedule<CosineAnnealingLR, 5, 0.0>},
    {"CosineAnnealingWarmRestarts", schedule<CosineAnnealingWarmRestarts, 2, 2, 0.01>,
     schedule<CosineAnnealingWarmRestarts, 3, 1, 0.0>},
    {"OneCycleLR",
     [](Optimizer& o) -> std::shared_ptr<LRScheduler> {
       return std::make_shared<OneCycleLR>(o, OneCycleLROptions(0.5, 12).three_phase(true).pct_start(0.4));
     },
     schedule<OneCycleLR, 0.25, 20>},
    {"SequentialLR", [](Optimizer& o) { return sequence(o, 0.5, 4); },
     [](Optimizer& o) { return sequence(o, 0.1, 6); }},
};

TEST_CASE("a schedule that is loaded from a file goes on bit by bit, options included") {
  const TemporaryFolder folder;
  const Params params = make_params();
  const auto make_adam = [&] { return two_groups<Adam>(params, AdamOptions(0.1), AdamOptions(0.2)); };
  for (const ScheduleCase& test : kSchedules) {
    for (const int steps : {0, 3, 6}) {
      CAPTURE(test.name);
      CAPTURE(steps);
      const auto adam = make_adam(), loaded_adam = make_adam();
      const auto schedule = test.make(*adam);
      for (int step = 0; step < steps; ++step) schedule->step();
      const std::string path = folder / "schedule.safetensors";
      io::save_safetensors(path, schedule->state_dict().pairs());

      const auto loaded = test.make_other(*loaded_adam);
      loaded->step();
      loaded_adam->load_state_dict(adam->state_dict());
      loaded->load_state_dict(from_file(path));
      for (int step = steps; step < 11; ++step) {
        CHECK(loaded->get_last_lr() == schedule->get_last_lr());
        CHECK(loaded->last_epoch() == schedule->last_epoch());
        schedule->step();
        loaded->step();
        CHECK(equal(loaded_adam->state_dict(), adam->state_dict()));
      }
    }
  }
}

TEST_CASE("ReduceLROnPlateau that is loaded goes on alike") {
  SGD sgd(make_params(), SGDOptions(0.1)), other_sgd(make_params(), SGDOptions(0.1));
  using Options = ReduceLROnPlateauOptions;
  ReduceLROnPlateau schedule(sgd, Options().mode(Options::Mode::Max).patience(1).cooldown(2)), other(other_sgd);
  for (const double metric : {1.0, 2.0, 1.5, 1.5, 1.0}) schedule.step(metric);
  other_sgd.load_state_dict(sgd.state_dict());
  other.load_state_dict(schedule.state_dict());
  for (int step = 0; step < 12; ++step) {
    schedule.step(1.9);
    other.step(1.9);
    CHECK(schedule.get_last_lr() == other.get_last_lr());
  }
  CHECK(schedule.get_last_lr()[0] < 1e-3);
}

TEST_CASE("a schedule refuses a state dict that does not fit, and stays as it was") {
  SGD sgd(make_params(), SGDOptions(0.1));
  const auto scheduler = sequence(sgd, 0.5, 4);
  scheduler->step();
  const StateDict good = scheduler->state_dict();

  StateDict bad = good;
  bad.erase("schedulers.0.last_epoch");
  bad.insert("schedulers.2.gamma", full({}, 1, kFloat64));
  bad["base_lrs"] = ones({2}, kFloat64);
  bad["milestones"] = full({1}, 9, kInt64);  // fits, and must be taken back
  const std::string message = value_error_of([&] { scheduler->load_state_dict(bad); });
  for (const char* part : {"missing: schedulers.0.last_epoch;", "unexpected: schedulers.2.gamma;",
                           "wrong: base_lrs has 2 entries instead of 1"}) {
    CHECK_MESSAGE(message.find(part) != std::string::npos, part, " is not in: ", message);
  }
  CHECK(equal(scheduler->state_dict(), good));

  for (const char* name : {"last_epoch", "schedulers.0.total_iters", "schedulers.1.T_0", "schedulers.1.T_mult"}) {
    CAPTURE(name);
    StateDict wrong = good;
    wrong[name] = full({}, -1, kInt64);
    CHECK_THROWS_AS(scheduler->load_state_dict(wrong), ValueError);
    CHECK(equal(scheduler->state_dict(), good));
  }
  StateDict wrong = good;
  wrong["schedulers.1.T_cur"] = full({}, std::nan(""), kFloat64);
  CHECK_THROWS_AS(scheduler->load_state_dict(wrong), ValueError);

  ReduceLROnPlateau plateau(sgd);
  StateDict mode = plateau.state_dict();
  mode["mode"] = full({}, 2, kInt64);
  CHECK(value_error_of([&] { plateau.load_state_dict(mode); }).find("mode is no choice: 2") != std::string::npos);
}

}  // namespace
