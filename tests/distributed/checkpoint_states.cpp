// States of optimisers in sharded checkpoints: those of split parameters, of pipelines' stages and of ZeRO-1.
#include <doctest/doctest.h>

#include "core/distributed/checkpoint.h"
#include "core/ops/random/random_factories.h"
#include "optim/optim.h"
#include "optim/state/state_parts.h"
#include "optim/zero_redundancy.h"
#include "tests/distributed/rank_inputs.h"
#include "tests/distributed/shared_folder.h"
#include "tests/distributed/small_gpt.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using namespace rush::testing;

std::vector<TensorPart> whole_parts(SmallGpt& net) {
  std::vector<TensorPart> parts;
  for (const auto& item : net->named_parameters()) parts.push_back(TensorPart::whole(item.key(), item.value()));
  return parts;
}

// Takes over the values of another mesh's checkpoint.
template <class Optimizer>
void load_all(const std::string& folder, const std::vector<TensorPart>& parts, Optimizer& optimizer) {
  load_parts(folder, parts);
  optim::load_state_parts(folder, optimizer, parts);
}

template <class Optimizer>
void save_all(const std::string& folder, std::vector<TensorPart> parts, const Optimizer& optimizer) {
  for (TensorPart& state : optim::state_parts(optimizer, parts)) parts.push_back(std::move(state));
  save_parts(folder, parts);
}

template <class Optimizer>
void train(SmallGpt& net, Optimizer& optimizer, int64_t from, int64_t to) {
  for (int64_t step = from; step < to; ++step) {
    const TokenBatch batch = TokenBatch::of_step(step);
    optimizer.zero_grad();
    token_loss(net(batch.ids), batch.targets).backward();
    optimizer.step();
  }
}

template <class Optimizer>
void check_goes_on(const std::string& folder, SmallGpt& net, Optimizer& optimizer) {
  load_all(folder, whole_parts(net), optimizer);
  train(net, optimizer, 6, 10);
  const std::vector<Tensor> expected = train_small_gpt_alone(10).parameters, parameters = net->parameters();
  REQUIRE(parameters.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(parameters[i].detach(), expected[i].detach()));
}

using Zero = optim::ZeroRedundancyOptimizer<optim::AdamW>;
Zero make_zero(SmallGpt& net) { return Zero(net->parameters(), optim::AdamWOptions(1e-2)); }

// Each process has its rows of every tensor, as many as there are left for the last ones, and steps those alone:
// AdamW's arithmetic is element by element.
struct Split {
  std::vector<TensorPart> parts;
  std::vector<Tensor> params;

  explicit Split(SmallGpt& net) {
    for (const auto& item : net->named_parameters()) {
      TensorPart part = TensorPart::whole(item.key(), item.value().detach());
      const int64_t rows = (part.sizes[0] + get_world_size() - 1) / get_world_size();
      const int64_t from = std::min(rows * get_rank(), part.sizes[0]);
      part.local = part.local.narrow(0, from, std::min(rows, part.sizes[0] - from)).clone().requires_grad_();
      part.offsets[0] = from;
      params.push_back(part.local);
      parts.push_back(std::move(part));
    }
  }
  void take_gradients(SmallGpt& net) const {
    const std::vector<Tensor> all = net->parameters();
    for (size_t i = 0; i < all.size(); ++i) {
      params[i].mutable_grad() = all[i].grad().narrow(0, parts[i].offsets[0], params[i].size(0)).clone();
    }
  }
};

TEST_CASE("a checkpoint of ZeRO-1 goes on in a plain optimiser, and the other way") {
  const SharedFolder folder;
  {
    SmallGpt net = make_small_gpt();
    Zero optimizer = make_zero(net);
    train(net, optimizer, 0, 6);
    save_all(folder / "zero", whole_parts(net), optimizer);
  }
  {
    SmallGpt net = make_small_gpt();
    optim::AdamW optimizer = make_optimizer(net->parameters());
    check_goes_on(folder / "zero", net, optimizer);
  }
  {
    SmallGpt net = make_small_gpt();
    optim::AdamW optimizer = make_optimizer(net->parameters());
    train(net, optimizer, 0, 6);
    save_all(folder / "plain", whole_parts(net), optimizer);
  }
  {
    SmallGpt net = make_small_gpt();
    Zero optimizer(net->parameters(), optim::AdamWOptions(0.5));  // the checkpoint has the rate
    check_goes_on(folder / "plain", net, optimizer);
  }
}

