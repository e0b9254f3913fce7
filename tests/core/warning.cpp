#include "core/error/warning.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "core/environment_flag.h"
#include "rushlight.h"
#include "tests/autograd/leaf.h"
#include "tests/environment_guard.h"
#include "tests/warnings.h"

using namespace rush;
using rush::testing::EnvironmentGuard;
using rush::testing::leaf_of_ones;
using rush::testing::Warnings;

namespace {

[[gnu::noinline]] void warn_here() { RUSH_WARN("number ", 1); }
[[gnu::noinline]] void warn_once_here() { RUSH_WARN_ONCE("only once"); }

struct Refuse : WarningHandler {
  void process(const Warning& warning) override { RUSH_THROW(ValueError, warning.msg()); }
};

}  // namespace

TEST_CASE("a warning goes to the handler with its message, its place and the functions that led to it") {
  const Warnings warnings;
  const bool shown = error_stacks();
  set_error_stacks(true);
  warn_here();
  set_error_stacks(shown);
  REQUIRE(warnings.all().size() == 1);
  CHECK(warnings.all()[0].starts_with("number 1 [called from "));
  CHECK(warnings.all()[0].find("warn_here (") != std::string::npos);
}

TEST_CASE("a switch in the environment that is neither 0 nor 1 is told") {
  const Warnings warnings;
  const auto check = [](const char* value, bool expected, bool expected_with) {
    CAPTURE(value);
    const EnvironmentGuard guard("RUSH_TEST_SWITCH", value);
    CHECK(environment_flag("RUSH_TEST_SWITCH") == expected);
    CHECK(environment_flag("RUSH_TEST_SWITCH", true) == expected_with);
  };
  CHECK(environment_flag("RUSH_TEST_SWITCH", true));
  check("", false, true);
  check("1", true, true);
  check("0", false, false);
  CHECK(warnings.all().empty());
  check("yes", false, true);
  CHECK(warnings.all().at(0).starts_with(
      "the environment variable RUSH_TEST_SWITCH is 'yes', expected 0 or 1, and is taken for 0"));
}

TEST_CASE("what the environment switches on asks for 0 or 1") {
  const Warnings warnings;
  const EnvironmentGuard guard("RUSH_COMPILE_CHECK", "yes");
  const compiler::CompiledFunction function({});
  CHECK(warnings.last().find("RUSH_COMPILE_CHECK is 'yes'") != std::string::npos);
}

TEST_CASE("RUSH_WARN_ONCE warns once, or each time where that is asked for") {
  const Warnings warnings;
  warn_once_here();
  warn_once_here();
  CHECK(warnings.all().size() == 1);
  WarningUtils::set_warnAlways(true);
  warn_once_here();
  WarningUtils::set_warnAlways(false);
  CHECK(warnings.all().size() == 2);
}

TEST_CASE("a guard's handler is that of its thread, set_warning_handler's of all") {
  const Warnings here;
  {
    const Warnings inner;
    warn_here();
    CHECK(inner.all().size() == 1);
  }
  CHECK(here.all().empty());
  struct Count : WarningHandler {
    int count = 0;
    void process(const Warning&) override { ++count; }
  } count;
  WarningUtils::set_warning_handler(&count);
  std::thread(warn_here).join();
  warn_here();
  WarningUtils::set_warning_handler(nullptr);
  CHECK(count.count == 1);
  CHECK(here.all().size() == 1);
}

TEST_CASE("each place of a program that calls an operator wrongly is warned of once") {
  const Warnings warnings;
  const Tensor column = ones({4, 1}), row = ones({4});
  for (int i = 0; i < 3; ++i) mse_loss(column, row);
  CHECK(warnings.all().size() == 1);
  mse_loss(column, row);
  CHECK(warnings.all().size() == 2);
  mse_loss(row, row);
  CHECK(warnings.all().size() == 2);
}

TEST_CASE("a handler that throws makes errors of warnings, and of each") {
  Refuse refuse;
  const WarningUtils::WarningHandlerGuard guard(&refuse);
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(mse_loss(ones({4, 1}), ones({4})), ValueError);
}

TEST_CASE("a warning in a module names it") {
  const Warnings warnings;
  nn::MSELoss loss;
  loss(ones({4, 1}), ones({4}));
  CHECK(warnings.last().find("[in MSELoss]") != std::string::npos);
}

