// DistributedDataParallel against one process that computes with all batches together.
#include "nn/parallel/distributed_data_parallel.h"

#include <doctest/doctest.h>

#include "autograd/checkpoint.h"
#include "autograd/engine.h"
#include "autograd/hooks.h"
#include "core/distributed/collectives.h"
#include "core/distributed/flight_recorder.h"
#include "core/ops/nn/loss.h"
#include "core/ops/random/random_factories.h"
#include "nn/functional.h"
#include "nn/modules.h"
#include "nn/parallel/sync_batch_norm.h"
#include "optim/optim.h"
#include "optim/zero_redundancy.h"
#include "tests/distributed/rank_inputs.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using nn::parallel::DistributedDataParallelOptions;
using testing::same_bits;

constexpr int64_t kRows = 8, kWidth = 24, kSteps = 50;  // rows of one process

struct PerceptronImpl : nn::Cloneable<PerceptronImpl> {
  PerceptronImpl() { reset(); }
  void reset() override {
    layers = register_module("layers", nn::Sequential());
    for (int i = 0; i < 4; ++i) {
      if (i > 0) layers->push_back(nn::ReLU());
      layers->push_back(nn::Linear(kWidth, i == 3 ? 5 : kWidth));
    }
    spare = register_module("spare", nn::Linear(3, 5));
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = layers->forward(x);
    return uses_spare ? y + spare->forward(x.narrow(1, 0, 3)) : y;
  }
  nn::Sequential layers{nullptr};
  nn::Linear spare{nullptr};
  bool uses_spare = true;
};
RUSH_MODULE(Perceptron);

Perceptron make_net(uint64_t seed) {
  manual_seed(seed);
  return Perceptron();
}

// The batch of all processes, of which each has its rows.
struct Batch {
  Tensor x, y;
  static Batch of_step(int64_t step) {
    Generator generator = make_generator<CPUGeneratorImpl>(1000 + static_cast<uint64_t>(step));
    const int64_t rows = kRows * get_world_size();
    const Tensor x = randn({rows, kWidth}, generator, TensorOptions(kCPU));
    return {testing::here(x), testing::here(randint(0, 5, {rows}, generator, TensorOptions(kInt64).device(kCPU)))};
  }
  Batch of_rank(int64_t rank) const { return {x.narrow(0, rank * kRows, kRows), y.narrow(0, rank * kRows, kRows)}; }
};

Tensor loss_of(const Tensor& output, const Tensor& target) { return nn::functional::cross_entropy(output, target); }

// The losses of all batches of all processes, by `net`, which has computed its own.
double mean_everywhere(const Tensor& loss) {
  Tensor mean = loss.detach().to(kFloat64);
  all_reduce(mean, ReduceOp::AVG);
  return mean.item<double>();
}

struct Run {
  std::vector<double> losses;
  std::vector<Tensor> parameters;
};

Run train_together(const DistributedDataParallelOptions& options, int64_t steps = kSteps) {
  nn::DistributedDataParallel net(make_net(7 + static_cast<uint64_t>(get_rank())), options);
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  Run run;
  for (int64_t step = 0; step < steps; ++step) {
    const Batch batch = Batch::of_step(step).of_rank(get_rank());
    optimizer.zero_grad();
    const Tensor loss = loss_of(net(batch.x), batch.y);
    loss.backward();
    optimizer.step();
    run.losses.push_back(mean_everywhere(loss));
  }
  run.parameters = net->parameters();
  return run;
}

Run train_alone(int64_t steps = kSteps) {
  Perceptron net = make_net(7);
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  Run run;
  for (int64_t step = 0; step < steps; ++step) {
    const Batch batch = Batch::of_step(step);
    optimizer.zero_grad();
    const Tensor loss = loss_of(net(batch.x), batch.y);
    loss.backward();
    optimizer.step();
    run.losses.push_back(loss.item<double>());
  }
  run.parameters = net->parameters();
  return run;
}

