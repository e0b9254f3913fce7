// Pipelines on several processes against one process with the whole net.
#include "nn/parallel/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "autograd/saved_tensors_hooks.h"
#include "core/distributed/collectives.h"
#include "core/distributed/device_mesh.h"
#include "tests/distributed/on_gpus.h"
#include "tests/distributed/rank_inputs.h"
#include "tests/distributed/small_gpt.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using namespace rush::nn::parallel;
using testing::here;
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

// Only the process of the last stage has losses.
void check_losses(const std::vector<double>& losses) {
  if (losses.empty()) return;
  static const testing::TrainingRun alone = testing::train_small_gpt_alone(kSteps);
  REQUIRE(losses.size() == alone.losses.size());
  for (size_t i = 0; i < losses.size(); ++i) CHECK(std::abs(losses[i] - alone.losses[i]) < 1e-6);
}

// At most as many processes as the net has layers, of which each is a stage: more of them are pipelines side by side.
Group pipeline_group() {
  const int size = std::min(get_world_size(), static_cast<int>(testing::kLayers));
  return init_device_mesh({get_world_size() / size, size}, {"copies", "pp"}).group("pp");
}

TEST_CASE("GPipe, 1F1B and interleaved 1F1B train as one process does, and to the same bits") {
  const Group group = pipeline_group();
  ScheduleGPipe gpipe(gpt_stages(1, group)[0], 4, testing::token_loss);
  Schedule1F1B one_f_one_b(gpt_stages(1, group)[0], 4, testing::token_loss);
  const int per_process = static_cast<int>(testing::kLayers) / group->size();
  ScheduleInterleaved1F1B interleaved(gpt_stages(per_process, group), 4, testing::token_loss);
  const testing::TrainingRun first = train(gpipe), second = train(one_f_one_b);
  check_losses(first.losses);
  CHECK(first.losses == second.losses);
  for (size_t i = 0; i < first.parameters.size(); ++i) CHECK(same_bits(first.parameters[i], second.parameters[i]));
  CHECK(train(interleaved).losses == first.losses);
}

TEST_CASE(
    "a pipeline in each line of a mesh, gradients averaged over the others: as one process with the whole batch") {
  const DeviceMesh mesh = init_device_mesh({2, get_world_size() / 2}, {"pp", "dp"});
  Schedule1F1B schedule(gpt_stages(1, mesh.group("pp"))[0], 2, testing::token_loss);
  const std::vector<Tensor> parameters = schedule.parameters();
  optim::AdamW optimizer = testing::make_optimizer(parameters);
  const int64_t rows = testing::kBatch / mesh.size("dp"), start = mesh.coordinate("dp") * rows;
  std::vector<double> losses;
  for (int64_t step = 0; step < kSteps; ++step) {
    const testing::TokenBatch batch = testing::TokenBatch::of_step(step);
    optimizer.zero_grad();
    const Tensor loss = schedule.step(batch.ids.narrow(0, start, rows), batch.targets.narrow(0, start, rows));
    std::vector<Tensor> gradients;
    for (const Tensor& parameter : parameters) gradients.push_back(parameter.grad());
    all_reduce_coalesced(gradients, ReduceOp::AVG, mesh.group("dp"));
    optimizer.step();
    if (!loss.defined()) continue;
    all_reduce(loss, ReduceOp::AVG, mesh.group("dp"));
    losses.push_back(loss.item<double>());
  }
  CHECK(losses.empty() == (mesh.coordinate("pp") == 0));
  check_losses(losses);
}

// Stages that multiply by 2 to 6: what comes out, exact in double precision, and each factor's gradient, is known.
// Inputs of functions come on the group's device, which is the CPU where processes share a GPU.
struct Factors {
  explicit Factors(int per_process) : count(get_world_size() * per_process) {
    for (int index = get_rank(); index < count; index += get_world_size()) {
      own.push_back(full({}, factor_of(index), kFloat64).requires_grad_());
      const Tensor factor = own.back();
      stages.emplace_back([factor](const Tensor& x) { return here(x) * factor; }, index, count);
    }
    for (int index = 0; index < count; ++index) product *= factor_of(index);
  }
  static int factor_of(int index) { return index % 5 + 2; }
  void check_step(PipelineSchedule& schedule, int64_t micro_batches) {
    for (const Tensor& factor : own) factor.mutable_grad() = {};
    const Tensor x = arange(micro_batches * 3, kFloat64).view({micro_batches, 3});
    const double mean = x.mean().item<double>();
    const Tensor loss = schedule.step(x, x);
    if (loss.defined()) CHECK(loss.item<double>() == doctest::Approx(product * mean));
    for (const Tensor& factor : own) {
      CHECK(factor.grad().item<double>() == doctest::Approx(product * mean / factor.item<double>()));
    }
    const Tensor y = schedule.eval(x);
    CHECK(y.defined() == schedule.stages().back().is_last());
    if (y.defined()) CHECK(equal(y, x * product));
  }
  const int count;
  double product = 1;
  std::vector<Tensor> own;
  std::vector<PipelineStage> stages;
};

