// When sharded modules gather and reduce, what memory they hold meanwhile, in which dtypes, and what they refuse.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "autograd/grad_mode.h"
#include "autograd/hooks.h"
#include "backends/cpu/memory/memory.h"
#include "core/distributed/collectives.h"
#include "core/memory/memory_use.h"
#include "nn/clip_grad.h"
#include "tests/distributed/rank_inputs.h"
#include "tests/distributed/sharded_nets.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using namespace rush::nn::parallel;
using namespace rush::testing;

constexpr int64_t kDepth = 12, kFeatures = 128;
constexpr int64_t kBlockBytes = kFeatures * kFeatures * 4;  // of a block's parameters

// Calls `on_forward` with its number, and `on_backward` as the gradient of its result comes.
struct WideBlockImpl : nn::Module {
  explicit WideBlockImpl(int64_t number) : number(number) {}
  Tensor forward(const Tensor& x) {
    if (on_forward) on_forward(number);
    const Tensor y = linear(x).tanh();
    if (on_backward && y.requires_grad()) y.register_hook([this](const Tensor&) { on_backward(number); });
    return y;
  }
  nn::Linear linear{register_module("linear", nn::Linear(nn::LinearOptions(kFeatures, kFeatures).bias(false)))};
  int64_t number;
  std::function<void(int64_t)> on_forward, on_backward;
};
RUSH_MODULE(WideBlock);

struct DeepImpl : nn::Module {
  DeepImpl() {
    for (int64_t i = 0; i < kDepth; ++i) blocks->push_back(WideBlock(i));
  }
  Tensor forward(Tensor x) {
    x = head(x);
    for (int64_t i = 0; i < kDepth; ++i) x = block(i)(x);
    return x;
  }
  WideBlock block(int64_t i) { return blocks->ptr<WideBlockImpl>(static_cast<size_t>(i)); }
  nn::Linear head{register_module("head", nn::Linear(nn::LinearOptions(kFeatures, kFeatures).bias(false)))};
  nn::ModuleList blocks{register_module("blocks", nn::ModuleList())};
};
RUSH_MODULE(Deep);

Deep make_deep(const FullyShardOptions& options = {}) {
  manual_seed(4);
  Deep net;
  for (int64_t i = 0; i < kDepth; ++i) fully_shard(net->block(i), options);
  fully_shard(net, options);
  return net;
}

Tensor deep_loss(Deep& net) { return net(full({2, kFeatures}, 0.1 * (1 + get_rank()))).square().sum(); }

int64_t parameter_bytes() { return memory_uses(kCPU)[MemoryUse::Parameter]; }

}  // namespace

TEST_CASE("a unit's collective is under way while the one before it computes, forward and backward") {
  Deep net = make_deep();
  std::vector<int64_t> forward, backward;
  for (int64_t i = 0; i < kDepth; ++i) {
    net->block(i)->on_forward = [&](int64_t) { forward.push_back(count_begun("all_gather_into_tensor")); };
    net->block(i)->on_backward = [&](int64_t) { backward.push_back(count_begun("all_gather_into_tensor")); };
  }
  for (const int64_t ahead : {0, 1}) {  // the first pass learns the order
    flight_recorder().clear();
    forward.clear();
    backward.clear();
    deep_loss(net).backward();
    REQUIRE(forward.size() == kDepth);
    REQUIRE(backward.size() == kDepth);
    for (int64_t i = 0; i < kDepth; ++i) {
      // The root's, those of the blocks up to this one, and of the next; a block's hook runs inside of its backward.
      CHECK(forward[static_cast<size_t>(i)] == std::min(1 + kDepth, 2 + i + ahead));
      CHECK(backward[static_cast<size_t>(i)] == 1 + kDepth + std::min(kDepth, 2 + i));
    }
    CHECK(count_begun("all_gather_into_tensor") == 1 + 2 * kDepth);
    CHECK(count_begun("reduce_scatter_tensor") == 1 + kDepth);
    CHECK(flight_recorder().records().size() == static_cast<size_t>(2 + 3 * kDepth));
  }
}