void check_close(const Run& run, const Run& expected) {
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    CHECK(std::abs(run.losses[i] - expected.losses[i]) < 1e-6);
  }
  for (size_t i = 0; i < expected.parameters.size(); ++i) {
    CHECK(allclose(run.parameters[i], expected.parameters[i], 1e-5, 1e-6));
  }
}

TEST_CASE("fifty steps have the losses of one process, bit for bit in every run and in buckets of any size") {
  const Run alone = train_alone();
  CHECK(alone.losses.back() < 0.9 * alone.losses.front());
  const Run first = train_together({});
  check_close(first, alone);
  // A gradient's sum has the same order in whatever bucket it lies.
  for (const double megabytes : {25.0, 0.002, 1e-6}) {
    const Run again = train_together(DistributedDataParallelOptions().bucket_cap_mb(megabytes));
    CHECK(again.losses == first.losses);
    for (size_t i = 0; i < first.parameters.size(); ++i) CHECK(same_bits(again.parameters[i], first.parameters[i]));
  }
}

TEST_CASE("parameters are those of the first process at first, and the same everywhere at the end") {
  nn::DistributedDataParallel net(make_net(7 + static_cast<uint64_t>(get_rank())));
  const std::vector<Tensor> expected = make_net(7)->parameters();
  for (size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(net->parameters()[i], expected[i]));
  for (const Tensor& parameter : train_together({}, 3).parameters) {
    std::vector<Tensor> all;
    for (int i = 0; i < get_world_size(); ++i) all.push_back(empty_like(parameter.detach()));
    all_gather(all, parameter);
    for (const Tensor& other : all) CHECK(same_bits(other, parameter.detach()));
  }
}

TEST_CASE("gradients are views of buckets") {
  nn::DistributedDataParallel net(make_net(1));
  loss_of(net(Batch::of_step(0).of_rank(get_rank()).x), Batch::of_step(0).of_rank(get_rank()).y).backward();
  CHECK(net->num_buckets() == 1);
  const std::vector<Tensor> parameters = net->parameters();
  for (const Tensor& parameter : parameters) {
    CHECK(parameter.grad().storage().unsafeGetStorageImpl() == parameters[0].grad().storage().unsafeGetStorageImpl());
  }
}

TEST_CASE("micro-batches under no_sync are added up before they are sent") {
  nn::DistributedDataParallel net(make_net(3));
  const Batch batch = Batch::of_step(0).of_rank(get_rank());
  const auto half = [&](int64_t i) {
    return loss_of(net(batch.x.narrow(0, i * kRows / 2, kRows / 2)), batch.y.narrow(0, i * kRows / 2, kRows / 2)) / 2;
  };
  {
    const auto guard = net->no_sync();
    half(0).backward();
    Perceptron alone = make_net(3);
    (loss_of(alone(batch.x.narrow(0, 0, kRows / 2)), batch.y.narrow(0, 0, kRows / 2)) / 2).backward();
    CHECK(same_bits(net->parameters()[0].grad(), alone->parameters()[0].grad()));
  }
  half(1).backward();

  Perceptron alone = make_net(3);
  loss_of(alone(Batch::of_step(0).x), Batch::of_step(0).y).backward();
  for (size_t i = 0; i < alone->parameters().size(); ++i) {
    CHECK(allclose(net->parameters()[i].grad(), alone->parameters()[i].grad(), 1e-4, 1e-6));
  }
}

TEST_CASE("a parameter that a process has not used counts as zero there, one that none has used keeps its gradient") {
  Perceptron inner = make_net(5);
  nn::DistributedDataParallel net(inner, DistributedDataParallelOptions().find_unused_parameters(true));
  const Batch batch = Batch::of_step(0).of_rank(get_rank());
  for (int round = 0; round < 2; ++round) {
    net->zero_grad();
    inner->uses_spare = get_rank() == 0;
    loss_of(net(batch.x), batch.y).backward();
    Tensor expected = zeros_like(inner->spare->weight.detach());
    if (get_rank() == 0) {
      Perceptron alone = make_net(5);
      loss_of(alone(batch.x), batch.y).backward();
      expected = alone->spare->weight.grad() / get_world_size();
    }
    broadcast(expected, 0);
    CHECK(allclose(inner->spare->weight.grad(), expected, 1e-5, 1e-7));

    net->zero_grad();
    inner->uses_spare = false;
    loss_of(net(batch.x), batch.y).backward();
    CHECK(!inner->spare->weight.grad().defined());
    CHECK(inner->layers->parameters()[0].grad().defined());
  }
}

