// ShardSchedule: when the sharded units of a thread gather their parameters and reduce their gradients.
#pragma once
#include <memory>
#include <vector>

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

/// One outermost forward call of a sharded module, and the calls within it, in the order of their ends. What the
/// accumulators of its graph own, as they may run as long as that lives.
struct ForwardPass {
  struct Call {
    std::weak_ptr<ShardedUnit> unit;
    uint64_t first, last;  // its nodes' numbers lie between these
    const ForwardPass* pass;
  };
  uint64_t number;
  std::vector<Call> calls;
};

/// Of one thread.
class ShardSchedule final : public NodeWatcher {
 public:
  static ShardSchedule& current();

  /// Of the module of `unit`, in the outermost of its scopes.
  void begin_forward(ShardedUnit& unit);
  void end_forward(ShardedUnit& unit) noexcept;

  void begin_pass() override;
  void before(const Node& node) override;
  void end_pass() override;
  void abandon_pass() noexcept override;

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

  void begin_outermost();
  void prefetch(const std::shared_ptr<ShardedUnit>& unit);
  void drop_prefetched();
  void leave(BackwardState& state);

  std::vector<ActiveCall> active_;
  std::shared_ptr<ForwardPass> pass_;  // the last one; frozen modules have no accumulators that would own it
  std::vector<std::weak_ptr<ForwardPass>> passes_;
  std::weak_ptr<ShardedUnit> last_begun_;
  std::vector<std::weak_ptr<ShardedUnit>> prefetched_;  // which may turn out not to be used
  std::vector<BackwardState> backward_;                 // innermost last
};

}  // namespace rush::nn::parallel
