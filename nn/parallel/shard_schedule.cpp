// When the sharded units of a thread gather their parameters and reduce their gradients.
#include <memory>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/node_watcher.h"
#include "nn/parallel/sharded_unit.h"

namespace rush::nn::parallel {

// Note [When units gather]
// Forward: a unit gathers as its module's outermost ModuleScope begins. Then the unit that followed it in the last pass
// begins to gather, so that its collective goes on while this one computes.
//
// Backward: nodes are numbered as they are made (Note [The graph]), and a call of a unit's module knows the numbers at
// its beginning and its end. The engine runs nodes in descending order. So before a node within these bounds the unit
// gathers, and the call that ended before it in the forward pass begins to; before a node below them all of the unit's
// gradients are there, for its accumulators have the number at which the call began. They begin to be reduced, and are
// waited for as those of the next unit begin to be, or at the end of the pass: at most two units' whole gradients are
// there at a time. What the nodes have saved does not matter: checkpoints, which recompute inside such bounds or
// outside of them, find whole parameters.
//
// All this follows from the program's forward calls and graph alone, and so is the same on all processes, as
// collectives ask for.

// One outermost forward call of a sharded module, and the calls within it, in the order of their ends. What the
// accumulators of its graph own, as they may run as long as that lives.
struct ForwardPass {
  struct Call {
    std::weak_ptr<ShardedUnit> unit;
    uint64_t first, last;  // its nodes' numbers lie between these
    const ForwardPass* pass;
  };
  uint64_t number;
  std::vector<Call> calls;
};

namespace {

// Takes a number, between those of the nodes made before and after.
uint64_t next_node_number() {
  struct Unconnected final : Node {
    Tensors apply(const Tensors&) override { return {}; }
  };
  return Unconnected().sequence_nr();
}

// Of one thread.
class ShardSchedule final : public NodeWatcher {
 public:
  static ShardSchedule& current() {
    static thread_local ShardSchedule schedule;
    return schedule;
  }

  // ---- forward

  void begin_forward(ShardedUnit& unit) {
    const bool is_recomputed = current_node;
    const bool is_recorded = GradMode::is_enabled() && !is_recomputed;
    if (!is_recomputed) {
      if (active_.empty()) begin_outermost();
      unit.enter_pass(pass_->number);
      unit.begin_gather();
      if (const auto before = last_begun_.lock()) before->next = unit.weak_from_this();
      last_begun_ = unit.weak_from_this();
      prefetch(unit.next.lock());
    }
    unit.use();
    active_.push_back({next_node_number(), is_recorded, is_recomputed});
    if (is_recorded) unit.expect_gradients(pass_, active_.back().first);
  }

  void end_forward(ShardedUnit& unit) noexcept {
    const ActiveCall call = active_.back();
    active_.pop_back();
    bool reshards = true;
    if (call.is_recorded) {
      unit.release_accumulators();
      pass_->calls.push_back({unit.weak_from_this(), call.first, next_node_number(), pass_.get()});
      reshards = unit.options().reshard_after_forward().value_or(!active_.empty());
    }
    unit.end_use(reshards);
  }

  // ---- backward

  void begin_pass() override {
    BackwardState& state = backward_.emplace_back();
    for (const auto& each : passes_) {
      const auto pass = each.lock();
      if (!pass) continue;
      state.forward.push_back(pass);
      state.calls.insert(state.calls.end(), pass->calls.begin(), pass->calls.end());
    }
  }

  void before(const Node& node) override {
    BackwardState& state = backward_.back();
    const uint64_t number = node.sequence_nr();
    while (!state.used.empty() && state.used.back().first > number) leave(state);
    while (!state.calls.empty() && state.calls.back().last > number) {
      const ForwardPass::Call call = state.calls.back();
      state.calls.pop_back();
      const auto unit = call.unit.lock();
      if (!unit || call.first > number) continue;
      RUSH_CHECK_NOT_IMPLEMENTED(
          !GradMode::is_enabled(), "fully_shard: a backward pass with create_graph would keep ",
          "what it computes with whole parameters; gradients of sharded modules have no gradients");
      unit->begin_gather();
      if (!state.calls.empty() && state.calls.back().pass == call.pass) prefetch(state.calls.back().unit.lock());
      unit->use();
      state.used.push_back({unit, call.first});
    }
  }

  void end_pass() override {
    BackwardState& state = backward_.back();
    while (!state.used.empty()) leave(state);
    if (state.reducing) std::exchange(state.reducing, nullptr)->finish_reduction();
    drop_prefetched();
    backward_.pop_back();
  }

  void abandon_pass() noexcept override {
    BackwardState& state = backward_.back();
    if (state.reducing) state.reducing->drop_gradients();
    for (; !state.used.empty(); state.used.pop_back()) {
      state.used.back().unit->end_use(/*frees=*/true);
      state.used.back().unit->drop_gradients();
    }
    backward_.pop_back();
  }

 private:
  struct ActiveCall {
    uint64_t first;
    bool is_recorded, is_recomputed;  // by a checkpoint in the backward pass
  };
  struct UsedUnit {
    std::shared_ptr<ShardedUnit> unit;
    uint64_t first;
  };
  struct BackwardState {
    std::vector<std::shared_ptr<ForwardPass>> forward;  // that have graphs, and their calls:
    std::vector<ForwardPass::Call> calls;               // those whose nodes have not been reached
    std::vector<UsedUnit> used;                         // those that the nodes are in, outermost first
    std::shared_ptr<ShardedUnit> reducing;
  };

  void begin_outermost() {
    drop_prefetched();
    last_begun_.reset();
    std::erase_if(passes_, [](const auto& pass) { return pass.expired(); });
    pass_ = std::make_shared<ForwardPass>();
    pass_->number = next_node_number();
    passes_.push_back(pass_);
    NodeWatcher::current = this;
  }

  void prefetch(const std::shared_ptr<ShardedUnit>& unit) {
    if (!unit) return;
    unit->begin_gather();
    prefetched_.push_back(unit);
  }

  void drop_prefetched() {
    for (const auto& each : std::exchange(prefetched_, {})) {
      if (const auto unit = each.lock()) unit->drop_gather();
    }
  }

  // The unit's memory is free before gradients are copied.
  static void leave(BackwardState& state) {
    const auto unit = std::move(state.used.back().unit);
    state.used.pop_back();
    unit->end_use(/*frees=*/true);
    if (state.reducing) std::exchange(state.reducing, nullptr)->finish_reduction();
    if (unit->begin_reduction()) state.reducing = unit;
  }

  std::vector<ActiveCall> active_;
  std::shared_ptr<ForwardPass> pass_;  // the last one; frozen modules have no accumulators that would own it
  std::vector<std::weak_ptr<ForwardPass>> passes_;
  std::weak_ptr<ShardedUnit> last_begun_;
  std::vector<std::weak_ptr<ShardedUnit>> prefetched_;  // which may turn out not to be used
  std::vector<BackwardState> backward_;                 // innermost last
};

}  // namespace

void ShardedUnit::begin_forward() {
  if (depth_ == 0) ShardSchedule::current().begin_forward(*this);
  ++depth_;
}

void ShardedUnit::end_forward() noexcept {
  if (--depth_ == 0) ShardSchedule::current().end_forward(*this);
}

}  // namespace rush::nn::parallel
