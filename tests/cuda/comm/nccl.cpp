// NCCL's process groups, by one process: each collective against what it gives alone, on the group's own stream.
#include <doctest/doctest.h>

#include "backends/cuda/cuda.h"
#include "core/distributed/collectives.h"
#include "core/distributed/functional.h"
#include "nn/parallel/fully_shard.h"
#include "nn/parallel/power_sgd.h"
#include "nn/parallel/sync_batch_norm.h"
#include "optim/zero_redundancy.h"
#include "rushlight.h"
#include "tests/cuda/graph_testing.h"
#include "tests/distributed/rank_inputs.h"
#include "tests/environment_guard.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using testing::on_gpu;
using testing::same_bits;

bool is_missing() { return !cuda::is_available() || !is_backend_available("nccl"); }

// The group of this process alone.
struct Alone {
  Alone() { init_process_group("nccl"); }
  ~Alone() {
    if (is_initialized()) destroy_process_group();
  }
};

Tensor numbers(IntArrayRef sizes, ScalarType dtype = kFloat32) { return randn(sizes, on_gpu()).mul(9).to(dtype); }

}  // namespace

TEST_CASE("nccl: a group of one has every collective, dtype and layout" * doctest::skip(is_missing())) {
  const Alone alone;
  CHECK(world()->backend() == std::string("nccl"));
  CHECK(get_world_size() == 1);
  for (const ScalarType dtype : {kBool, kUInt8, kInt8, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64,
                                 kComplex64, kComplex128, kFloat8_e4m3fn, kFloat8_e5m2}) {
    CAPTURE(str(dtype));
    const Tensor x = numbers({3, 5}, dtype);
    for (const ReduceOp op : {ReduceOp::SUM, ReduceOp::PRODUCT, ReduceOp::MIN, ReduceOp::MAX, ReduceOp::AVG}) {
      CAPTURE(str(name(op)));
      const bool has_order = !is_complex(dtype), is_inexact = is_floating_point(dtype) || is_complex(dtype);
      const bool has_mean = is_inexact && element_size(dtype) > 1;
      if ((op == ReduceOp::AVG && !has_mean) || (op != ReduceOp::SUM && op != ReduceOp::AVG && !has_order)) continue;
      Tensor all = x.clone(), one = x.clone(), block = empty_like(x);
      all_reduce(all, op);
      reduce(one, 0, op);
      reduce_scatter_tensor(block, x, op);
      for (const Tensor& each : {all, one, block}) CHECK(same_bits(each.cpu(), x.cpu()));
    }
    const Tensor other = empty_like(x);
    const auto is_x = [&] {
      const bool same = same_bits(other.cpu(), x.cpu());
      other.detach().copy_(zeros({3, 5}, on_gpu()).to(dtype));
      return same;
    };
    all_gather_into_tensor(other, x);
    CHECK(is_x());
    gather(x, {other}, 0);
    CHECK(is_x());
    scatter(other, {x}, 0);
    CHECK(is_x());
    all_to_all_single(other, x, {3}, {3});
    CHECK(is_x());
    broadcast(x, 0);
    barrier();
  }
  for (const int64_t numel : {6151, 100'003}) {  // more than one block of threads, and no multiple of their number
    const Tensor x = numbers({numel}, kFloat64), block = empty_like(x);
    reduce_scatter_tensor(block, x, ReduceOp::AVG);
    CHECK(same_bits(block.cpu(), x.cpu()));
  }
  const Tensor turned = numbers({4, 6}).t(), before = turned.clone(), on_cpu = randn({7}),
               nothing = zeros({0, 2}, on_gpu());
  all_reduce(turned);
  CHECK(turned.equal(before));
  const Tensor same = on_cpu.clone();
  all_reduce(on_cpu);
  CHECK(on_cpu.equal(same));
  all_reduce(nothing);
  const Group part = new_group({0});
  all_reduce(turned, ReduceOp::SUM, part);
  CHECK(turned.equal(before));
}

TEST_CASE("nccl: what it lacks is refused, and an ended group, too" * doctest::skip(is_missing())) {
  {
    const Alone alone;
    CHECK_THROWS_WITH_AS(all_reduce(ones({2}, on_gpu(kInt16))), doctest::Contains("NCCL does not reduce"),
                         NotImplementedError);
    CHECK_THROWS_WITH_AS(all_reduce(ones({2}, on_gpu(kComplex64)), ReduceOp::PRODUCT),
                         doctest::Contains("NCCL has no products"), NotImplementedError);
    CHECK_THROWS_WITH_AS(all_reduce(ones({2}, on_gpu()).to(kFloat8_e5m2), ReduceOp::AVG),
                         doctest::Contains("NCCL has no means"), NotImplementedError);
    const Group kept = world();
    destroy_process_group();
    CHECK_THROWS_WITH_AS(kept->all_reduce(ones({2}, on_gpu()), ReduceOp::SUM), doctest::Contains("has ended"),
                         DistributedError);
  }
  const testing::EnvironmentGuard rank("RANK", "0"), size("WORLD_SIZE", "2");
  CHECK_THROWS_WITH_AS(init_process_group("nccl"), doctest::Contains("NCCL_COMM_ID=ADDRESS:PORT"), DistributedError);
}

TEST_CASE("nccl: collectives run on a stream of their own, which wait() has the current one wait for" *
          doctest::skip(is_missing())) {
  const Alone alone;
  const Tensor a = numbers({2048, 2048});
  for (int i = 0; i < 10; ++i) {
    Tensor product = a;
    for (int k = 0; k < 5; ++k) product = product.matmul(a).mul(1e-3);  // still under way when the collective is queued
    Tensor sum = product.clone();
    const WorkPtr work = all_reduce(sum, ReduceOp::SUM, world(), /*async_op=*/true);
    work->wait();
    sum.sub_(product);
    CHECK(sum.abs().max().item<float>() == 0);
    CHECK(work->is_completed());
  }
}

TEST_CASE("nccl: a captured graph has its collectives" * doctest::skip(is_missing())) {
  const Alone alone;
  Tensor x = numbers({1000}), y = empty_like(x);
  all_reduce(x.clone());  // connects
  cuda::CUDAGraph graph;
  const cuda::CUDAStream side = cuda::getStreamFromPool();
  side.wait_stream(cuda::getCurrentCUDAStream());
  {
    const cuda::CUDAStreamGuard guard(side);
    graph.capture_begin();
    y.copy_(x * 2);
    all_reduce(y);
    y.add_(1);
    graph.capture_end();
  }
  x.fill_(3);
  graph.replay();
  cuda::synchronize();
  CHECK(y.eq(7).all().item<bool>());
}

TEST_CASE("nccl: operators have derivatives, and data-parallel training is that of one" * doctest::skip(is_missing())) {
  const Alone alone;
  const Tensor x = numbers({6, 4}).requires_grad_();
  functional::all_gather(x).square().sum().backward();
  CHECK(x.grad().allclose(x.detach() * 2));
  const auto train = [](bool together) {
    manual_seed(8);
    nn::Sequential net(nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 4));
    net->to(kCUDA);
    optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-2));
    nn::parallel::DistributedDataParallelOptions options;
    options.bucket_cap_mb(1e-3);
    nn::DistributedDataParallel ddp(net, options);
    std::vector<Tensor> losses;
    for (int i = 0; i < 8; ++i) {
      const Tensor input = randn({32, 16}, on_gpu());
      optimizer.zero_grad();
      const Tensor loss = (together ? ddp(input) : net->forward(input)).square().mean();
      loss.backward();
      optimizer.step();
      losses.push_back(loss.detach());
    }
    return stack(losses);
  };
  CHECK(train(true).equal(train(false)));
}