TEST_CASE("a static graph's unused parameters are told once") {
  const auto gradients = [](const DistributedDataParallelOptions& options, size_t collectives) {
    Perceptron inner = make_net(5);
    nn::DistributedDataParallel net(inner, DistributedDataParallelOptions(options).bucket_cap_mb(0.002));
    inner->uses_spare = get_rank() == 0;
    std::vector<Tensor> all;
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      const Batch batch = Batch::of_step(step).of_rank(get_rank());
      flight_recorder().clear();
      loss_of(net(batch.x), batch.y).backward();
      for (const Tensor& parameter : net->parameters()) all.push_back(parameter.grad().clone());
    }
    CHECK(flight_recorder().records().size() == net->num_buckets() + collectives);
    return all;
  };
  const auto expected = gradients(DistributedDataParallelOptions().find_unused_parameters(true), 1);
  const auto result = gradients(DistributedDataParallelOptions().static_graph(true), 0);
  for (size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(result[i], expected[i]));

  Perceptron inner = make_net(5);
  nn::DistributedDataParallel net(inner, DistributedDataParallelOptions().static_graph(true));
  inner->uses_spare = false;
  for (int step = 0; step < 2; ++step) net(ones({1, kWidth})).sum().backward();
  CHECK(!inner->spare->weight.grad().defined());
  inner->uses_spare = true;
  CHECK_THROWS_WITH_AS(net(ones({1, kWidth})), doctest::Contains("now depends on the parameter 'spare.weight'"), Error);
}

struct TwiceImpl : nn::Module {
  Tensor forward(const Tensor& x) {
    const auto once = [this](const Tensor& t) { return layer(t).tanh(); };
    return checkpoints ? autograd::checkpoint(once, autograd::checkpoint(once, x)) : once(once(x));
  }
  nn::Linear layer{register_module("layer", nn::Linear(4, 4))};
  bool checkpoints = false;
};
RUSH_MODULE(Twice);

TEST_CASE("a module that is checkpointed twice in a forward pass has the gradients of one that is not") {
  for (const bool is_static : {false, true}) {
    Twice inner;
    nn::DistributedDataParallel net(inner, DistributedDataParallelOptions().static_graph(is_static));
    const auto gradient = [&](bool checkpoints) {
      net->zero_grad();
      inner->checkpoints = checkpoints;
      net(ones({2, 4}).mul(get_rank() + 1)).sum().backward();
      return inner->layer->weight.grad().clone();
    };
    const Tensor expected = gradient(false);
    CHECK(same_bits(gradient(true), expected));
  }
}

TEST_CASE("what would make processes wait for ever is an error") {
  Perceptron inner = make_net(5);
  nn::DistributedDataParallel net(inner);
  inner->uses_spare = false;
  CHECK_THROWS_WITH_AS(net(ones({1, kWidth})), doctest::Contains("does not depend on the parameter 'spare.weight'"),
                       Error);
  inner->uses_spare = true;
  const Tensor output = net(ones({1, kWidth}));
  output.sum().backward({}, /*retain_graph=*/true);
  CHECK_NOTHROW(output.sum().backward());  // added up here, as PyTorch does; nothing is sent
}

