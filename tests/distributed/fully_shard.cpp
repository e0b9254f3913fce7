// fully_shard against one process that has the whole net and the whole batch.
#include "nn/parallel/fully_shard.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "autograd/grad_mode.h"
#include "core/distributed/collectives.h"
#include "core/distributed/device_mesh.h"
#include "tests/distributed/rank_inputs.h"
#include "tests/distributed/sharded_nets.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using namespace rush::nn::parallel;
using namespace rush::testing;

constexpr int64_t kSteps = 50;

double mean_everywhere(const Tensor& loss) {
  const Tensor mean = loss.detach().clone();
  all_reduce(mean, ReduceOp::AVG);
  return mean.item<double>();
}

TrainingRun train_sharded(const FullyShardOptions& options, int64_t steps = kSteps) {
  SmallGpt net = make_small_gpt();
  shard(net, options);
  optim::AdamW optimizer = make_optimizer(net->parameters());
  TrainingRun run;
  for (int64_t step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(net, own_part(step));
    loss.backward();
    optimizer.step();
    run.losses.push_back(mean_everywhere(loss));
  }
  for (const Tensor& parameter : net->parameters()) run.parameters.push_back(full_tensor(parameter));
  return run;
}

void check_as_alone(const TrainingRun& run) {
  static const TrainingRun alone = train_small_gpt_alone(kSteps);
  CHECK(alone.losses.back() < 0.5 * alone.losses.front());
  REQUIRE(run.losses.size() == alone.losses.size());
  for (size_t i = 0; i < run.losses.size(); ++i) CHECK(std::abs(run.losses[i] - alone.losses[i]) < 1e-6);
  for (size_t i = 0; i < run.parameters.size(); ++i) {
    CHECK(allclose(run.parameters[i], alone.parameters[i].detach(), 1e-6, 1e-6));
  }
}

void check_same(const TrainingRun& a, const TrainingRun& b) {
  CHECK(a.losses == b.losses);
  for (size_t i = 0; i < a.parameters.size(); ++i) CHECK(same_bits(a.parameters[i], b.parameters[i]));
}

// ---- gradients

// The whole gradients of sharded parameters; undefined where there is none. Overwrites the parameters.
std::map<std::string, Tensor> whole_gradients(const nn::Module& net) {
  const NoGradGuard no_grad;
  std::map<std::string, Tensor> all;
  for (const TensorPart& parameter : module_parts(net)) {
    Tensor& gradient = all[parameter.name];
    if (!parameter.local.grad().defined()) continue;
    CHECK(parameter.local.grad().sizes() == parameter.local.sizes());
    parameter.local.detach().copy_(parameter.local.grad());
    gradient = full_tensor(parameter.local);
  }
  return all;
}

// `sharded` has the means of what each process computed, `alone` has computed all.
void check_gradients(const nn::Module& sharded, const nn::Module& alone) {
  const std::map<std::string, Tensor> gradients = whole_gradients(sharded);
  size_t compared = 0;
  for (const auto& item : alone.named_parameters()) {
    INFO(item.key());
    const Tensor& gradient = gradients.at(item.key());
    REQUIRE(gradient.defined() == item.value().grad().defined());
    if (!gradient.defined()) continue;
    CHECK(allclose(gradient, item.value().grad(), 1e-9, 1e-11));
    ++compared;
  }
  CHECK(compared > 0);
}

// `change` sets up a net, sharded or not.
template <class Change>
void check_net(const Change& change, const FullyShardOptions& options = {}) {
  Net alone = make_net(), net = make_net();
  change(*alone);
  change(*net);
  loss_of(alone, ids_of_all()).backward();
  shard(net, options);
  for (int step = 0; step < 2; ++step) {  // the second one prefetches
    net->zero_grad();
    loss_of(net, own_ids()).backward();
  }
  check_gradients(*net, *alone);
}

}  // namespace

TEST_CASE("a net that is sharded by layers has the losses of one process, and the same bits in every run") {
  const TrainingRun first = train_sharded({});
  check_as_alone(first);
  check_same(train_sharded({}), first);
  for (const bool reshards : {false, true}) {
    check_same(train_sharded(FullyShardOptions().reshard_after_forward(reshards)), first);
  }
}

TEST_CASE("a Sequential that is sharded as a whole gathers its parameters, however it is called") {
  manual_seed(4);
  nn::Sequential net(nn::Linear(3, 5), nn::Tanh(), nn::Linear(5, 2));
  const Tensor x = ones({4, 3}), expected = net->forward(x).detach();
  fully_shard(net);
  CHECK(allclose(net->forward(x), expected));
  CHECK(allclose(net(x), expected));
}

TEST_CASE("rows are split over one dimension of a mesh, and copied over the other") {
  const DeviceMesh mesh = init_device_mesh({2, get_world_size() / 2}, {"replicate", "shard"});
  const auto options = FullyShardOptions().process_group(mesh.group("shard")).replicate_group(mesh.group("replicate"));
  check_as_alone(train_sharded(options));
  Net net = make_net();
  fully_shard(net, options);
  const int64_t half = (9 + mesh.size("shard") - 1) / mesh.size("shard");
  CHECK(net->tokens->weight.size(0) == std::min(half, 9 - mesh.coordinate("shard") * half));
}

