// Compiled functions whose calls an accelerator takes as one, Note [Recorded calls], on the emulated one: the programs
// leave, bit for bit, what they leave without rush::compile, and the race detector finds nothing.
#include "autograd/compile/recorded_calls.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/guard.h"
#include "rushlight.h"
#include "tests/labs/device/accelerator.h"

using namespace rush;
using namespace rush::labs;
namespace F = nn::functional;

namespace {

constexpr int kSteps = 12;

using Function = std::function<Tensors(const Tensor& x, const Tensor& y)>;
using CompiledStep = Compiled<Function>;

struct Net {
  nn::Sequential net{nn::Linear(8, 16), nn::Tanh(), nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 4)};
  optim::SGD optimizer;

  Net() : optimizer((net->to(emulated()), net->parameters()), optim::SGDOptions(0.1).momentum(0.9)) {}
  Function step() {
    return [this](const Tensor& x, const Tensor& y) -> Tensors {
      optimizer.zero_grad();
      const Tensor loss = F::cross_entropy(net->forward(x), y);
      loss.backward();
      optimizer.step();
      return {loss};
    };
  }
  Function forward() {
    return [this](const Tensor& x, const Tensor&) -> Tensors { return {net->forward(x)}; };
  }
  Tensors weights() { return net->parameters(); }
};

// Batches lie in one place for each size, or each where no other has been.
class Batches {
 public:
  explicit Batches(bool have_places) : have_places_(have_places) {}
  Tensor x(int64_t size = 32) { return next(randn({size, 8}), inputs_); }
  Tensor y(int64_t size = 32) { return next(randint(4, {size}, kInt64), targets_); }

 private:
  using Places = std::map<int64_t, Tensor>;
  Tensor next(const Tensor& values, Places& places) {
    const auto [place, is_new] = places.try_emplace(have_places_ ? values.size(0) : -1 - kept_++);
    if (is_new) return place->second = values.to(emulated());
    place->second.copy_(values);
    return place->second;
  }

  const bool have_places_;
  int64_t kept_ = 0;
  Places inputs_, targets_;
};

void append(Tensors& all, const Tensors& more) {
  for (const Tensor& each : more) all.push_back(each.detach().cpu().clone());
}

// What the program leaves with its function as it stands, and compiled; returns how many programs were recorded then.
size_t check_same(const std::function<Function(Net&)>& function_of,
                  const std::function<Tensors(Net& net, const Function& function, Batches& batches)>& program,
                  bool have_places) {
  CAPTURE(have_places);
  std::vector<Tensors> left;
  size_t recorded = 0;
  for (const bool is_compiled : {false, true}) {
    manual_seed(15);
    streams().set_seed(15);
    Net net;
    Batches batches(have_places);
    const Function function = function_of(net);
    const auto compiled = std::make_shared<CompiledStep>(function, CompileOptions{.fuse = false});
    const Function call = [compiled](const Tensor& x, const Tensor& y) { return (*compiled)(x, y); };
    left.push_back(program(net, is_compiled ? call : function, batches));
    append(left.back(), net.weights());
    CHECK(compiled->obstacle() == "");
    recorded = compiled->recorded();
  }
  CHECK(races().take().text == "");
  REQUIRE(left[0].size() == left[1].size());
  for (size_t i = 0; i < left[0].size(); ++i) {
    CAPTURE(i);
    CHECK(left[1][i].equal(left[0][i]));
  }
  return recorded;
}

// The same both ways; the number of recorded programs is then `recorded`, where one is given.
template <class Program>
void check_same(const std::function<Function(Net&)>& function_of, std::optional<size_t> recorded,
                const Program& program) {
  for (const bool have_places : {true, false}) {
    const size_t found = check_same(function_of, program, have_places);
    if (recorded) CHECK(found == *recorded);
  }
}

}  // namespace