Tensor mean_of(const Tensor& output, const Tensor&) { return output.mean(); }

TEST_CASE("every number of micro-batches comes to its end, in the first step and in later ones") {
  for (int micro_batches = 1; micro_batches <= 9; ++micro_batches) {
    CAPTURE(micro_batches);
    Factors single(1);
    ScheduleGPipe gpipe(single.stages[0], micro_batches, mean_of);
    Schedule1F1B one_f_one_b(single.stages[0], micro_batches, mean_of);
    for (int step = 0; step < 3; ++step) single.check_step(gpipe, micro_batches);
    for (int step = 0; step < 3; ++step) single.check_step(one_f_one_b, micro_batches);
    const int processes = get_world_size();
    if (micro_batches < processes || micro_batches % (micro_batches / processes) != 0) continue;
    for (const int per_process : {1, 2, 3}) {
      Factors several(per_process);
      ScheduleInterleaved1F1B interleaved(several.stages, micro_batches, mean_of);
      for (int step = 0; step < 3; ++step) several.check_step(interleaved, micro_batches);
    }
  }
}

TEST_CASE("the executor goes through any valid order") {
  const int processes = get_world_size();
  Factors factors(1);
  PipelineOrder order = gpipe_order(processes, 4);
  for (auto& actions : order.actions) {  // micro-batches from the last to the first
    for (PipelineAction& action : actions) action.micro_batch = 3 - action.micro_batch;
  }
  PipelineSchedule schedule(factors.stages, order, mean_of);
  for (int step = 0; step < 3; ++step) factors.check_step(schedule, 4);
}

TEST_CASE("eval computes what the whole net does, also of other rows than step, and changes no gradient") {
  Schedule1F1B schedule(gpt_stages(1, pipeline_group())[0], 4, testing::token_loss);
  const testing::TokenBatch batch = testing::TokenBatch::of_step(0);
  for (int i = 0; i < 2; ++i) {
    const Tensor half = schedule.eval(batch.ids.narrow(0, 0, 4));
    CHECK(half.defined() == schedule.stages().back().is_last());
    if (half.defined()) {
      CHECK_FALSE(half.requires_grad());
      CHECK(allclose(half, testing::make_small_gpt()(batch.ids.narrow(0, 0, 4)), 1e-12, 1e-12));
    }
    for (const Tensor& parameter : schedule.parameters()) CHECK(parameter.grad().defined() == (i > 0));
    schedule.step(batch.ids, batch.targets);
  }
}

TEST_CASE("1F1B holds the graphs of at most P - s micro-batches on stage s, GPipe those of all") {
  const int processes = get_world_size(), micro_batches = processes + 2;
  const Tensor factor = full({}, 2.0, kFloat64).requires_grad_();
  // Whatever a graph saves holds its micro-batch's token, so that those that are alive can be counted.
  std::vector<std::weak_ptr<int>> tokens;
  std::ptrdiff_t most = 0;
  const auto alive = [&] {
    return std::count_if(tokens.begin(), tokens.end(), [](auto& token) { return !token.expired(); });
  };
  const PipelineStage stage(
      [&](const Tensor& x) {
        using Kept = std::pair<Tensor, std::shared_ptr<int>>;
        const auto token = std::make_shared<int>();
        tokens.push_back(token);
        most = std::max(most, alive());
        const autograd::SavedTensorsHooks hooks(
            [token](const Tensor& saved) { return std::any(Kept(saved, token)); },
            [](const std::any& kept) { return std::any_cast<const Kept&>(kept).first; });
        return (here(x) * factor).exp();
      },
      get_rank(), processes);
  const auto check_most = [&](PipelineSchedule& schedule, std::ptrdiff_t expected) {
    most = 0;
    schedule.step(zeros({micro_batches, 2}, kFloat64), zeros({micro_batches}, kFloat64));
    CHECK(most == expected);
    CHECK(alive() == 0);
  };
  Schedule1F1B one_f_one_b(stage, micro_batches, mean_of);
  ScheduleGPipe gpipe(stage, micro_batches, mean_of);
  for (int step = 0; step < 2; ++step) {
    check_most(one_f_one_b, processes - get_rank());
    check_most(gpipe, micro_batches);
  }
}

