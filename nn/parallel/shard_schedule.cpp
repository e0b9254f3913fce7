#include "nn/parallel/shard_schedule.h"

#include "autograd/grad_mode.h"

namespace rush::nn::parallel {

namespace {

// Takes a number, between those of the nodes made before and after.
uint64_t next_node_number() {
  struct Unconnected final : Node {
    Tensors apply(const Tensors&) override { return {}; }
  };
  return Unconnected().sequence_nr();
}

}  // namespace

ShardSchedule& ShardSchedule::current() {
  static thread_local ShardSchedule schedule;
  return schedule;
}

void ShardSchedule::prefetch(const std::shared_ptr<ShardedUnit>& unit) {
  if (!unit) return;
  unit->begin_gather();
  prefetched_.push_back(unit);
}

void ShardSchedule::drop_prefetched() {
  for (const auto& each : std::exchange(prefetched_, {})) {
    if (const auto unit = each.lock()) unit->drop_gather();
  }
}

// ---- forward

void ShardSchedule::begin_outermost() {
  drop_prefetched();
  last_begun_.reset();
  std::erase_if(passes_, [](const auto& pass) { return pass.expired(); });
  pass_ = std::make_shared<ForwardPass>();
  pass_->number = next_node_number();
  passes_.push_back(pass_);
  NodeWatcher::current = this;
}

void ShardSchedule::begin_forward(ShardedUnit& unit) {
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

void ShardSchedule::end_forward(ShardedUnit& unit) noexcept {
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

void ShardSchedule::begin_pass() {
  BackwardState& state = backward_.emplace_back();
  for (const auto& each : passes_) {
    const auto pass = each.lock();
    if (!pass) continue;
    state.forward.push_back(pass);
    state.calls.insert(state.calls.end(), pass->calls.begin(), pass->calls.end());
  }
}

void ShardSchedule::before(const Node& node) {
  BackwardState& state = backward_.back();
  const uint64_t number = node.sequence_nr();
  while (!state.used.empty() && state.used.back().first > number) leave(state);
  while (!state.calls.empty() && state.calls.back().last > number) {
    const ForwardPass::Call call = state.calls.back();
    state.calls.pop_back();
    const auto unit = call.unit.lock();
    if (!unit || call.first > number) continue;
    RUSH_CHECK_NOT_IMPLEMENTED(!GradMode::is_enabled(),
                               "fully_shard: a backward pass with create_graph would keep what "
                               "it computes with whole parameters; gradients of sharded modules have no gradients");
    unit->begin_gather();
    if (!state.calls.empty() && state.calls.back().pass == call.pass) prefetch(state.calls.back().unit.lock());
    unit->use();
    state.used.push_back({unit, call.first});
  }
}

// The unit's memory is free before gradients are copied.
void ShardSchedule::leave(BackwardState& state) {
  const auto unit = std::move(state.used.back().unit);
  state.used.pop_back();
  unit->end_use(/*frees=*/true);
  if (state.reducing) std::exchange(state.reducing, nullptr)->finish_reduction();
  if (unit->begin_reduction()) state.reducing = unit;
}

void ShardSchedule::end_pass() {
  BackwardState& state = backward_.back();
  while (!state.used.empty()) leave(state);
  if (state.reducing) std::exchange(state.reducing, nullptr)->finish_reduction();
  drop_prefetched();
  backward_.pop_back();
}

void ShardSchedule::abandon_pass() noexcept {
  BackwardState& state = backward_.back();
  if (state.reducing) state.reducing->drop_gradients();
  for (; !state.used.empty(); state.used.pop_back()) {
    state.used.back().unit->end_use(/*frees=*/true);
    state.used.back().unit->drop_gradients();
  }
  backward_.pop_back();
}

}  // namespace rush::nn::parallel