TEST_CASE("the states of split parameters are split as they are") {
  const SharedFolder folder;
  SmallGpt net = make_small_gpt();
  const Split split(net);
  optim::AdamW optimizer = make_optimizer(split.params);
  optim::AdamW reference = make_optimizer(net->parameters());
  for (int64_t step = 0; step < 6; ++step) {  // the whole net goes on beside, and gives the gradients
    const TokenBatch batch = TokenBatch::of_step(step);
    reference.zero_grad();
    token_loss(net(batch.ids), batch.targets).backward();
    split.take_gradients(net);
    reference.step();
    optimizer.step();
  }
  save_all(folder.path(), split.parts, optimizer);

  CheckpointFolder checkpoint(folder.path());
  const auto* const entry = checkpoint.find("optimizer.state.head.weight.exp_avg_sq");
  REQUIRE(entry);
  CHECK(entry->shape == std::vector<int64_t>{kVocabulary, kWidth});
  CHECK(checkpoint.find("optimizer.state.head.weight.step")->shape.empty());
  CHECK(checkpoint.find("optimizer.param_groups.0.lr"));
  CHECK_FALSE(checkpoint.find("optimizer.param_groups.0.params"));

  SmallGpt other = make_small_gpt();
  Zero zero = make_zero(other);
  check_goes_on(folder.path(), other, zero);

  // And back to split ones, whose values begin as others.
  SmallGpt third = make_small_gpt();
  const Split again(third);
  optim::AdamW loaded = make_optimizer(again.params);
  load_all(folder.path(), again.parts, loaded);
  const optim::StateDict expected = optimizer.state_dict(), got = loaded.state_dict();
  REQUIRE(got.size() == expected.size());
  for (const auto& item : expected) CHECK_MESSAGE(same_bits(got[item.key()], item.value()), item.key());
  for (size_t i = 0; i < again.params.size(); ++i) {
    CHECK(same_bits(again.params[i].detach(), split.params[i].detach()));
  }
}

TEST_CASE("an optimiser that has not stepped, and states whose split is not known") {
  const SharedFolder folder;
  const int64_t world = get_world_size();
  const Tensor param = ones({4, 3}).requires_grad_();
  const TensorPart part{"w", param, {4 * world, 3}, {4 * get_rank(), 0}};
  optim::AdamW fresh({param}, optim::AdamWOptions(0.1));
  save_parts(folder.path(), optim::state_parts(fresh, {part}));
  optim::AdamW loaded({param}, optim::AdamWOptions(0.2));
  optim::load_state_parts(folder.path(), loaded, {part});
  CHECK(loaded.param_groups()[0].options().get_lr() == 0.1);
  CHECK(loaded.state().empty());
  CHECK_THROWS_WITH_AS(optim::load_state_parts(folder.path(), loaded, {part}, "others."),
                       doctest::Contains("missing: param_groups.0.lr"), ValueError);
  CHECK_THROWS_WITH_AS(optim::state_parts(fresh, {}),
                       doctest::Contains("parameter 0 of shape (4, 3) is in none of 0 parts"), ValueError);

  optim::Adafactor factors({param}, optim::AdafactorOptions());
  param.mutable_grad() = ones({4, 3});
  factors.step();
  CHECK_THROWS_WITH_AS(optim::state_parts(factors, {part}), doctest::Contains("the state of a parameter that is split"),
                       ValueError);
  CHECK(optim::state_parts(factors, {TensorPart::whole("w", param.detach())}).size() > 2);
}

}  // namespace
