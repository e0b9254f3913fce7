// Join: processes that have unequal numbers of batches end an epoch together.
#pragma once
#include <memory>
#include <vector>

#include "core/distributed/process_group.h"

namespace rush::distributed {

// Note [Uneven inputs]
// A process without further batches would leave the others waiting in their next collective. Under a Join, every
// process that still has batches announces what it is about to do: an all_reduce of one number per process, which is
// its action, or 0 where a process has no batches. A process at the end of its Join answers 0, reads the others' action
// from the sum, and shadows it: it calls the same collectives with zeros in the place of gradients. When all numbers
// are 0, all processes take the parameters of the first process that took part in the last action.
//
// Forward and backward passes announce themselves separately, just before their first collective. So a pass that calls
// no collective (in evaluation, under no_sync) announces nothing, and two forward passes may have one backward pass.

/// Who takes part in an action that was announced.
struct Attendance {
  int action = 0;            // 0: no process has batches
  int source = 0;            // the rank, among all processes, of the first process that has batches
  double mean_factor = 1.0;  // by which to multiply a mean over all processes
};

/// The keyword arguments of torch.distributed.algorithms.Join.
struct JoinOptions {
  /// Whether gradients are divided by the number of all processes; otherwise by that of the processes with batches.
  bool divide_by_initial_world_size = true;
  /// Whether all processes throw DistributedError as soon as one has no more batches, in place of going on.
  bool throw_on_early_termination = false;
};

class Join;

/// What calls collectives for each batch, and can call the same ones without a batch. DistributedDataParallel and
/// ZeroRedundancyOptimizer are Joinables. torch.distributed.algorithms.Joinable.
class Joinable {
 public:
  Joinable() = default;
  virtual ~Joinable() = default;
  Joinable(const Joinable&) = delete;

 protected:
  /// The processes among which its collectives are called.
  virtual const Group& join_group() const = 0;
  /// Calls the collectives of an action that others have announced.
  virtual void shadow(const Attendance& others) = 0;
  /// Takes the state of process `source`, when all processes have joined.
  virtual void end_join(int /*source*/) {}

  /// Called before the collectives of the action, a number from 0 on. Without a Join all processes take part, and
  /// nothing is sent. Throws DistributedError where some have no batches and throw_on_early_termination is set.
  Attendance announce(int action);

 private:
  friend class Join;
  Join* join_ = nullptr;
};

/// A guard around a loop over batches, of which processes may have unequally many. Its end waits until the last process
/// is there, and meanwhile takes part in the others' collectives.
///   {
///     const rush::distributed::Join join({net.get(), &optimizer});
///     for (const auto& [x, y] : batches) { ... }
///   }
/// Every process makes it with equal arguments. An exception that leaves the loop ends it at once. Throws ValueError
/// for no joinables and for joinables of different groups, Error for one that is under another Join; its end throws
/// DistributedError as Joinable::announce. torch.distributed.algorithms.Join.
class Join {
 public:
  explicit Join(const std::vector<Joinable*>& joinables, const JoinOptions& options = {});
  ~Join() noexcept(false);
  Join(const Join&) = delete;

 private:
  friend class Joinable;
  struct Release {
    void operator()(Joinable* joinable) const { joinable->join_ = nullptr; }
  };

  Attendance call_roll(int action);
  Attendance announce(const Joinable& joinable, int action);
  void shadow_others();

  const JoinOptions options_;
  const Group group_;
  const int exceptions_;  // that were under way when it was made
  std::vector<std::unique_ptr<Joinable, Release>> joinables_;
  int last_source_ = -1;
};

}  // namespace rush::distributed
