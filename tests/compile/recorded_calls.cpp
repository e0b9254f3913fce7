// Programs whose calls an accelerator takes as one, Note [Recorded calls], leave the bits that they leave one by one.
// Recorded is what runs on a GPU as programs do, Note [Tests on both devices]; tests/labs/device has more of it, on the
// emulated accelerator.
#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "rushlight.h"

using namespace rush;
namespace F = nn::functional;

namespace {

constexpr int kSteps = 10;

bool records() {
  const char* device = std::getenv("RUSH_TEST_DEVICE");
  return device && std::string_view(device) == "cuda:cached";
}

using Function = std::function<Tensors(const Tensor& x, const Tensor& y)>;

// Runs `program` with the compiled function that it asks for, recorded and not. Returns how many graphs were recorded.
size_t check_recorded(
    const std::function<Tensors(const std::function<Function(const Function&)>& compile_it)>& program) {
  std::vector<Tensors> left;
  size_t recorded = 0;
  for (const bool record : {false, true}) {
    manual_seed(27);
    std::vector<std::shared_ptr<Compiled<Function>>> made;
    left.push_back(program([&](const Function& function) -> Function {
      made.push_back(std::make_shared<Compiled<Function>>(function, CompileOptions{.record = record}));
      return [compiled = made.back()](const Tensor& x, const Tensor& y) { return (*compiled)(x, y); };
    }));
    for (const auto& each : made) recorded += each->recorded();
    if (!record) CHECK(recorded == 0);
  }
  REQUIRE(left[0].size() == left[1].size());
  for (size_t i = 0; i < left[0].size(); ++i) {
    CAPTURE(i);
    CHECK(left[1][i].equal(left[0][i]));
  }
  return recorded;
}

nn::Sequential digits_net() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 8, 3).padding(1)), nn::BatchNorm2d(8), nn::ReLU(),
                        nn::MaxPool2d(2), nn::Flatten(), nn::Dropout(0.25), nn::Linear(8 * 196, 32), nn::GELU(),
                        nn::Linear(32, 10));
}
Tensor images(int64_t size = 16) { return randn({size, 1, 28, 28}); }
Tensor labels(int64_t size = 16) { return randint(10, {size}, kInt64); }

void keep_copies(Tensors& all, const Tensors& more) {
  for (const Tensor& each : more) all.push_back(each.detach().clone());
}

}  // namespace

TEST_CASE("a training step with random numbers, running statistics and a schedule") {
  for (const bool has_autocast : {false, true}) {
    const size_t recorded = check_recorded([&](const auto& compile_it) {
      nn::Sequential net = digits_net();
      optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-3));
      optim::ExponentialLR schedule(optimizer, 0.9);
      const Function step = compile_it([&](const Tensor& x, const Tensor& y) -> Tensors {
        optimizer.zero_grad();
        Tensor loss;
        {
          const autocast::Autocast guard(x.device().type, kBFloat16, has_autocast);
          loss = F::cross_entropy(net->forward(x), y);
        }
        loss.backward();
        optimizer.step();
        return {loss};
      });
      Tensors losses;
      for (int i = 0; i < kSteps; ++i) {
        keep_copies(losses, step(images(), labels()));
        keep_copies(losses, {rand({3})});  // the generator is where it would be
        schedule.step();
      }
      keep_copies(losses, net->parameters());
      keep_copies(losses, net->buffers());
      return losses;
    });
    CHECK(recorded == (records() ? 1 : 0));
  }
}

TEST_CASE("a model whose loss is computed outside, and two of its results kept") {
  const size_t recorded = check_recorded([&](const auto& compile_it) {
    nn::Sequential net = digits_net();
    optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.01).momentum(0.9));
    const Function forward = compile_it([&](const Tensor& x, const Tensor&) -> Tensors {
      return {net->forward(x), x.mean()};
    });
    Tensors results, kept;
    Tensor loss;
    for (int i = 0; i < kSteps; ++i) {
      const Tensors given = forward(images(), labels());
      loss = F::cross_entropy(given[0], labels());
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      kept.insert(kept.end(), given.begin(), given.end());
    }
    keep_copies(results, kept);
    keep_copies(results, net->parameters());
    return results;
  });
  CHECK(recorded == (records() ? 1 : 0));
}

TEST_CASE("an inference of several sizes") {
  const size_t recorded = check_recorded([&](const auto& compile_it) {
    const NoGradGuard no_grad;
    nn::Sequential net = digits_net();
    net->eval();
    const Function forward = compile_it([&](const Tensor& x, const Tensor&) -> Tensors { return {net->forward(x)}; });
    Tensors kept;
    for (int i = 0; i < 3 * kSteps; ++i) kept.push_back(forward(images(1 + i % 3), labels())[0]);
    return kept;
  });
  CHECK(recorded == (records() ? 3 : 0));
}

