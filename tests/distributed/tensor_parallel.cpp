// Tensor, sequence and context parallelism against one process.
#include "nn/parallel/tensor_parallel.h"

#include <doctest/doctest.h>

#include <sstream>

#include "autograd/engine.h"
#include "core/amp/autocast.h"
#include "core/distributed/collectives.h"
#include "core/error/error.h"
#include "nn/clip_grad.h"
#include "nn/parallel/context_parallel.h"
#include "nn/parallel/distributed_data_parallel.h"
#include "nn/parallel/fully_shard.h"
#include "tests/distributed/numbers.h"
#include "tests/distributed/parallel_gpt.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using namespace rush::nn::parallel;
using namespace rush::testing;

Tensor leaf(IntArrayRef sizes, uint64_t seed) { return seeded_randn(sizes, seed, kFloat64).requires_grad_(); }

// This process's part of a whole tensor.
Tensor part(const Tensor& whole, int64_t dim) { return nn::parallel::detail::own_part("part", whole, dim, world()); }

TEST_CASE("functions between regions: their results, and the gradients of the loss that all processes have") {
  const Group all = world();
  const int64_t size = all->size();
  const Tensor x = leaf({3, 2 * size, 2}, 1), weight = leaf({3, 2 * size, 2}, 2).detach();
  for (const int64_t dim : {1, -2}) {
    // Split, computed with by each, and gathered: as one process computes.
    Tensor y = leaf({3, 2 * size, 2}, 1);
    gather_from_group(scatter_to_group(y, dim, all).square(), dim, all).mul(weight).sum().backward();
    check_close(y.grad(), 2 * x.detach() * weight);

    // Each process computes its rank's multiple of what was gathered, and keeps its part of the sum.
    y = leaf({3, 2 * size, 2}, 1);
    const Tensor own = scatter_to_group(y, dim, all);
    const Tensor sum = sum_to_split(gather_to_compute(own, dim, all).square() * (all->rank() + 1), dim, all);
    const double multiples = static_cast<double>(size * (size + 1)) / 2;
    check_close(sum, part(x.detach().square() * multiples, dim));
    gather_from_group(sum, dim, all).mul(weight).sum().backward();
    check_close(y.grad(), 2 * multiples * x.detach() * weight);
  }
  Tensor y = leaf({4}, 3);
  const Tensor sum = sum_from_group(copy_to_group(y, all) * (all->rank() + 1), all);
  sum.square().sum().backward();
  const double multiples = static_cast<double>(size * (size + 1)) / 2;
  check_close(sum, leaf({4}, 3) * multiples);
  check_close(y.grad(), 2 * multiples * multiples * y.detach());
}

TEST_CASE("parallel layers have the results and the gradients of whole ones") {
  const Group all = world();
  const int64_t size = all->size(), width = 4 * size;
  for (const std::optional<int64_t> sequence_dim : {std::optional<int64_t>(), std::optional<int64_t>(1)}) {
    CAPTURE(sequence_dim.value_or(-1));
    manual_seed(5);
    nn::Linear up(6, width), down(width, 6);
    up->to(kFloat64);
    down->to(kFloat64);
    const auto options = ParallelLinearOptions().sequence_dim(sequence_dim);
    nn::ColumnParallelLinear split_up(up, all, options);
    nn::RowParallelLinear split_down(down, all, options);
    CHECK(split_up->weight.sizes() == IntArrayRef({4, 6}));
    CHECK(split_down->weight.sizes() == IntArrayRef({6, 4}));

    Tensor x = leaf({2, 3 * size, 6}, 6), y = leaf({2, 3 * size, 6}, 6);
    const Tensor expected = down(up(x).tanh());
    Tensor result = split_down(split_up(sequence_dim ? scatter_to_group(y, 1, all) : y).tanh());
    if (sequence_dim) {
      CHECK(result.size(1) == 3);
      result = gather_from_group(result, 1, all);
    }
    check_close(result, expected);
    expected.square().sum().backward();
    result.square().sum().backward();
    if (sequence_dim) sum_gradients({split_down->bias}, all);
    check_close(y.grad(), x.grad());
    check_close(split_up->weight.grad(), part(up->weight.grad(), 0));
    check_close(split_up->bias.grad(), part(up->bias.grad(), 0));
    check_close(split_down->weight.grad(), part(down->weight.grad(), 1));
    check_close(split_down->bias.grad(), down->bias.grad());
  }
}