TEST_CASE("an optimiser whose states are shared out takes the same steps") {
  const auto train = [](auto make_optimizer) {
    nn::DistributedDataParallel net(make_net(11));
    auto optimizer = make_optimizer(net->parameters());
    optim::StepLR schedule(optimizer, 2, 0.5);
    for (int64_t step = 0; step < 5; ++step) {
      const Batch batch = Batch::of_step(step).of_rank(get_rank());
      optimizer.zero_grad();
      CHECK(!net->parameters().back().grad().defined());
      loss_of(net(batch.x), batch.y).backward();
      optimizer.step();
      schedule.step();
    }
    return std::pair(net->parameters(), optimizer.state().size());
  };
  const auto [expected, all_states] =
      train([](const auto& params) { return optim::AdamW(params, optim::AdamWOptions(1e-2)); });
  const auto [result, own_states] = train([](const auto& params) {
    return optim::ZeroRedundancyOptimizer<optim::AdamW>(params, optim::AdamWOptions(1e-2));
  });
  for (size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(result[i].detach(), expected[i].detach()));
  CHECK(own_states < all_states);
  Tensor states = full({}, static_cast<int64_t>(own_states), kInt64);
  all_reduce(states);
  CHECK(states.item<int64_t>() == static_cast<int64_t>(all_states));
  CHECK_THROWS_WITH_AS(optim::ZeroRedundancyOptimizer<optim::SGD>({ones({1})}, optim::SGDOptions(1)),
                       doctest::Contains("cannot be shared out"), ValueError);
}

struct WideImpl : nn::Module {
  explicit WideImpl(int64_t width) : layer(register_module("layer", nn::Linear(3, width))) {}
  Tensor forward(const Tensor& x) { return layer(x); }
  nn::Linear layer;
};
RUSH_MODULE(Wide);

TEST_CASE("processes with other parameters are told so, all of them") {
  const int64_t width = get_rank() == 1 ? 5 : 4;
  const char* expected = get_rank() == 1 ? "'layer.weight' is float32 of shape (5, 3)" : "of another process";
  CHECK_THROWS_WITH_AS(nn::DistributedDataParallel{Wide(width)}, doctest::Contains(expected), DistributedError);

  std::vector<Tensor> params;  // one process has one more, which it would step alone
  for (int i = 0; i < get_world_size() + (get_rank() == 1); ++i) params.push_back(zeros({2}, kFloat32));
  const auto share_out = [&] { optim::ZeroRedundancyOptimizer<optim::SGD>(params, optim::SGDOptions(0.1)); };
  expected = get_rank() == 1 ? "has 3 parameters, process 0 has 2" : "of another process";
  if (get_world_size() == 2) CHECK_THROWS_WITH_AS(share_out(), doctest::Contains(expected), DistributedError);
}

struct MarkedImpl : nn::Module {
  Tensor forward(const Tensor& x) {
    const Tensor hidden = first(x);
    hidden.register_hook([this](const Tensor&) { between(); });
    return last(hidden.relu());
  }
  nn::Linear first{register_module("first", nn::Linear(4, 4))}, last{register_module("last", nn::Linear(4, 4))};
  std::function<void()> between;
};
RUSH_MODULE(Marked);

TEST_CASE("the gradients of later modules are in their buckets while earlier ones are computed") {
  Marked inner;
  nn::DistributedDataParallel net(inner);
  bool last_is_there = false, first_is_there = true;
  inner->between = [&] {
    last_is_there = inner->last->weight.grad().defined() && inner->last->bias.grad().defined();
    first_is_there = inner->first->weight.grad().defined();
  };
  Tensor output;  // keeps the graph of the last round alive
  for (int round = 0; round < 3; ++round) {
    net->zero_grad();
    output = net(ones({2, 4}));
    output.sum().backward();
    CHECK(last_is_there);
    CHECK(!first_is_there);
  }
}

