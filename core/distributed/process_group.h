// ProcessGroup: processes that work together, and what carries their data.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/array_ref.h"
#include "core/distributed/distributed_error.h"
#include "core/distributed/reduce_op.h"
#include "core/distributed/work.h"

namespace rush::distributed {

// Note [Collectives]
// A collective is called by every process of its group, all in the same order: the first call of one meets the first
// call of each other one. Three layers make it. The functions of collectives.h check their arguments, and bring tensors
// that are not contiguous, or not on the group's device, to where the group reads them. A ProcessGroup queues the
// collective on its backend and returns a Work. The backend carries it out: a thread that calls MPI, see Note
// [Communication thread], or nobody where the group is a fake.

/// Processes, each with a rank from 0 on in the group, and one function for each collective. The functions are what a
/// backend provides; programs call those of collectives.h. Tensors are contiguous, on `device()`, and the backend keeps
/// them until the Work is done; ranks are those of the group. c10d::ProcessGroup.
class ProcessGroup {
 public:
  /// `ranks` are the members by their ranks among all processes; this process is member number `rank`.
  ProcessGroup(std::string name, std::vector<int> ranks, int rank);
  virtual ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  const std::string& name() const { return name_; }             // by which operators find the group
  int rank() const { return rank_; }                            // this process's
  int size() const { return static_cast<int>(ranks_.size()); }  // how many members there are
  const std::vector<int>& ranks() const { return ranks_; }      // theirs among all processes
  /// The member whose rank among all processes is `global_rank`. Throws ValueError, which begins with `who`, where it
  /// is no member.
  int rank_of(const char* who, int global_rank) const;

  virtual const char* backend() const = 0;                 // "mpi", "nccl" or "fake"
  virtual Device device() const { return kCPU; }           // where it reads and writes tensors
  virtual bool takes_any_device() const { return false; }  // whether it does so wherever they are

  /// In place, on every process.
  virtual WorkPtr all_reduce(const Tensor& tensor, ReduceOp op) = 0;
  /// In place, on the root; what the others' tensors then hold is not said.
  virtual WorkPtr reduce(const Tensor& tensor, ReduceOp op, int root) = 0;
  virtual WorkPtr broadcast(const Tensor& tensor, int root) = 0;
  /// `output` has a block for each process, as large as `input`.
  virtual WorkPtr all_gather(const Tensor& output, const Tensor& input) = 0;
  /// `input` has a block for each process, as large as `output`.
  virtual WorkPtr reduce_scatter(const Tensor& output, const Tensor& input, ReduceOp op) = 0;
  /// Rank i gets `input_splits[i]` elements of the input, and fills `output_splits[i]` of the output. So are gather and
  /// scatter, where all splits but a root's are 0.
  virtual WorkPtr all_to_all(const Tensor& output, const Tensor& input, IntArrayRef output_splits,
                             IntArrayRef input_splits) = 0;
  virtual WorkPtr send(const Tensor& tensor, int destination, int tag) = 0;
  virtual WorkPtr recv(const Tensor& tensor, int source, int tag) = 0;
  virtual WorkPtr barrier() = 0;

  /// A group of some of this group's members; null on the others. Called by every member.
  virtual std::shared_ptr<ProcessGroup> split(std::string name, std::vector<int> ranks) = 0;
  /// The group of the same members for messages that wait while the device computes, as a pipeline's do: it takes less
  /// of the device for them. Null where this group itself is as good. Called by every member.
  virtual std::shared_ptr<ProcessGroup> for_messages() { return nullptr; }
  /// Waits for what was begun, and lets go of what the backend holds. No collective may follow.
  virtual void shut_down() {}

 protected:
  /// This process's place in `ranks`; -1 where it is not among them.
  int place_in(const std::vector<int>& ranks) const;

 private:
  const std::string name_;
  const std::vector<int> ranks_;
  const int rank_;
};
using Group = std::shared_ptr<ProcessGroup>;

/// The group of all processes. Throws DistributedError unless init_process_group has made it.
Group world();
bool is_initialized();  // whether there is one

/// This process's rank in the group, from 0 on; -1 for null, which stands for a group that it is no member of.
int get_rank(const Group& group);
int get_rank();  // among all processes
/// The number of processes of the group; -1 for null.
int get_world_size(const Group& group);
int get_world_size();  // of all

/// The group of a name. Throws DistributedError where there is none.
Group group_named(std::string_view name);

namespace detail {
/// All groups, that of all processes first: empty without init_process_group.
std::vector<Group>& groups();
/// The ranks of a world of so many processes.
std::vector<int> ranks_of_world(int size);
/// Throws DistributedError, which begins with `who`, where the group is null.
void check_member(const char* who, const Group& group);
}  // namespace detail

}  // namespace rush::distributed
