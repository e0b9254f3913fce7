// Pipelines on several processes against one process with the whole net.
#include "nn/parallel/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "autograd/saved_tensors_hooks.h"
#include "core/distributed/collectives.h"
#include "core/distributed/device_mesh.h"
#include "tests/distributed/rank_inputs.h"
#include "tests/distributed/small_gpt.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using namespace rush::nn::parallel;
using testing::same_bits;

constexpr int64_t kSteps = 50;

// Some layers of the small GPT: the first stage has the embeddings too, the last one norm and head.
struct GptStageImpl : nn::Module {
  GptStageImpl(const testing::SmallGpt& net, int index, int count) : has_ids(index == 0), has_head(index == count - 1) {
    const int64_t layers_each = testing::kLayers / count;
    if (has_ids) tokens = register_module("tokens", net->tokens);
    if (has_ids) positions = register_module("positions", net->positions);
    layers = register_module("layers", nn::ModuleList());
    for (int64_t i = index * layers_each; i < (index + 1) * layers_each; ++i) {
      layers->push_back(net->layers->ptr(static_cast<size_t>(i)));
    }
    if (has_head) norm = register_module("norm", net->norm);
    if (has_head) head = register_module("head", net->head);
  }
  // ids (B, T) or (B, T, C) -> (B, T, C) or scores (B, T, V)
  Tensor forward(const Tensor& input) {
    Tensor x = has_ids ? tokens(input) + positions(arange(input.size(1), kInt64)) : input;
    for (size_t i = 0; i < layers->size(); ++i) x = testing::Layer(layers->ptr<testing::LayerImpl>(i))(x);
    return has_head ? head(norm(x)) : x;
  }
  const bool has_ids, has_head;
  nn::Embedding tokens{nullptr}, positions{nullptr};
  nn::ModuleList layers{nullptr};
  nn::LayerNorm norm{nullptr};
  nn::Linear head{nullptr};
};
RUSH_MODULE(GptStage);

std::vector<PipelineStage> gpt_stages(int per_process, const Group& group = world()) {
  const testing::SmallGpt net = testing::make_small_gpt();
  const int count = group->size() * per_process;
  std::vector<PipelineStage> stages;
  for (int index = group->rank(); index < count; index += group->size()) {
    stages.emplace_back(GptStage(net, index, count), index, count, group);
  }
  return stages;
}

testing::TrainingRun train(PipelineSchedule& schedule) {
  optim::AdamW optimizer = testing::make_optimizer(schedule.parameters());
  testing::TrainingRun run;
  for (int64_t step = 0; step < kSteps; ++step) {
    const testing::TokenBatch batch = testing::TokenBatch::of_step(step);
    optimizer.zero_grad();
    const Tensor loss = schedule.step(batch.ids, batch.targets);
    optimizer.step();
    REQUIRE(loss.defined() == schedule.stages().back().is_last());
    if (loss.defined()) run.losses.push_back(loss.item<double>());
  }
  run.parameters = schedule.parameters();
  return run;
}

void check_losses(const testing::TrainingRun& run) {
  if (run.losses.empty()) return;
  static const testing::TrainingRun alone = testing::train_small_gpt_alone(kSteps);
  REQUIRE(run.losses.size() == alone.losses.size());
  for (size_t i = 0; i < run.losses.size(); ++i) CHECK(std::abs(run.losses[i] - alone.losses[i]) < 1e-6);
}

TEST_CASE("GPipe and 1F1B train as one process does, and to the same bits") {
  ScheduleGPipe gpipe(gpt_stages(1)[0], 4, testing::token_loss);
  Schedule1F1B one_f_one_b(gpt_stages(1)[0], 4, testing::token_loss);
  const testing::TrainingRun first = train(gpipe), second = train(one_f_one_b);
  check_losses(first);
  CHECK(first.losses == second.losses);
  for (size_t i = 0; i < first.parameters.size(); ++i) CHECK(same_bits(first.parameters[i], second.parameters[i]));
}

}  // namespace