TEST_CASE("a whole step is replayed, and its losses can be kept") {
  check_same(&Net::step, 1, [](Net&, const Function& step, Batches& batches) {
    Tensors losses, kept;
    Tensor loss;
    for (int i = 0; i < kSteps; ++i) {
      loss = step(batches.x(), batches.y())[0];
      kept.push_back(loss);
    }
    append(losses, kept);
    return losses;
  });
}

TEST_CASE("the host does not wait in a replay, and nothing is recorded without being asked for") {
  Net net;
  Batches batches(true);
  CompiledStep step(net.step(), {.fuse = false}), one_by_one(net.step(), {.fuse = false, .record = false});
  for (int i = 0; i < kSteps; ++i) {
    step(batches.x(), batches.y());
    one_by_one(batches.x(), batches.y());
  }
  CHECK(step.recorded() == 1);
  CHECK(one_by_one.recorded() == 0);
  const Tensor x = batches.x(), y = batches.y();
  const size_t waits = streams().waits();
  step(x, y);
  CHECK(streams().waits() == waits);
}

TEST_CASE("a model alone: its forward and its backward pass are replayed") {
  check_same(&Net::forward, 1, [](Net& net, const Function& forward, Batches& batches) {
    Tensors losses;
    Tensor loss;  // holds the graph of the last step during the next
    for (int i = 0; i < kSteps; ++i) {
      net.optimizer.zero_grad();
      const Tensor y = batches.y();
      loss = F::cross_entropy(forward(batches.x(), y)[0], y);
      loss.backward();
      net.optimizer.step();
      append(losses, {loss});
    }
    return losses;
  });
}

TEST_CASE("two forward passes may come before the backward passes of both") {
  check_same(&Net::forward, std::nullopt, [](Net& net, const Function& forward, Batches& batches) {
    Tensors results;
    for (int i = 0; i < 2 * kSteps; ++i) {
      net.optimizer.zero_grad();
      const Tensor y = batches.y(), first = forward(batches.x(), y)[0];
      const Tensor second = i % 3 == 0 ? first * 2 : forward(randn({32, 8}).to(emulated()), y)[0];
      (F::cross_entropy(first, y) + F::cross_entropy(second, y)).backward();
      net.optimizer.step();
      append(results, {first, second});
    }
    return results;
  });
}

TEST_CASE("gradients are those of the last call, and those that are kept stay") {
  check_same(&Net::step, 1, [](Net& net, const Function& step, Batches& batches) {
    Tensors seen, kept;
    for (int i = 0; i < kSteps; ++i) {
      step(batches.x(), batches.y());
      for (const Tensor& weight : net.weights()) seen.push_back(weight.grad().detach().cpu());
      if (i % 4 == 3) kept.push_back(net.weights()[0].grad());
    }
    append(seen, kept);
    return seen;
  });
}

TEST_CASE("gradients add up over calls") {
  const auto accumulate = [](Net& net) -> Function {
    return [&net](const Tensor& x, const Tensor& y) -> Tensors {
      const Tensor loss = F::cross_entropy(net.net->forward(x), y) / 3;
      loss.backward();
      return {loss};
    };
  };
  for (const bool set_to_none : {true, false}) {
    CAPTURE(set_to_none);
    check_same(accumulate, set_to_none ? 2 : 1, [&](Net& net, const Function& micro_batch, Batches& batches) {
      Tensors losses;
      for (int i = 0; i < 3 * kSteps; ++i) {
        append(losses, micro_batch(batches.x(), batches.y()));
        if (i % 3 < 2) continue;
        net.optimizer.step();
        net.optimizer.zero_grad(set_to_none);
      }
      return losses;
    });
  }
}

TEST_CASE("parameters may get other memory") {
  check_same(&Net::step, 1, [](Net& net, const Function& step, Batches& batches) {
    Tensors losses;
    for (int i = 0; i < 2 * kSteps; ++i) {
      append(losses, step(batches.x(), batches.y()));
      if (i == kSteps) net.weights()[2].set_data(net.weights()[2].detach() * 0.5);
    }
    return losses;
  });
}