namespace {

// The losses of a net on the GPU, which `prepare` makes a module that trains with the group.
template <class Prepare>
Tensor losses_of(const Prepare& prepare) {
  manual_seed(8);
  nn::Sequential net(nn::Linear(16, 32), nn::Tanh(), nn::Linear(32, 4));
  net->to(kCUDA);
  auto forward = prepare(net);
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-2));
  std::vector<Tensor> losses;
  for (int i = 0; i < 8; ++i) {
    const Tensor input = randn({32, 16}, on_gpu());
    optimizer.zero_grad();
    const Tensor loss = forward(input).sub(input.narrow(1, 0, 4).sin()).square().mean();
    loss.backward();
    optimizer.step();
    losses.push_back(loss.detach().cpu());
  }
  return stack(losses);
}

Tensor plain_losses() {
  return losses_of([](nn::Sequential& net) { return [&](const Tensor& x) { return net->forward(x); }; });
}

}  // namespace

TEST_CASE("nccl: shards, gradients and states that are on the CPU train as those on the GPU" *
          doctest::skip(is_missing())) {
  const Alone alone;
  using namespace nn::parallel;
  const auto offload = [](bool pins) {
    return FullyShardOptions().offload_policy(CPUOffloadPolicy().pin_memory(pins));
  };
  for (const bool pins : {true, false}) {
    const Tensor losses = losses_of([&](nn::Sequential& net) {
      for (const auto& layer : net->children()) {
        if (!layer->parameters().empty()) fully_shard(*layer, offload(pins));
      }
      fully_shard(net, offload(pins));
      for (const Tensor& parameter : net->parameters()) {
        CHECK(parameter.is_cpu());
        CHECK(parameter.is_pinned() == pins);
      }
      return [&](const Tensor& x) { return net(x); };
    });
    CHECK(losses.allclose(plain_losses(), 1e-4, 1e-5));
  }
}

TEST_CASE("nccl: gradients that PowerSGD compresses to their full rank, under a Join, are the plain ones" *
          doctest::skip(is_missing())) {
  const Alone alone;
  const Tensor losses = losses_of([](nn::Sequential& net) {
    nn::DistributedDataParallel ddp(net);
    ddp->register_comm_hook(nn::parallel::powerSGD_hook(
        nn::parallel::PowerSGDOptions().matrix_approximation_rank(16).start_powerSGD_iter(2).min_compression_rate(
            0.1)));
    return [ddp, joined = std::make_shared<Join>(std::vector<Joinable*>{ddp.get()})](const Tensor& x) mutable {
      return ddp(x);
    };
  });
  CHECK(losses.allclose(plain_losses(), 1e-3, 1e-4));
}