TEST_CASE("a process holds its shards, and of whole parameters those of the root and of the block that computes") {
  const int64_t before = parameter_bytes(), before_all = cpu::memory_allocated();
  Deep net = make_deep();
  const int64_t shards = (kDepth + 1) * kBlockBytes / get_world_size();
  CHECK(parameter_bytes() - before == shards);
  CHECK(cpu::memory_allocated() - before_all < shards + (1 << 17));
  for (int64_t i = 0; i < kDepth; ++i) {
    const auto check = [&](int64_t) { CHECK(parameter_bytes() - before == shards + 2 * kBlockBytes); };
    net->block(i)->on_forward = net->block(i)->on_backward = check;
  }
  for (int step = 0; step < 2; ++step) {
    net->zero_grad();
    cpu::reset_peak_memory_stats();
    const Tensor loss = deep_loss(net);
    CHECK(parameter_bytes() - before == shards + kBlockBytes);  // the root's stay for its backward
    loss.backward();
    CHECK(parameter_bytes() - before == shards);
    // Shards, their gradients, and five blocks: the root's and a block's whole parameters, what the next one gathers, a
    // whole gradient, and one that is being reduced.
    const int64_t peak = cpu::max_memory_allocated() - before_all;
    CHECK(peak < 2 * shards + 5 * kBlockBytes);
    CHECK(peak < 2 * (kDepth + 1) * kBlockBytes);
  }
  {
    const NoGradGuard no_grad;
    deep_loss(net);
    CHECK(parameter_bytes() - before == shards);
  }
}

TEST_CASE("a unit that stays whole after forward is not gathered again, and gathered after a step") {
  Deep net = make_deep(FullyShardOptions().reshard_after_forward(false));
  flight_recorder().clear();
  deep_loss(net).backward();
  CHECK(count_begun("all_gather_into_tensor") == 1 + kDepth);
  const Tensor before = deep_loss(net).detach();
  {
    const NoGradGuard no_grad;
    for (const Tensor& parameter : net->parameters()) parameter.mul_(0.5);
  }
  Deep fresh = make_deep();
  {
    const NoGradGuard no_grad;
    for (const Tensor& parameter : fresh->parameters()) parameter.mul_(0.5);
  }
  const Tensor after = deep_loss(net).detach();
  CHECK(same_bits(after, deep_loss(fresh).detach()));
  CHECK(!same_bits(after, before));
}

TEST_CASE("a graph that one process alone keeps changes no collective") {
  Net a = make_net(), b = make_net();
  shard(a);
  shard(b);
  std::vector<Tensor> kept;
  flight_recorder().clear();
  for (int step = 0; step < 3; ++step) {
    for (Net* net : {&a, &b}) {
      const Tensor loss = loss_of(*net, own_ids());
      if (get_rank() == 0) kept.push_back(loss);
      loss.backward();
    }
  }
  Tensor most = full({1}, static_cast<int64_t>(flight_recorder().records().size()), kInt64), least = most.clone();
  all_reduce(most, ReduceOp::MAX);
  all_reduce(least, ReduceOp::MIN);
  CHECK(most.item<int64_t>() == least.item<int64_t>());
}

