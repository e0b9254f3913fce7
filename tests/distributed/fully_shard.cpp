// fully_shard against one process that has the whole net and the whole batch.
#include "nn/parallel/fully_shard.h"

#include <doctest/doctest.h>

#include "core/distributed/collectives.h"
#include "tests/distributed/rank_inputs.h"
#include "tests/distributed/small_gpt.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using namespace rush::nn::parallel;
using testing::same_bits;

constexpr int64_t kSteps = 50;

void shard(testing::SmallGpt& net, const FullyShardOptions& options = {}) {
  for (const auto& layer : net->layers->children()) fully_shard(*layer, options);
  fully_shard(net, options);
}

testing::TokenBatch part_of(const testing::TokenBatch& batch, int64_t part, int64_t parts) {
  const int64_t rows = testing::kBatch / parts;
  return {batch.ids.narrow(0, part * rows, rows), batch.targets.narrow(0, part * rows, rows)};
}

double mean_everywhere(const Tensor& loss) {
  Tensor mean = loss.detach().to(kFloat64).clone();
  all_reduce(mean, ReduceOp::AVG);
  return mean.item<double>();
}

testing::TrainingRun train_sharded(const FullyShardOptions& options, int64_t steps = kSteps) {
  testing::SmallGpt net = testing::make_small_gpt();
  shard(net, options);
  optim::AdamW optimizer = testing::make_optimizer(net->parameters());
  testing::TrainingRun run;
  for (int64_t step = 0; step < steps; ++step) {
    const testing::TokenBatch batch = part_of(testing::TokenBatch::of_step(step), get_rank(), get_world_size());
    optimizer.zero_grad();
    const Tensor loss = testing::token_loss(net(batch.ids), batch.targets);
    loss.backward();
    optimizer.step();
    run.losses.push_back(mean_everywhere(loss));
  }
  for (const Tensor& parameter : net->parameters()) run.parameters.push_back(full_tensor(parameter));
  return run;
}

const testing::TrainingRun& alone() {
  static const testing::TrainingRun run = testing::train_small_gpt_alone(kSteps);
  return run;
}

void check_close(const testing::TrainingRun& run) {
  REQUIRE(run.losses.size() == alone().losses.size());
  for (size_t i = 0; i < run.losses.size(); ++i) CHECK(std::abs(run.losses[i] - alone().losses[i]) < 1e-6);
}

}  // namespace

TEST_CASE("fully_shard: a net that is sharded by layers trains as on one process") {
  const testing::TrainingRun run = train_sharded({});
  check_close(run);
}