TEST_CASE("every process has its rows of each parameter, of some none") {
  Net net = make_net();
  const std::vector<Tensor> whole = make_net()->parameters();
  shard(net);
  const std::vector<TensorPart> parameters = module_parts(*net);
  REQUIRE(parameters.size() == whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    const TensorPart& parameter = parameters[i];
    const int64_t rows = whole[i].size(0), chunk = (rows + get_world_size() - 1) / get_world_size();
    const int64_t first = std::min(rows, get_rank() * chunk), count = std::min(chunk, rows - first);
    CHECK(IntArrayRef(parameter.sizes) == whole[i].sizes());
    CHECK(parameter.offsets[0] == first);
    CHECK(same_bits(parameter.local.detach(), whole[i].detach().narrow(0, first, count)));
    CHECK(parameter.local.is_same(net->parameters()[i]));
    CHECK(parameter.local.storage().nbytes() == static_cast<size_t>(count * whole[i].numel() / rows * 8));
    CHECK(same_bits(full_tensor(parameter.local), whole[i].detach()));
  }
  CHECK(module_parts(*net)[0].name == "tied");
  if (get_rank() > 0) CHECK(net->scale.numel() == 0);
}

TEST_CASE("gradients are those of one process: tied, unused, called twice, with any checkpoints") {
  for (const bool reshards : {true, false}) {
    const auto options = FullyShardOptions().reshard_after_forward(reshards);
    check_net([](NetImpl&) {}, options);
    check_net([](NetImpl& net) { net.calls_first_again = true; }, options);
    check_net([](NetImpl& net) { net.checkpoints = true; }, options);
    check_net([](NetImpl& net) { net.first->checkpoints = net.second->checkpoints = true; }, options);
    check_net([](NetImpl& net) { net.checkpoints = net.calls_first_again = net.first->checkpoints = true; }, options);
  }
}

TEST_CASE("units lie within units") {
  for (const bool checkpoints : {false, true}) {
    Net alone = make_net(), net = make_net();
    net->first->checkpoints = net->second->checkpoints = checkpoints;
    loss_of(alone, ids_of_all()).backward();
    fully_shard(net->first->down);
    fully_shard(net->second->up);
    shard(net, FullyShardOptions().reshard_after_forward(checkpoints));
    loss_of(net, own_ids()).backward();
    check_gradients(*net, *alone);
  }
}

TEST_CASE("frozen parameters are gathered, and let gradients through") {
  check_net([](NetImpl& net) {
    for (const Tensor& parameter : net.second->parameters()) parameter.requires_grad_(false);
    net.first->up->weight.requires_grad_(false);
    net.scale.requires_grad_(false);
  });
  // None of the net is trained: what comes before it is.
  manual_seed(5);
  Block alone;
  manual_seed(5);
  Block block;
  fully_shard(block, FullyShardOptions().reshard_after_forward(true));
  const auto gradient_through = [](Block& net) {
    for (const Tensor& parameter : net->parameters()) parameter.requires_grad_(false);
    const Tensor x = ones({2, kNetWidth}).requires_grad_();
    net(x).square().sum().backward();
    return x.grad();
  };
  CHECK(same_bits(gradient_through(block), gradient_through(alone)));
}

TEST_CASE("gradients of micro-batches add up, reduced each time or once") {
  SmallGpt alone = make_small_gpt();
  const TokenBatch first = TokenBatch::of_step(0), second = TokenBatch::of_step(1);
  const TokenBatch batch{cat({first.ids, second.ids}), cat({first.targets, second.targets})};
  loss_of(alone, batch).backward();
  for (const bool reduces_each : {true, false}) {
    SmallGpt net = make_small_gpt();
    shard(net);
    flight_recorder().clear();
    for (int64_t i = 0; i < 2; ++i) {
      set_requires_gradient_sync(*net, reduces_each || i == 1);
      (loss_of(net, rows_of(batch, 2 * get_rank() + i, 2 * get_world_size())) / 2).backward();
    }
    CHECK(count_begun("reduce_scatter_tensor") == (reduces_each ? 10 : 5));
    check_gradients(*net, *alone);
  }
}

TEST_CASE("two forward passes before their backward passes, in either order, and a graph that is used twice") {
  Net alone = make_net();
  loss_of(alone, ids_of_all()).backward();
  loss_of(alone, ids_of_all() * 2 % 9).backward();
  for (const bool in_order : {true, false}) {
    Net net = make_net();
    shard(net);
    const Tensor a = loss_of(net, own_ids()), b = loss_of(net, own_ids() * 2 % 9);
    (in_order ? a : b).backward();
    (in_order ? b : a).backward();
    check_gradients(*net, *alone);
  }
  Net net = make_net();
  shard(net);
  const Tensor sum = (loss_of(net, own_ids()) + loss_of(net, own_ids() * 2 % 9)) / 2;
  sum.backward({}, /*retain_graph=*/true);
  sum.backward();
  check_gradients(*net, *alone);
}