TEST_CASE("the norm of gradients has each element of a split parameter, and a whole one once") {
  const Group all = world();
  nn::Linear up(6, 4 * all->size()), down(4 * all->size(), 6);
  nn::Embedding table(3 * all->size(), 6);
  const std::vector<Tensor> whole{up->weight, up->bias, down->weight, down->bias, table->weight};
  for (const Tensor& parameter : whole) parameter.set_data(parameter.detach().to(kFloat64));
  nn::ColumnParallelLinear split_up(up, all);
  nn::RowParallelLinear split_down(down, all);
  nn::VocabParallelEmbedding split_table(table, all);
  const std::vector<Tensor> own{split_up->weight, split_up->bias, split_down->weight, split_down->bias,
                                split_table->weight};
  for (const double order : {2.0, 1.0, std::numeric_limits<double>::infinity()}) {
    for (size_t i = 0; i < whole.size(); ++i) {
      whole[i].mutable_grad() = seeded_randn(whole[i].sizes(), i, kFloat64);
      const bool is_whole = own[i].sizes() == whole[i].sizes();
      own[i].mutable_grad() = (is_whole ? whole[i].grad() : part(whole[i].grad(), i == 2 ? 1 : 0)).clone();
    }
    const double expected = nn::utils::clip_grad_norm_(whole, 1e-2, order);
    CHECK(nn::parallel::clip_grad_norm_(own, 1e-2, order) == doctest::Approx(expected).epsilon(1e-12));
    check_close(own[2].grad(), part(whole[2].grad(), 1));
    check_close(own[3].grad(), whole[3].grad());
  }
}

TEST_CASE("all features may be gathered; weights need no gradient, nor inputs") {
  const Group all = world();
  manual_seed(5);
  nn::Linear whole(nn::LinearOptions(3, 2 * all->size()).bias(false));
  whole->weight.requires_grad_(false);
  nn::ColumnParallelLinear split(whole, all, ParallelLinearOptions().gather_output(true));
  CHECK_FALSE(split->weight.requires_grad());
  CHECK(split->parameters().size() == 1);
  Tensor x = leaf({5, 3}, 8).detach().to(kFloat32).requires_grad_();
  const Tensor result = split(x);
  CHECK(allclose(result, whole(x)));
  result.sum().backward();
  CHECK(allclose(x.grad(), whole->weight.sum(0).expand({5, 3})));
  CHECK_FALSE(split->weight.grad().defined());
  std::ostringstream text;
  text << split;
  CHECK(text.str() == str("ColumnParallelLinear(2 x 3, one of ", all->size(), " parts)"));
}

TEST_CASE("a split vocabulary: rows that are found, and the loss of scores that no process has all of") {
  const Group all = world();
  const int64_t classes = 5 * all->size();
  manual_seed(6);
  nn::Embedding whole(classes, 3);
  whole->to(kFloat64);
  nn::VocabParallelEmbedding split(whole, all);
  Generator generator = make_generator<CPUGeneratorImpl>(9);
  const Tensor ids = here(randint(0, classes, {4, 7}, generator, TensorOptions(kInt64).device(kCPU)));
  const Tensor expected = whole(ids), found = split(ids);
  check_close(found, expected);
  expected.square().sum().backward();
  found.square().sum().backward();
  check_close(split->weight.grad(), part(whole->weight.grad(), 0));

  Tensor scores = (leaf({4, 7, classes}, 10).detach() * 30).requires_grad_();
  Tensor own = part(scores.detach(), -1).clone().requires_grad_();
  const Tensor loss = token_loss(scores, ids), parallel = vocab_parallel_cross_entropy(own, ids, all);
  check_close(parallel, loss);
  loss.backward();
  parallel.backward();
  check_close(own.grad(), part(scores.grad(), -1));
}

