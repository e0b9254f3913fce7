// Processes with unequal numbers of batches, against one process that computes with those that are there.
#include "core/distributed/join.h"

#include <doctest/doctest.h>

#include "autograd/grad_mode.h"
#include "core/distributed/collectives.h"
#include "core/ops/basic.h"
#include "core/ops/nn/loss.h"
#include "core/ops/random/random_factories.h"
#include "nn/functional.h"
#include "nn/modules.h"
#include "nn/parallel/distributed_data_parallel.h"
#include "optim/optim.h"
#include "optim/zero_redundancy.h"
#include "tests/distributed/numbers.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using nn::parallel::DistributedDataParallelOptions;

struct TwoHeadsImpl : nn::Module {
  Tensor forward(const Tensor& x) {
    const Tensor hidden = norm(first(x)).tanh();
    return uses_second ? second(hidden) + last(hidden) : last(hidden);
  }
  nn::Linear first{register_module("first", nn::Linear(3, 8))};
  nn::BatchNorm1d norm{register_module("norm", nn::BatchNorm1d(8))};
  nn::Linear second{register_module("second", nn::Linear(8, 2))}, last{register_module("last", nn::Linear(8, 2))};
  bool uses_second = true;
};
RUSH_MODULE(TwoHeads);

TwoHeads make_net() {
  manual_seed(3);
  return TwoHeads();
}

// Process r has more batches than process r - 1; the first one has few, or none.
int64_t batches_of(int64_t rank, int64_t fewest) { return fewest + 2 * rank; }
Tensor batch_of(int64_t rank, int64_t step) {
  return testing::seeded_randn({4, 3}, static_cast<uint64_t>(100 * rank + step));
}

struct Plan {
  int64_t fewest = 1;
  bool divides_by_all = true, finds_unused = false;
  double bucket_cap_mb = 25;
  bool is_static = false;
};

void copy_all(const std::vector<Tensor>& targets, const std::vector<Tensor>& sources) {
  for (size_t i = 0; i < targets.size(); ++i) targets[i].copy_(sources[i]);
}

std::vector<Tensor> state_of(const nn::Module& net) {
  std::vector<Tensor> all;
  for (const Tensor& parameter : net.parameters()) all.push_back(parameter.detach().clone());
  for (const Tensor& buffer : net.buffers()) all.push_back(buffer.clone());
  return all;
}

// The parameters and buffers after all processes' batches. Each step has those of the processes that have one; buffers
// are at its beginning those of the first of these.
template <class MakeOptimizer>
std::vector<Tensor> train_alone(const Plan& plan, const MakeOptimizer& make_optimizer) {
  TwoHeads net = make_net();
  auto optimizer = make_optimizer(net->parameters());
  const int64_t size = get_world_size();
  std::vector<std::vector<Tensor>> buffers;  // of each process
  for (int64_t rank = 0; rank < size; ++rank) {
    for (auto& own = buffers.emplace_back(); const Tensor& buffer : net->buffers()) own.push_back(buffer.clone());
  }
  for (int64_t step = 0; step < batches_of(size - 1, plan.fewest); ++step) {
    optimizer.zero_grad();
    int64_t first = 0;
    while (step >= batches_of(first, plan.fewest)) ++first;
    const int64_t divisor = plan.divides_by_all ? size : size - first;
    const std::vector<Tensor> common = buffers[static_cast<size_t>(first)];
    for (int64_t rank = first; rank < size; ++rank) {
      copy_all(net->buffers(), common);
      net->uses_second = !plan.finds_unused || rank == size - 1;
      (net(batch_of(rank, step)).sin().sum() / divisor).backward();
      std::vector<Tensor> after;
      for (const Tensor& buffer : net->buffers()) after.push_back(buffer.clone());
      buffers[static_cast<size_t>(rank)] = after;
    }
    copy_all(net->buffers(), buffers[static_cast<size_t>(first)]);
    optimizer.step();
  }
  return state_of(*net);
}

template <class MakeOptimizer>
std::vector<Tensor> train_joined(const Plan& plan, const MakeOptimizer& make_optimizer) {
  TwoHeads inner = make_net();
  nn::DistributedDataParallel net(inner, DistributedDataParallelOptions()
                                             .find_unused_parameters(plan.finds_unused && !plan.is_static)
                                             .static_graph(plan.is_static)
                                             .bucket_cap_mb(plan.bucket_cap_mb));
  inner->uses_second = !plan.finds_unused || get_rank() == get_world_size() - 1;
  auto optimizer = make_optimizer(net->parameters());
  std::vector<Joinable*> joinables{net.get()};
  if constexpr (std::is_base_of_v<Joinable, decltype(optimizer)>) joinables.push_back(&optimizer);
  {
    const Join joined(joinables, {.divide_by_initial_world_size = plan.divides_by_all});
    for (int64_t step = 0; step < batches_of(get_rank(), plan.fewest); ++step) {
      optimizer.zero_grad();
      net(batch_of(get_rank(), step)).sin().sum().backward();
      optimizer.step();
    }
  }
  return state_of(*net);
}