// What `net` computes with parameters rounded to bfloat16, and gradients reduced in `reduce_dtype`.
void check_bfloat16(ScalarType reduce_dtype) {
  const auto policy = MixedPrecisionPolicy().param_dtype(kBFloat16).reduce_dtype(reduce_dtype);
  Net net = make_net(), reference = make_net();
  net->to(kFloat32);
  reference->to(kFloat32);
  reference->to(kBFloat16);
  shard(net, FullyShardOptions().mp_policy(policy));
  const Tensor result = net(own_ids()), expected = reference(own_ids());
  CHECK(result.scalar_type() == kBFloat16);
  CHECK(same_bits(result.detach(), expected.detach()));
  result.to(kFloat32).square().mean().backward();
  expected.to(kFloat32).square().mean().backward();
  const auto parameters = module_parts(*net);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor mean = reference->parameters()[i].grad(), own = parameters[i].local;
    CHECK(own.scalar_type() == kFloat32);
    REQUIRE(own.grad().defined() == mean.defined());
    if (!mean.defined()) continue;
    const Tensor reduced = mean.to(reduce_dtype);
    all_reduce(reduced, ReduceOp::AVG);
    CHECK(own.grad().scalar_type() == kFloat32);
    CHECK(same_bits(own.grad(), reduced.to(kFloat32).narrow(0, parameters[i].offsets[0], own.size(0))));
  }
}

TEST_CASE("parameters are gathered in 16 bits, gradients reduced in their own dtype or the policy's") {
  check_bfloat16(kBFloat16);
  check_bfloat16(kFloat32);
}

TEST_CASE("hooks see the gradient of the shard, and a module may change its dtype") {
  Net net = make_net();
  shard(net);
  int calls = 0;
  net->tokens->weight.register_hook([&](const Tensor& gradient) {
    ++calls;
    return gradient * 2;
  });
  loss_of(net, own_ids()).backward();
  const Tensor doubled = net->tokens->weight.grad().clone();
  CHECK(calls == 1);
  net->zero_grad();
  net->tokens->weight.remove_hook(0);
  loss_of(net, own_ids()).backward();
  CHECK(same_bits(net->tokens->weight.grad() * 2, doubled));
  net->to(kFloat32);
  net->zero_grad();
  const Tensor loss = loss_of(net, own_ids());
  CHECK(loss.scalar_type() == kFloat32);
  loss.backward();
  CHECK(allclose(net->tokens->weight.grad().to(kFloat64) * 2, doubled, 1e-4, 1e-6));
}

TEST_CASE("gradients are clipped by their norm over all processes") {
  for (const double order : {2.0, 1.0, std::numeric_limits<double>::infinity()}) {
    Net alone = make_net(), net = make_net();
    shard(net);
    loss_of(alone, ids_of_all()).backward();
    loss_of(net, own_ids()).backward();
    const double expected = nn::utils::clip_grad_norm_(alone->parameters(), 1e-3, order);
    const double norm = nn::parallel::clip_grad_norm_(net->parameters(), 1e-3, order);
    CHECK(expected > 1e-2);
    CHECK(std::abs(norm - expected) < 1e-12 * expected);
    CHECK(nn::parallel::clip_grad_norm_(net->parameters(), 1, order) == doctest::Approx(1e-3).epsilon(1e-3));
  }
  CHECK_THROWS_WITH_AS(nn::parallel::clip_grad_norm_({}, 1, 0), doctest::Contains("norm_type is 0"), ValueError);
  Net net = make_net();
  shard(net);
  loss_of(net, own_ids()).backward();
  if (get_rank() == 0) net->parameters()[0].grad().fill_(std::nan(""));
  CHECK_THROWS_WITH_AS(nn::parallel::clip_grad_norm_(net->parameters(), 1, 2, /*error_if_nonfinite=*/true),
                       doctest::Contains("non-finite"), Error);  // on every process
}

TEST_CASE("weights that are written between forward and backward are noticed, and the net works again") {
  Net net = make_net();
  shard(net);
  const Tensor loss = loss_of(net, own_ids());
  {
    const NoGradGuard no_grad;
    for (const Tensor& parameter : net->parameters()) parameter.mul_(1);
  }
  CHECK_THROWS_WITH_AS(loss.backward(), doctest::Contains("modified by an inplace operation"), Error);
  CHECK(!net->parameters()[0].grad().defined());
  Net other = make_net();
  shard(other);
  loss_of(net, own_ids()).backward();
  loss_of(other, own_ids()).backward();
  for (size_t i = 0; i < net->parameters().size(); ++i) {
    const Tensor gradient = net->parameters()[i].grad();
    if (gradient.defined()) CHECK(same_bits(gradient, other->parameters()[i].grad()));
  }
}