TEST_CASE("no gradient comes back to ids, to frozen stages, and zeros to an input that is not used") {
  const int processes = get_world_size(), rank = get_rank();
  // Ids + 1, then an embedding, then factors; in the last process's stage the input counts for nothing.
  const nn::Embedding embedding(8, 3);
  embedding->to(kFloat64);
  const Tensor factor = full({}, 3.0, kFloat64).requires_grad_();
  const auto function = [&](const Tensor& input) {
    const Tensor x = here(input);
    if (rank == 0) return x + 1;
    if (rank == processes - 1 && processes > 2) return x.detach() * 0 + factor;
    return rank == 1 ? embedding(x) * factor : x * factor;
  };
  ScheduleGPipe schedule(PipelineStage(function, rank, processes), 2, mean_of);
  for (int step = 0; step < 2; ++step) schedule.step(tensor({0, 1, 2, 6}, kInt64), zeros({4}));
  if (rank == 0) return;
  REQUIRE(factor.grad().defined());
  if (rank == processes - 1 && processes > 2) {
    CHECK(factor.grad().item<double>() == doctest::Approx(2));
  } else if (processes > 2) {
    CHECK(factor.grad().item<double>() == 0);
  } else {
    CHECK(factor.grad().item<double>() ==
          doctest::Approx(2 * embedding(tensor({1, 2, 3, 7}, kInt64)).mean().item<double>()));
    CHECK(embedding->weight.grad().select(1, 0).ne(0).to(kInt64).equal(tensor({0, 1, 1, 1, 0, 0, 0, 1}, kInt64)));
  }
}

TEST_CASE("what a step cannot do is refused where it shows, before anything is sent") {
  const int processes = get_world_size(), rank = get_rank();
  bool is_longer = false;
  const auto stage = [&](const Tensor& x) { return is_longer ? cat({x, x}, 1) : x * 1; };
  Schedule1F1B schedule(PipelineStage(stage, rank, processes), 2, mean_of);
  Schedule1F1B without_loss(PipelineStage(stage, rank, processes), 2);
  const Tensor x = ones({4, 3}).requires_grad_();
  schedule.step(x, x);
  if (rank == 0) {
    CHECK_THROWS_WITH_AS(schedule.step(ones({5, 3}), x), doctest::Contains("the 5 rows of the input cannot be 2"),
                         ValueError);
    CHECK_THROWS_WITH_AS(schedule.step({}, x), doctest::Contains("this process needs the input"), ValueError);
    CHECK_THROWS_WITH_AS(schedule.eval(), doctest::Contains("this process needs the input"), ValueError);
    is_longer = true;
    CHECK_THROWS_WITH_AS(schedule.step(x, x),
                         doctest::Contains("stage 0 made a tensor of float32 and shape (2, 6), with gradient; stage 1 "
                                           "expects float32 and shape (2, 3), with gradient, as in the first step"),
                         ValueError);
    is_longer = false;
    CHECK_THROWS_WITH_AS(schedule.step(x.detach(), x), doctest::Contains("without gradient; stage 1"), ValueError);
    CHECK_THROWS_WITH_AS(schedule.step(ones({2, 3}).requires_grad_(), x),
                         doctest::Contains("[in stage 0 of a pipeline, micro-batch 0]"), ValueError);
  }
  if (rank == processes - 1) {
    CHECK_THROWS_WITH_AS(schedule.step(x, ones({3})), doctest::Contains("the 3 rows of the target cannot be 2"),
                         ValueError);
    CHECK_THROWS_WITH_AS(schedule.step(x), doctest::Contains("this process needs the target"), ValueError);
    CHECK_THROWS_WITH_AS(without_loss.step(x, x), doctest::Contains("has no loss function"), ValueError);
  }
  schedule.step(x, x);                                                      // nothing is left of those
  if (rank == 0) CHECK(allclose(x.grad(), full({4, 3}, 2.0 / x.numel())));  // of two steps, each of the mean
}

TEST_CASE("a Sequential that is cut trains as the whole one") {
  manual_seed(5);
  nn::Sequential net(nn::Linear(6, 16), nn::Tanh(), nn::Linear(16, 16), nn::Tanh(), nn::Linear(16, 16), nn::Tanh(),
                     nn::Linear(16, 16), nn::Linear(16, 2));
  net->to(kFloat64);
  const Tensor x = randn({8, 6}, kFloat64), y = randn({8, 2}, kFloat64);
  nn::functional::mse_loss(net(x), y).backward();
  std::vector<std::pair<std::string, Tensor>> expected;
  for (const auto& each : net->named_parameters()) expected.emplace_back(each.key(), each.value().grad().clone());
  net->zero_grad();

  const int processes = get_world_size();
  const auto stages = split_sequential(net, std::min(2 * processes, 8));
  ScheduleInterleaved1F1B schedule(stages, std::max(processes, 4), [](const Tensor& output, const Tensor& target) {
    return nn::functional::mse_loss(output, target);
  });
  schedule.step(x, y);
  int64_t found = 0;
  for (const PipelineStage& stage : schedule.stages()) {
    for (const auto& each : stage.module()->named_parameters()) {
      for (const auto& [name, gradient] : expected) {
        if (name != each.key()) continue;
        ++found;
        CHECK(allclose(each.value().grad(), gradient, 1e-12, 1e-12));
      }
    }
  }
  CHECK(found == static_cast<int64_t>(schedule.parameters().size()));
  Tensor everywhere = tensor({found}, kInt64);
  all_reduce(everywhere);
  CHECK(everywhere.item<int64_t>() == static_cast<int64_t>(expected.size()));
}

}  // namespace
