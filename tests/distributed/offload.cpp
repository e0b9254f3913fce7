// Shards on the CPU of modules that compute on another device: a simulated one, whose memory only its kernels may
// touch.
#include <doctest/doctest.h>

#include "autograd/grad_mode.h"
#include "backends/cpu/memory/memory.h"
#include "core/device/backend.h"
#include "core/distributed/collectives.h"
#include "core/distributed/fake.h"
#include "nn/parallel/fully_shard.h"
#include "optim/optim.h"
#include "tests/distributed/rank_inputs.h"
#include "tests/distributed/sharded_nets.h"
#include "tests/outside/backend/sim.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using namespace rush::nn::parallel;
using testing::same_bits;

Device simulated() {
  static const DeviceType type = sim::add_device();
  return Device(type, 0);
}

// A perceptron whose rows no number of processes divides; it looks where its parameters are while it computes.
struct WatchedImpl : nn::Module {
  Tensor forward(const Tensor& x) {
    computes_on = last->weight.device();
    return last(first(x).tanh());
  }
  nn::Linear first{register_module("first", nn::Linear(6, 7))}, last{register_module("last", nn::Linear(7, 5))};
  Device computes_on;
};
RUSH_MODULE(Watched);

struct Run {
  std::vector<double> losses;
  std::vector<Tensor> parameters;
};

Watched make_net(const FullyShardOptions& options) {
  manual_seed(4);
  Watched net;
  net->to(simulated());
  fully_shard(net->first, options);
  fully_shard(net, options);
  return net;
}

Run train(const FullyShardOptions& options, Device stored_on) {
  const Watched net = make_net(options);
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-2));
  Run run;
  for (int64_t step = 0; step < 8; ++step) {
    const Tensor x = randn({4, 6}, make_generator<CPUGeneratorImpl>(static_cast<uint64_t>(10 * step + get_rank())));
    optimizer.zero_grad();
    const Tensor loss = net(x.to(simulated())).square().mean();
    CHECK(net->computes_on == simulated());
    loss.backward();
    clip_grad_norm_(net->parameters(), 0.5);
    optimizer.step();
    run.losses.push_back(loss.item<double>());
  }
  for (const Tensor& parameter : net->parameters()) {
    CHECK(parameter.device() == stored_on);
    CHECK(parameter.grad().device() == stored_on);
    run.parameters.push_back(full_tensor(parameter).cpu());
  }
  return run;
}

TEST_CASE("a net whose shards are on the CPU has the numbers of one whose shards are on its device") {
  const Run expected = train({}, simulated());
  CHECK(expected.losses.back() < expected.losses.front());
  const auto offloaded = FullyShardOptions().offload_policy(CPUOffloadPolicy());
  for (const bool reshards : {true, false}) {
    const Run run = train(FullyShardOptions(offloaded).reshard_after_forward(reshards), kCPU);
    CHECK(run.losses == expected.losses);
    for (size_t i = 0; i < run.parameters.size(); ++i) CHECK(same_bits(run.parameters[i], expected.parameters[i]));
  }
}

TEST_CASE("between steps nothing of a net whose shards are on the CPU is on the device") {
  Allocator& memory = backend_of(simulated().type).allocator();
  const int64_t before = memory.stats().allocated;
  const auto policy = FullyShardOptions().offload_policy(CPUOffloadPolicy()).reshard_after_forward(true);
  const Watched net = make_net(policy);
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-2));
  for (int64_t step = 0; step < 2; ++step) {
    net(ones({4, 6}).to(simulated())).sum().backward();
    optimizer.step();
    CHECK(memory.stats().allocated == before);
  }
  set_requires_gradient_sync(*net, false);
  net(ones({4, 6}).to(simulated())).sum().backward();
  CHECK(memory.stats().allocated > before);  // whole gradients, until they are reduced
  set_requires_gradient_sync(*net, true);
  net(ones({4, 6}).to(simulated())).sum().backward();
  CHECK(memory.stats().allocated == before);
}

TEST_CASE("the tensors of a dry run stay where they are") {
  const Group fake = make_fake_group(0, 2);
  const Tensor x = ones({1000}).to(simulated());
  cpu::reset_peak_memory_stats();
  const int64_t before = cpu::memory_allocated();
  all_reduce(x, ReduceOp::SUM, fake);
  CHECK(cpu::max_memory_allocated() == before);
}

}  // namespace