namespace {

struct WarningCase {
  const char* code;
  void (*make)();
  const char* message;  // how the warning begins; null: there is none
};

#define WARNS(message, ...)                    \
  WarningCase {                                \
#__VA_ARGS__, [] { __VA_ARGS__; }, message \
  }
#define QUIET(...) WARNS(nullptr, __VA_ARGS__)

// What it warns of, and then the way out: the gradient goes, and with it the graph.
void keep_graph_of_gradient(const Tensor& x) {
  x.exp().sum().backward({}, std::nullopt, true);
  x.mutable_grad().reset();
}

void schedule(bool step_first) {
  optim::SGD sgd({leaf_of_ones()}, 0.1);
  optim::StepLR schedule(sgd, 1);
  if (step_first) sgd.step();
  schedule.step();
}

// A first step that the scaler leaves out, for the loss is infinite.
void schedule_after_skipped_step() {
  const Tensor x = leaf_of_ones();
  optim::SGD sgd({x}, 0.1);
  optim::StepLR schedule(sgd, 1);
  amp::GradScaler scaler;
  scaler.scale(x.sum() * INFINITY).backward();
  scaler.step(sgd);
  scaler.update();
  schedule.step();
}

data::datasets::TensorDataset examples(int64_t count) { return data::datasets::TensorDataset(ones({count})); }

namespace F = nn::functional;

const WarningCase kWarningCases[] = {
    WARNS("mse_loss: the target's shape (4) is not the input's, (4, 1); both are broadcast to (4, 4)",
          mse_loss(ones({4, 1}), ones({4}))),
    WARNS("mse_loss", F::mse_loss(ones({4, 1}), ones({4}))),
    WARNS("l1_loss", F::l1_loss(ones({4, 1}), ones({4}))),
    WARNS("smooth_l1_loss", F::smooth_l1_loss(ones({4, 1}), ones({4}))),
    WARNS("huber_loss", F::huber_loss(ones({4, 1}), ones({4}))),
    WARNS("binary_cross_entropy_with_logits", binary_cross_entropy_with_logits(ones({4, 1}), ones({4}))),
    QUIET(mse_loss(ones({4, 1}), ones({4, 1}))),
    WARNS("kl_div", F::kl_div(ones({2}), ones({2}))),
    QUIET(F::kl_div(ones({2}), ones({2}), F::KLDivFuncOptions().reduction(kBatchMean))),
    WARNS("LSTM: dropout 0.5 does nothing in a single layer", nn::LSTM(nn::LSTMOptions(2, 3).dropout(0.5))),
    QUIET(nn::LSTM(nn::LSTMOptions(2, 3).dropout(0.5).num_layers(2))),
    WARNS("LRScheduler: step() is called before the optimizer's step()", schedule(false)),
    QUIET(schedule(true)),
    QUIET(schedule_after_skipped_step()),
    WARNS("grad: this tensor is no leaf", leaf_of_ones().mul(2).grad()),
    QUIET(leaf_of_ones().grad()),
    QUIET(const Tensor y = leaf_of_ones().mul(2); y.retain_grad(); y.grad()),
    WARNS("make_data_loader: the dataset is empty",
          data::make_data_loader<data::samplers::SequentialSampler>(examples(0), 2)),
    WARNS("DataLoader: 1000 workers", data::detail::check_workers(1000)),
    QUIET(data::make_data_loader(examples(4), data::DataLoaderOptions(2).workers(1))),
    WARNS("clip_grad_norm_: there are no parameters", nn::utils::clip_grad_norm_(std::vector<Tensor>{}, 1)),
    WARNS("grid_sample: align_corners is not given", F::grid_sample(ones({1, 1, 2, 2}), zeros({1, 2, 2, 2}))),
    WARNS("init: a tensor of shape (0, 2)", nn::init::xavier_normal_(ones({0, 2}))),
    WARNS("var: a correction of 1 leaves 1 values", ones({1}).var()),
    WARNS("std: a correction of 1 leaves 1 values", ones({2, 1}).std(IntArrayRef(1))),
    QUIET(ones({2}).var()),
    WARNS("index: a mask of uint8", ones({2}).index({ones({2}, kUInt8)})),
    QUIET(ones({2}).index({ones({2}, kBool)})),
    WARNS("backward: with create_graph", keep_graph_of_gradient(leaf_of_ones())),
};

}  // namespace

TEST_CASE("what PyTorch warns of is warned of, and what is right is not") {
  WarningUtils::set_warnAlways(true);
  for (const WarningCase& each : kWarningCases) {
    CAPTURE(std::string(each.code));
    const Warnings warnings;
    each.make();
    CHECK(warnings.all().size() == (each.message ? 1 : 0));
    if (each.message) CHECK_MESSAGE(warnings.last().starts_with(each.message), warnings.last());
  }
  if (!cuda::is_available()) {
    const Warnings warnings;
    const autocast::Autocast guard(kCUDA);
    CHECK(warnings.last().starts_with("Autocast: there is no cuda device"));
  }
  WarningUtils::set_warnAlways(false);
}

#undef QUIET
#undef WARNS