void check_close(const std::vector<Tensor>& result, const std::vector<Tensor>& expected) {
  REQUIRE(result.size() == expected.size());
  for (size_t i = 0; i < result.size(); ++i) {
    CAPTURE(i);
    CHECK(allclose(result[i].to(kFloat64), expected[i].to(kFloat64), 1e-4, 1e-5));
  }
}

const auto kSgd = [](const auto& params) { return optim::SGD(params, optim::SGDOptions(0.05).momentum(0.9)); };

TEST_CASE("processes that run out of batches have the parameters and buffers of those that go on") {
  for (const bool divides_by_all : {true, false}) {
    for (const bool finds_unused : {false, true}) {
      for (const double bucket_cap_mb : {25.0, 1e-6}) {
        for (const int64_t fewest : {0, 2}) {
          CAPTURE(divides_by_all);
          CAPTURE(finds_unused);
          CAPTURE(bucket_cap_mb);
          CAPTURE(fewest);
          const Plan plan{fewest, divides_by_all, finds_unused, bucket_cap_mb};
          check_close(train_joined(plan, kSgd), train_alone(plan, kSgd));
        }
      }
    }
  }
}

TEST_CASE("a static graph may be joined, also by a process that begins without batches") {
  Plan plan;
  plan.fewest = 0;
  plan.finds_unused = plan.is_static = true;
  check_close(train_joined(plan, kSgd), train_alone(plan, kSgd));
}

TEST_CASE("an optimiser whose states are shared out goes on stepping the part of a process without batches") {
  const auto shared_out = [](const auto& params) {
    return optim::ZeroRedundancyOptimizer<optim::SGD>(params, optim::SGDOptions(0.05).momentum(0.9));
  };
  check_close(train_joined({}, shared_out), train_alone({}, kSgd));
}

TEST_CASE("passes under no_sync, in evaluation and several before one backward pass may be joined") {
  nn::DistributedDataParallel net(make_net());
  TwoHeads alone = make_net();
  alone->eval();
  net->eval();  // batch norms would see other buffers after a forward pass
  {
    const auto joined = net->join();
    for (int64_t step = 0; step < batches_of(get_rank(), 1); ++step) {
      net->zero_grad();
      const Tensor x = batch_of(get_rank(), step);
      {
        const auto guard = net->no_sync();
        net(x).sum().backward();
      }
      {
        const NoGradGuard no_grad;
        net(x);
      }
      (net(x) + net(x * 2)).sum().backward();
    }
  }
  const int64_t last = get_world_size() - 1;
  const Tensor x = batch_of(last, batches_of(last, 1) - 1);
  (alone(x).sum() + (alone(x) + alone(x * 2)).sum()).div(get_world_size()).backward();
  for (size_t i = 0; i < alone->parameters().size(); ++i) {
    CHECK(allclose(net->parameters()[i].grad(), alone->parameters()[i].grad(), 1e-4, 1e-6));
  }
}

TEST_CASE("all processes throw where one has no more batches, if they are told to") {
  nn::DistributedDataParallel net(make_net());
  int64_t steps = 0;
  const auto train = [&] {
    const auto joined = net->join({.throw_on_early_termination = true});
    for (; steps < batches_of(get_rank(), 1); ++steps) net(batch_of(get_rank(), steps)).sum().backward();
  };
  CHECK_THROWS_WITH_AS(train(), doctest::Contains(" processes have no more batches"), DistributedError);
  CHECK(steps == 1);
}

TEST_CASE("a net without buffers, whose backward pass is what throws then, goes on training") {
  manual_seed(3);
  nn::DistributedDataParallel net(nn::Linear(3, 2));
  for (int epoch = 0; epoch < 2; ++epoch) {
    const auto train = [&] {
      const auto joined = net->join({.throw_on_early_termination = true});
      for (int64_t i = 0; i < batches_of(get_rank(), 1); ++i) net(batch_of(get_rank(), i)).sum().backward();
    };
    CHECK_THROWS_WITH_AS(train(), doctest::Contains(" processes have no more batches"), DistributedError);
  }
  net->zero_grad();
  net(full({1, 3}, 1.0 + get_rank())).sum().backward();
  testing::check_close(net->parameters()[0].grad(), full({2, 3}, (1.0 + get_world_size()) / 2), 1e-6);
}

TEST_CASE("an exception ends a Join at once, and a joinable has one") {
  nn::DistributedDataParallel net(make_net());
  const auto fail = [&] {
    const auto joined = net->join();
    RUSH_THROW(ValueError, "of the loop");
  };
  CHECK_THROWS_WITH_AS(fail(), doctest::Contains("of the loop"), ValueError);
  {
    const auto joined = net->join();
    CHECK_THROWS_WITH_AS(net->join(), doctest::Contains("under a Join already"), Error);
  }
  CHECK_THROWS_WITH_AS(Join({}), doctest::Contains("nothing to join"), ValueError);
  const nn::DistributedDataParallel other(make_net(),
                                          DistributedDataParallelOptions().process_group(new_group(world()->ranks())));
  CHECK_THROWS_WITH_AS(Join({net.get(), other.get()}), doctest::Contains("different process groups"), ValueError);
}

}  // namespace