TEST_CASE("epochs of whole batches and one that is not, with a validation between") {
  const size_t recorded = check_recorded([&](const auto& compile_it) {
    nn::Sequential net = digits_net();
    optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-3));
    const Function step = compile_it([&](const Tensor& x, const Tensor& y) -> Tensors {
      optimizer.zero_grad();
      const Tensor loss = F::cross_entropy(net->forward(x), y);
      loss.backward();
      optimizer.step();
      return {loss};
    });
    const Function validate = compile_it([&](const Tensor& x, const Tensor&) -> Tensors {
      const NoGradGuard no_grad;
      return {net->forward(x).argmax(1)};
    });
    Tensors results;
    for (int epoch = 0; epoch < kSteps; ++epoch) {
      net->train();
      for (const int64_t size : {8, 8, 8, 3}) keep_copies(results, step(images(size), labels(size)));
      net->eval();
      for (int i = 0; i < 2; ++i) keep_copies(results, validate(images(), labels()));
    }
    return results;
  });
  CHECK(recorded == (records() ? 3 : 0));
}

TEST_CASE("threads record at the same time, each on its own stream") {
  constexpr size_t kThreads = 3;
  const size_t recorded = check_recorded([&](const auto& compile_it) {
    std::vector<nn::Sequential> nets;
    std::vector<Function> steps;
    Tensors xs, ys;
    for (size_t i = 0; i < kThreads; ++i) {
      nn::Sequential net = digits_net();
      net->eval();  // so it draws no numbers, whose order among threads is no thread's
      nets.push_back(net);
      xs.push_back(images());
      ys.push_back(labels());
      steps.push_back(compile_it([net](const Tensor& x, const Tensor& y) mutable -> Tensors {
        net->zero_grad();
        const Tensor loss = F::cross_entropy(net->forward(x), y);
        loss.backward();
        return {loss};
      }));
    }
    const Device device = xs[0].device();
    Backend& backend = backend_of(device.type);
    backend.synchronize(device.index);
    std::vector<Tensors> losses(kThreads);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        std::optional<StreamGuard> guard;
        if (device.is_accelerator()) guard.emplace(backend.stream_from_pool(0));
        optim::SGD optimizer(nets[i]->parameters(), optim::SGDOptions(0.1));
        for (int step = 0; step < 3 * kSteps; ++step) {
          keep_copies(losses[i], steps[i](xs[i], ys[i]));
          optimizer.step();
          backend.synchronize(device.index);  // as another thread may capture
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    Tensors results;
    for (const Tensors& each : losses) results.insert(results.end(), each.begin(), each.end());
    return results;
  });
  CHECK(recorded == (records() ? kThreads : 0));
}

TEST_CASE("what a device cannot record is done as it stands") {
  const size_t recorded = check_recorded([&](const auto& compile_it) {
    const Tensor w = randn({16, 16});
    const Function function = compile_it([&](const Tensor& x, const Tensor&) -> Tensors {
      const NoGradGuard no_grad;
      const Tensor row = x.flatten(1).slice(1, 0, 16).matmul(w).relu().matmul(w),
                   inverse = (row.t().matmul(row) + 1).sum(0);
      const Tensor matrix = linalg_inv(diag_embed(inverse.abs() + 1));
      return {matrix, std::get<0>(row.sort(1)), linalg_eigvalsh(matrix)};
    });
    Tensors results;
    for (int i = 0; i < kSteps; ++i) keep_copies(results, function(images(), labels()));
    return results;
  });
  CHECK(recorded <= 1);
}

TEST_CASE("an operator's results may depend on whether an input of the program requires a gradient") {
  const size_t recorded = check_recorded([&](const auto& compile_it) {
    const Tensor offsets = tensor({0, 3, 6});
    const Function bags = compile_it([&](const Tensor& x, const Tensor& y) -> Tensors {
      const auto [sums, bag_of_index, sizes, maxima] =
          embedding_bag(x, y, offsets, false, static_cast<int64_t>(BagMode::Sum), false, std::nullopt, true);
      return {sums.detach(), sizes, autograd::grad({sums.exp().sum()}, {x})[0]};
    });
    Tensors kept;
    for (int i = 0; i < kSteps; ++i) {
      const Tensor table = randn({10, 4}).requires_grad_(true), indices = randint(10, {6}, kInt64);
      keep_copies(kept, bags(table, indices));
      kept.push_back(table);  // so the next one lies elsewhere
    }
    return kept;
  });
  CHECK(recorded == (records() ? 1 : 0));
}
