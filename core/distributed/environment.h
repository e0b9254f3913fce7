// What the launcher of this process says about it in environment variables: its rank, and how many processes there are.
#pragma once
#include <optional>
#include <string>
#include <utility>

namespace rush::distributed {

/// Of this process. What no variable says is not there.
struct Environment {
  std::string launcher;                             // "torchrun", "Open MPI", "PMIx", "PMI" or "Slurm"; empty for none
  std::optional<int> rank, world_size;              // of all processes
  std::optional<int> local_rank, local_world_size;  // of those on this machine
  std::optional<std::string> master_addr;           // where the process of rank 0 runs
  std::optional<int> master_port;
  std::optional<int> timeout_seconds;  // RUSH_DISTRIBUTED_TIMEOUT: how long collectives wait for other processes
  bool started_by_mpi = false;         // mpirun, or srun with PMI or PMIx: MPI finds the other processes

  /// The rank and the number of processes as given, else as here, else 0 and 1. Throws ValueError unless the rank is
  /// from 0 on and below the number.
  std::pair<int, int> place(std::optional<int> given_rank, std::optional<int> given_size) const;
};

/// Reads torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), else those of
/// the first of Open MPI (OMPI_COMM_WORLD_...), PMIx, PMI and Slurm that names a rank. Throws DistributedError, which
/// names the variable, for what is no number, a rank that is not below the number of processes, and a port that is
/// none.
Environment read_environment();

}  // namespace rush::distributed