TEST_CASE("SyncBatchNorm normalises by the rows of all processes") {
  for (const ScalarType dtype : {kFloat64, kBFloat16}) {
    const double tolerance = dtype == kFloat64 ? 1e-10 : 0.02;
    manual_seed(2);
    // Each process has another number of rows: rank + 1.
    const int64_t size = get_world_size(), rank = get_rank(), start = rank * (rank + 1) / 2;
    const Tensor all = randn({size * (size + 1) / 2, 3, 2, 2}, kFloat64).mul(3).add(100).to(dtype).requires_grad_();
    const Tensor weights = randn(all.sizes(), kFloat64).to(dtype);
    nn::BatchNorm2d alone(3);
    nn::SyncBatchNorm together(3);
    alone->to(dtype == kFloat64 ? kFloat64 : kFloat32);
    together->to(dtype == kFloat64 ? kFloat64 : kFloat32);
    const Tensor expected = alone(all);
    (expected * weights).sum().backward();

    const Tensor mine = all.detach().narrow(0, start, rank + 1).clone().requires_grad_();
    const Tensor result = together(mine);
    (result * weights.narrow(0, start, rank + 1)).sum().backward();
    const auto close = [&](const Tensor& a, const Tensor& b) {
      return allclose(a.to(kFloat64), b.to(kFloat64), tolerance, tolerance);
    };
    CHECK(result.scalar_type() == dtype);
    CHECK(close(result, expected.narrow(0, start, rank + 1)));
    CHECK(close(mine.grad(), all.grad().narrow(0, start, rank + 1)));
    CHECK(close(together->running_mean, alone->running_mean));
    CHECK(close(together->running_var, alone->running_var));
    Tensor weight_grad = together->weight.grad().clone();
    all_reduce(weight_grad);
    CHECK(close(weight_grad, alone->weight.grad()));
    together->eval();
    alone->eval();
    CHECK(close(together(mine), alone(all).narrow(0, start, rank + 1)));
    CHECK_THROWS_WITH_AS(together(ones({2, 4})), doctest::Contains("expected an input of shape (N, 3, ...)"),
                         ValueError);
  }
}

TEST_CASE("two forward passes have one backward pass") {
  nn::DistributedDataParallel net(make_net(9));
  Perceptron alone = make_net(9);
  for (int round = 0; round < 2; ++round) {
    net->zero_grad();
    alone->zero_grad();
    const Batch batch = Batch::of_step(round), mine = batch.of_rank(get_rank());
    const Tensor first = net(mine.x), second = net(mine.x * 2);
    loss_of(first + second, mine.y).backward();
    loss_of(alone(batch.x) + alone(batch.x * 2), batch.y).backward();
    for (size_t i = 0; i < alone->parameters().size(); ++i) {
      CHECK(allclose(net->parameters()[i].grad(), alone->parameters()[i].grad(), 1e-4, 1e-6));
    }
  }
}

TEST_CASE("gradients that travel in 16 bits are those means, rounded") {
  for (const ScalarType dtype : {kBFloat16, kFloat16}) {
    const auto hook = dtype == kBFloat16 ? nn::parallel::bf16_compress_hook : nn::parallel::fp16_compress_hook;
    const auto gradients = [&](bool compresses) {
      nn::DistributedDataParallel net(make_net(4));
      if (compresses) net->register_comm_hook(hook);
      const Batch batch = Batch::of_step(0).of_rank(get_rank());
      loss_of(net(batch.x), batch.y).backward();
      std::vector<Tensor> all;
      for (const Tensor& parameter : net->parameters()) all.push_back(parameter.grad().clone());
      return all;
    };
    const std::vector<Tensor> exact = gradients(false), rounded = gradients(true);
    bool differs = false;
    for (size_t i = 0; i < exact.size(); ++i) {
      CHECK(same_bits(rounded[i], rounded[i].to(dtype).to(kFloat32)));
      CHECK(allclose(rounded[i], exact[i], 0.02, 1e-4));
      differs = differs || !same_bits(rounded[i], exact[i]);
    }
    CHECK(differs);
  }
}

struct NormalizedImpl : nn::Module {
  Tensor forward(const Tensor& x) { return norm(x); }
  nn::BatchNorm1d norm{register_module("norm", nn::BatchNorm1d(3))};
};
RUSH_MODULE(Normalized);

TEST_CASE("buffers are those of the first process at the start of each forward pass") {
  nn::DistributedDataParallel net{Normalized()};
  for (int step = 0; step < 2; ++step) net(full({4, 3}, get_rank() + 1.0).add(arange(4).unsqueeze(1))).sum().backward();
  // Two updates; the first was that of rank 0, whose means are 2.5.
  const double mean = net->module()->norm->running_mean[0].item<double>();
  CHECK(mean == doctest::Approx(0.9 * 0.25 + 0.1 * (get_rank() + 2.5)));
}

}  // namespace