TEST_CASE("each size is recorded for itself, up to a number of them") {
  constexpr size_t kMost = compiler::RecordedCalls::kMostPrograms;
  for (const size_t sizes : {size_t{2}, kMost + 3}) {
    check_same(&Net::step, std::min(sizes, kMost), [&](Net&, const Function& step, Batches& batches) {
      Tensors losses;
      for (int i = 0; i < kSteps; ++i) {
        for (size_t size = 1; size <= sizes; ++size) {
          const auto rows = static_cast<int64_t>(size);
          append(losses, step(batches.x(rows), batches.y(rows)));
        }
      }
      return losses;
    });
  }
}

TEST_CASE("results that are views, of each other, of inputs and of parameters, stay what they are") {
  const auto views = [](Net& net) -> Function {
    return [&net](const Tensor& x, const Tensor& y) -> Tensors {
      const NoGradGuard no_grad;
      const Tensor hidden = net.net->forward(x);
      return {hidden, hidden.t(), x.view({-1}), net.weights()[0].detach().t(), y, hidden.sum()};
    };
  };
  check_same(views, std::nullopt, [](Net& net, const Function& function, Batches& batches) {
    Tensors results;
    for (int i = 0; i < kSteps; ++i) {
      const Tensor x = batches.x(), y = batches.y();
      const Tensors given = function(x, y);
      CHECK(given[1].is_alias_of(given[0]));
      CHECK(given[2].is_alias_of(x));
      CHECK(given[3].is_alias_of(net.weights()[0]));
      CHECK(given[4].is_alias_of(y));
      given[0].mul_(2);
      append(results, given);
    }
    return results;
  });
}

TEST_CASE("a call in the middle that the host waits for is done by the host") {
  const auto waits = [](Net& net) -> Function {
    return [&net](const Tensor& x, const Tensor&) -> Tensors {
      const NoGradGuard no_grad;
      const Tensor hidden = net.net->forward(x), here = hidden.cpu() + 1, again = here.to(emulated());
      return {net.net->forward(x * 2), here, again * hidden};
    };
  };
  check_same(waits, 1, [](Net&, const Function& function, Batches& batches) {
    Tensors results;
    for (int i = 0; i < kSteps; ++i) append(results, function(batches.x(), batches.y()));
    return results;
  });
}

TEST_CASE("calls go one by one in a step that the program has captured, and while something watches") {
  Net net;
  CompiledStep step(net.forward(), {.fuse = false});
  const NoGradGuard no_grad;
  graphs::GraphedStep graphed([&](const Tensor& x, const Tensor& y) { return step(x, y)[0]; });
  Batches batches(true);
  for (int i = 0; i < kSteps; ++i) {
    const Tensor x = batches.x();
    CHECK(graphed(x, batches.y()).cpu().equal(net.net->forward(x).cpu()));
  }
  CHECK(graphed.captured() == 1);
  CHECK(step.recorded() == 0);
  const Tensor x = batches.x(), y = batches.y();
  for (int i = 0; i < kSteps; ++i) step(x, y);
  CHECK(step.recorded() == 1);
  profiler::Profile profile;
  step(x, y);
  profile.stop();
  const std::string table = profile.key_averages().table();
  CAPTURE(table);
  CHECK(table.find("aten::linear") != std::string::npos);
  CHECK(races().take().text == "");
}

TEST_CASE("streams of replays are ordered") {
  check_same(&Net::step, 1, [](Net&, const Function& step, Batches& batches) {
    Tensors losses;
    const Stream main = current_stream(emulated()), other = backend_of(emulated().type).stream_from_pool(0);
    for (int i = 0; i < kSteps; ++i) {
      const Stream &now = i % 2 ? other : main, &before = i % 2 ? main : other;
      wait_stream(now, before);
      const StreamGuard guard(now);
      losses.push_back(step(batches.x(), batches.y())[0]);
    }
    streams().synchronize();
    Tensors here;
    append(here, losses);
    return here;
  });
}