TEST_CASE("ring attention is attention, causal or not, to its gradients") {
  const Group all = world();
  const int64_t length = 6 * all->size();
  const ScalarType dtype = on_gpus() ? kFloat32 : kFloat64;  // GPUs' kernels have no float64
  const double tolerance = on_gpus() ? 1e-5 : 1e-12;
  for (const bool is_causal : {false, true}) {
    CAPTURE(is_causal);
    std::vector<Tensor> whole, own;
    for (uint64_t i = 0; i < 3; ++i) {
      whole.push_back(leaf({2, 3, length, 4}, 20 + i).detach().to(dtype).requires_grad_());
      own.push_back(context_part(whole[i].detach(), 2, all).requires_grad_());
    }
    const Tensor expected = scaled_dot_product_attention(whole[0], whole[1], whole[2], {}, 0.0, is_causal);
    const Tensor result = ring_attention(own[0], own[1], own[2], all, is_causal);
    check_close(context_whole(result, 2, all), expected, tolerance);
    const Tensor grad = leaf(expected.sizes(), 30).detach().to(dtype);
    expected.backward(grad);
    result.backward(context_part(grad, 2, all));
    for (size_t i = 0; i < 3; ++i) check_close(context_whole(own[i].grad(), 2, all), whole[i].grad(), tolerance);
  }
}

TEST_CASE("under autocast products and attention compute in 16 bits, and gradients come in the weights' dtype") {
  const Group all = world();
  manual_seed(5);
  nn::Linear whole(8, 4 * all->size());
  nn::ColumnParallelLinear split(whole, all);
  const Tensor x = leaf({2, 4 * all->size(), 8}, 12).detach().to(kFloat32);
  const Tensor heads = leaf({2, 2, 4 * all->size(), 8}, 13).detach().to(kFloat32);
  Tensor expected, result, attention, ring;
  {
    const autocast::Autocast lower(get_default_device().type, kBFloat16);
    expected = whole(x);
    result = split(x);
    attention = scaled_dot_product_attention(heads, heads, heads, {}, 0.0, true);
    const Tensor own = context_part(heads, 2, all);
    ring = ring_attention(own, own, own, all, true);
  }
  CHECK(result.scalar_type() == kBFloat16);
  CHECK(equal(result, part(expected, -1)));
  CHECK(ring.scalar_type() == kBFloat16);
  CHECK(allclose(context_whole(ring, 2, all).to(kFloat32), attention.to(kFloat32), 0, 0.02));
  expected.sum().backward();
  result.sum().backward();
  CHECK(split->weight.grad().scalar_type() == kFloat32);
  CHECK(equal(split->weight.grad(), part(whole->weight.grad(), 0)));
}

TEST_CASE("what cannot be split is refused with its sizes") {
  const Group all = world();
  const int64_t size = all->size();
  const Tensor odd = zeros({2, 2 * size + 1, 3});
  CHECK_THROWS_WITH_AS(nn::ColumnParallelLinear(nn::Linear(3, size + 1), all),
                       doctest::Contains(str("ColumnParallelLinear: dimension 0 has ", size + 1).c_str()), ValueError);
  CHECK_THROWS_WITH_AS(sum_to_split(odd, 1, all), doctest::Contains(str(2 * size + 1, " elements").c_str()),
                       ValueError);
  CHECK_THROWS_WITH_AS(context_part(odd, 1, all), doctest::Contains("cannot be cut into"), ValueError);
  CHECK_THROWS_AS(ring_attention(odd, odd, odd, all), ValueError);
  CHECK_THROWS_AS(nn::ColumnParallelLinear(nn::Linear(3, size), nullptr), DistributedError);
  CHECK_THROWS_AS(copy_to_group(odd, nullptr), DistributedError);
  CHECK_THROWS_AS(gather_from_group(odd, 1, nullptr), DistributedError);
  CHECK_THROWS_AS(context_part(odd, 1, nullptr), DistributedError);
  CHECK_THROWS_AS(context_whole(odd, 1, nullptr), DistributedError);
  CHECK_THROWS_WITH_AS(vocab_parallel_cross_entropy(odd, zeros({2, 1}, kInt64), all),
                       doctest::Contains("expected a target for each row"), ValueError);
}