TEST_CASE("a forward that throws leaves shards") {
  Deep net = make_deep();
  net->block(3)->on_forward = [](int64_t) { throw std::runtime_error("stop"); };
  CHECK_THROWS_WITH(deep_loss(net), "stop");
  for (const Tensor& parameter : net->parameters()) CHECK(parameter.size(0) == kFeatures / get_world_size());
  net->block(3)->on_forward = nullptr;
  Deep other = make_deep();
  CHECK(same_bits(deep_loss(net).detach(), deep_loss(other).detach()));
}

TEST_CASE("a net may be gone before its backward pass, and its memory is freed") {
  const int64_t before = parameter_bytes();
  Tensor x = ones({2, kFeatures}).requires_grad_();
  {
    Tensor loss;
    {
      Deep net = make_deep();
      loss = net(x).sum();
    }
    loss.backward();
  }
  CHECK(x.grad().abs().sum().item<float>() > 0);
  CHECK(parameter_bytes() == before);
}

TEST_CASE("what cannot be sharded is an error, and changes nothing") {
  struct OddImpl : nn::Module {
    explicit OddImpl(const Tensor& odd) { register_parameter("odd", odd, odd.is_floating_point()); }
    void add(const Tensor& other) { register_parameter("other", other); }
  };
  const auto refuses = [](const Tensor& odd, const char* message, auto error) {
    OddImpl module(odd);
    module.add(ones({3}));
    CHECK_THROWS_WITH_AS(fully_shard(module), doctest::Contains(message), decltype(error));
    CHECK(module.parameters()[1].numel() == 3);
  };
  refuses(full({}, 1.0), "the parameter 'odd' has no dimension to split", ValueError(""));
  refuses(ones({2}, kFloat64), "'other' is of float32, others of float64", TypeError(""));
  refuses(ones({4, 2}).narrow(0, 0, 2), "'odd' is a view", ValueError(""));
  refuses(eye(3).to_sparse(), "'odd' is", TypeError(""));

  Net net = make_net();
  shard(net);
  CHECK_THROWS_WITH_AS(fully_shard(net), doctest::Contains("Net has been sharded already"), Error);
  CHECK_THROWS_WITH_AS(fully_shard(net->first), doctest::Contains("Net.first has been sharded already"), Error);
  const Tensor x = ones({1}, kFloat64).requires_grad_();
  CHECK_THROWS_WITH_AS((loss_of(net, own_ids()) * x).backward({}, true, /*create_graph=*/true),
                       doctest::Contains("a backward pass with create_graph"), NotImplementedError);

  Net tied = make_net();
  fully_shard(tied->tokens);
  CHECK_THROWS_WITH_AS(fully_shard(tied), doctest::Contains("the parameter 'tied' is shared with a module"),
                       ValueError);

  nn::Embedding table(nn::EmbeddingOptions(6, 2).sparse(true));
  fully_shard(table);
  CHECK_THROWS_WITH_AS(table->clone(), doctest::Contains("clone it before fully_shard"), NotImplementedError);
  CHECK_THROWS_WITH_AS(table(zeros({2}, kInt64)).sum().backward(), doctest::Contains("is sparse"), NotImplementedError);

  CHECK_THROWS_WITH_AS(
      fully_shard(nn::Linear(2, 2), FullyShardOptions().mp_policy(MixedPrecisionPolicy().param_dtype(kInt64))),
      doctest::Contains("param_dtype is int64"), TypeError);
  const int64_t width = get_rank() == 1 ? 5 : 4;
  const char* expected = get_rank() == 1 ? "fully_shard: the parameter 'weight' is float32 of shape (5, 3)"
                                         : "fully_shard: the parameters of another process";
  CHECK_THROWS_WITH_AS(fully_shard(nn::Linear(3, width)), doctest::Contains(expected), DistributedError);
}
