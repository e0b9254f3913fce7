// How processes become a group: init_process_group, new_group, and who is who.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/distributed/process_group.h"

namespace rush::distributed {

/// For init_process_group.
struct InitOptions {
  /// Of the fake backend; where they are not given, they come from the environment, and are 0 and 1 without one.
  std::optional<int> rank, world_size;
  /// How long a collective waits for the other processes, once it has begun. It then throws DistributedError, and the
  /// group cannot be used any more. Where it is not given, RUSH_DISTRIBUTED_TIMEOUT in the environment says so many
  /// seconds; half an hour without one.
  std::optional<std::chrono::milliseconds> timeout;
  /// The longest message, in bytes; longer ones are sent in several. MPI counts in ints.
  int64_t message_bytes = int64_t{1} << 30;
  /// Whether processes compare their collectives before they begin, and name those that differ; also where
  /// RUSH_DISTRIBUTED_DEBUG is 1. See Note [Collectives that differ].
  bool debug = false;
};

/// Makes the group of all processes. Each calls it, once, before any collective.
///   "mpi"   the processes that mpirun, `./rush launch` or srun has started; for tensors on the CPU: those on other
///           devices are copied there and back
///   "nccl"  those, or the ones that torchrun has started; for tensors on GPUs, where the library was built with CUDA.
///           Each has a GPU of its own, number LOCAL_RANK, which becomes its current device
///   "fake"  a dry run on one process of a world of any size: nothing is sent, see core/distributed/fake.h
/// Throws ValueError for another backend; DistributedError where there is a group already, the library was built
/// without MPI, the process was not started by MPI, or variables of the environment contradict what MPI says; and what
/// other backends throw. From then on an uncaught exception is printed with the rank.
/// torch.distributed.init_process_group.
void init_process_group(std::string_view backend, const InitOptions& options = {});

/// Ends all groups, after what they were doing: no thread and no connection of theirs is left. MPI cannot be started
/// again in the same process. Every process calls it. Throws DistributedError where there is no group.
void destroy_process_group();

bool is_mpi_available();                              // whether the library was built with MPI
bool is_backend_available(std::string_view backend);  // whether init_process_group knows it

/// Makes a backend's group of all processes. `control` has the same processes where MPI has started them, and may carry
/// what the backend needs to find them; it is null otherwise.
using GroupFactory = std::function<Group(const InitOptions& options, const Group& control)>;
/// Has init_process_group know one more backend. Throws ValueError for a name that it knows already.
/// torch.distributed.Backend.register_backend.
void register_backend(std::string name, GroupFactory make);

/// A group of some processes, by their ranks among all; null on those that are not members. Every process calls it,
/// also those, with the same ranks. Throws ValueError for no rank, one that is out of range, or one that is there
/// twice.
Group new_group(const std::vector<int>& ranks);

namespace detail {
/// Both are defined by the backend for MPI, or by what stands for it where the library was built without.
Group make_mpi_group(const InitOptions& options);
bool has_mpi();
/// Those of register_backend.
std::map<std::string, GroupFactory, std::less<>>& registered_backends();
}  // namespace detail

}  // namespace rush::distributed