TEST_CASE("an index that no process has is named, on an accelerator when the host waits for it") {
  const Group all = world();
  const int64_t rows = 2 * all->size();
  nn::VocabParallelEmbedding split(nn::Embedding(rows, 3), all);
  for (const int64_t wrong : {int64_t{-1}, rows}) {
    const Tensor indices = full({2, 3}, wrong, kInt64);
    CHECK_THROWS_WITH_AS(split(indices).sum().item<float>(), doctest::Contains(str(' ', wrong).c_str()), IndexError);
    CHECK_THROWS_WITH_AS(vocab_parallel_cross_entropy(zeros({2, 3, 2}), indices, all).item<float>(),
                         doctest::Contains(str(' ', wrong).c_str()), IndexError);
  }
}

// A GPT whose batch, weights and sequences are split by a mesh of {"dp", "cp", "tp"}.
TrainingRun train_on(const DeviceMesh& mesh, bool splits_sequence, int64_t steps) {
  ParallelGpt net(make_small_gpt(), mesh, splits_sequence);
  // The mean over the processes that have other sequences, or other positions of them.
  nn::DistributedDataParallel replicas(net, DistributedDataParallelOptions().process_group(mesh.flatten({"dp", "cp"})));
  optim::AdamW optimizer = make_optimizer(net->parameters());
  TrainingRun run;
  const int64_t rows = kBatch / mesh.size("dp");
  for (int64_t step = 0; step < steps; ++step) {
    const TokenBatch batch = TokenBatch::of_step(step);
    const auto own = [&](const Tensor& t) { return t.narrow(0, mesh.coordinate("dp") * rows, rows); };
    optimizer.zero_grad();
    const Tensor loss = replicas(own(batch.ids), own(batch.targets));
    loss.backward();
    net->finish_gradients();
    optimizer.step();
    Tensor mean = loss.detach().clone();
    all_reduce(mean, ReduceOp::AVG);
    run.losses.push_back(mean.item<double>());
  }
  run.parameters = net->parameters();
  return run;
}

TEST_CASE("a GPT on every mesh has the losses of one process") {
  constexpr int64_t kSteps = 50;
  const TrainingRun alone = train_small_gpt_alone(kSteps);
  const int size = get_world_size();
  std::vector<std::vector<int>> meshes{{1, 1, size}, {1, size, 1}};  // dp, cp, tp
  if (size == 4) meshes.insert(meshes.end(), {{2, 1, 2}, {1, 2, 2}, {2, 2, 1}});
  if (size == 8) meshes.push_back({2, 2, 2});
  for (const std::vector<int>& sizes : meshes) {
    if (on_gpus() && sizes[1] > 1) continue;  // in float64
    const DeviceMesh mesh = init_device_mesh(sizes, {"dp", "cp", "tp"});
    CAPTURE(mesh.str());
    for (const bool splits_sequence : {false, true}) {
      if (splits_sequence && mesh.size("tp") == 1) continue;
      CAPTURE(splits_sequence);
      const TrainingRun run = train_on(mesh, splits_sequence, kSteps);
      double furthest = 0;
      for (size_t i = 0; i < alone.losses.size(); ++i) {
        furthest = std::max(furthest, std::abs(run.losses[i] - alone.losses[i]));
      }
      CHECK(furthest < 1e-6);
    }
  }
}

}  // namespace
