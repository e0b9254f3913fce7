// DistributedDataParallel whose processes are threads: what a rank's backward pass shares with the thread that carries
// out its collectives. tests/distributed has those of several processes.
#include "nn/parallel/distributed_data_parallel.h"

#include <doctest/doctest.h>

#include "core/ops/nn/loss.h"
#include "core/ops/random/random_factories.h"
#include "nn/functional.h"
#include "nn/modules.h"
#include "nn/parallel/power_sgd.h"
#include "optim/optim.h"
#include "optim/zero_redundancy.h"
#include "tests/nn/thread_ranks.h"

namespace {

using namespace rush;
using nn::parallel::DistributedDataParallelOptions;
using testing::run_ranks;

constexpr int kRanks = 3;
constexpr int64_t kSteps = 8;

nn::Sequential make_net() {
  manual_seed(6);
  return nn::Sequential(nn::Linear(5, 16), nn::BatchNorm1d(16), nn::Tanh(), nn::Linear(16, 16), nn::Tanh(),
                        nn::Linear(16, 3));
}

Tensor batch_of(int rank, int64_t step) {
  return randn({8, 5}, make_generator<CPUGeneratorImpl>(static_cast<uint64_t>(100 * rank + step)));
}

Tensor loss_of(const Tensor& output, const Tensor& x) {
  return nn::functional::mse_loss(output, x.narrow(1, 0, 3).sin());
}

// One process that computes with the batches of ranks from `first(step)` on, as if they were all.
template <class First>
std::vector<Tensor> train_alone(const First& first) {
  nn::Sequential net = make_net();
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  for (int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    for (int rank = first(step); rank < kRanks; ++rank) {
      const Tensor x = batch_of(rank, step);
      (loss_of(net(x), x) / kRanks).backward();
    }
    optimizer.step();
  }
  return net->parameters();
}

// Rank r has `fewest + r` batches, or all.
std::vector<std::vector<Tensor>> train_on_threads(const DistributedDataParallelOptions& options, int64_t fewest,
                                                  const nn::parallel::CommHook& hook = nullptr) {
  std::vector<nn::Sequential> nets;
  for (int rank = 0; rank < kRanks; ++rank) nets.push_back(make_net());  // from the one default generator
  std::vector<std::vector<Tensor>> parameters(kRanks);
  run_ranks(kRanks, [&](const distributed::Group& group) {
    const auto rank = static_cast<size_t>(group->rank());
    nn::DistributedDataParallel net(nets[rank], DistributedDataParallelOptions(options).process_group(group));
    if (hook) net->register_comm_hook(hook);
    optim::ZeroRedundancyOptimizer<optim::SGD> optimizer(net->parameters(), optim::SGDOptions(0.1).momentum(0.9),
                                                         group);
    {
      const distributed::Join joined({net.get(), &optimizer});
      for (int64_t step = 0; step < std::min<int64_t>(kSteps, fewest + group->rank()); ++step) {
        optimizer.zero_grad();
        const Tensor x = batch_of(group->rank(), step);
        loss_of(net(x), x).backward();
        optimizer.step();
      }
    }
    parameters[rank] = net->parameters();
  });
  return parameters;
}

void check_close(const std::vector<std::vector<Tensor>>& results, const std::vector<Tensor>& expected,
                 double tolerance = 1e-5) {
  for (const std::vector<Tensor>& result : results) {
    REQUIRE(result.size() == expected.size());
    for (size_t i = 0; i < result.size(); ++i) CHECK(allclose(result[i], expected[i], tolerance, tolerance));
  }
}

TEST_CASE("ranks on threads train as one process") {
  const auto expected = train_alone([](int64_t) { return 0; });
  for (const double bucket_cap_mb : {25.0, 1e-6}) {
    const auto options = DistributedDataParallelOptions().bucket_cap_mb(bucket_cap_mb);
    check_close(train_on_threads(options, kSteps), expected);
    check_close(train_on_threads(DistributedDataParallelOptions(options).find_unused_parameters(true), kSteps),
                expected);
    check_close(train_on_threads(options, kSteps, nn::parallel::bf16_compress_hook), expected, 0.02);
  }
}

TEST_CASE("a rank without batches shadows the others") {
  const auto first_with_batch = [](int64_t step) {
    return static_cast<int>(std::max<int64_t>(0, step - (kSteps - kRanks)));
  };
  check_close(train_on_threads(DistributedDataParallelOptions().bucket_cap_mb(1e-6), kSteps - kRanks + 1),
              train_alone(first_with_batch));
}

TEST_CASE("compressed gradients are the same on all ranks") {
  std::vector<std::vector<Tensor>> gradients(kRanks);
  std::vector<nn::Sequential> nets;
  for (int rank = 0; rank < kRanks; ++rank) nets.push_back(make_net());
  run_ranks(kRanks, [&](const distributed::Group& group) {
    const auto rank = static_cast<size_t>(group->rank());
    nn::DistributedDataParallel net(nets[rank],
                                    DistributedDataParallelOptions().process_group(group).bucket_cap_mb(1e-6));
    net->register_comm_hook(
        nn::parallel::powerSGD_hook(nn::parallel::PowerSGDOptions().start_powerSGD_iter(2).min_compression_rate(1)));
    for (int64_t step = 0; step < kSteps; ++step) {
      net->zero_grad();
      const Tensor x = batch_of(group->rank(), step);
      loss_of(net(x), x).backward();
    }
    for (const Tensor& parameter : net->parameters()) gradients[rank].push_back(parameter.grad());
  });
  for (int rank = 1; rank < kRanks; ++rank) {
    for (size_t i = 0; i < gradients[0].size(); ++i) {
      CHECK(equal(gradients[0][i], gradients[static_cast<size_t>(rank)][i]));
    }
  }
}

}  // namespace
