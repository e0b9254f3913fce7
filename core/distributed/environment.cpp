#include "core/distributed/environment.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "core/distributed/distributed_error.h"

namespace rush::distributed {

namespace {

// The variables of one launcher; null where it has none of that meaning.
struct Launcher {
  const char *name, *rank, *world_size, *local_rank, *local_world_size;
  bool is_mpi;
};

// An allocation of Slurm's may hold an mpirun, whose processes have both: so Slurm comes last.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    {"PMIx", "PMIX_RANK", nullptr, "SLURM_LOCALID", nullptr, true},  // srun's, which tells local ranks in its own name
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, false},
};

std::optional<int> read_number(const char* variable, int least, int most) {
  const char* value = variable ? std::getenv(variable) : nullptr;
  if (!value) return std::nullopt;
  const std::string_view text(value);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  RUSH_CHECK_DISTRIBUTED(error == std::errc() && end == text.data() + text.size(), "the environment variable ",
                         variable, " is '", text, "', which is no whole number");
  RUSH_CHECK_DISTRIBUTED(number >= least && number <= most, "the environment variable ", variable, " is ", number,
                         ", expected a number from ", least, " to ", most);
  return number;
}

void check_below(const char* rank_name, std::optional<int> rank, const char* size_name, std::optional<int> size) {
  RUSH_CHECK_DISTRIBUTED(!rank || !size || *rank < *size, "the environment variable ", rank_name, " is ", *rank,
                         ", expected a rank below ", size_name, ", which is ", *size);
}

}  // namespace

std::pair<int, int> Environment::place(std::optional<int> given_rank, std::optional<int> given_size) const {
  const int own = given_rank.value_or(rank.value_or(0)), size = given_size.value_or(world_size.value_or(1));
  RUSH_CHECK_VALUE(own >= 0 && own < size, "init_process_group: expected a rank from 0 to ", size - 1, ", got ", own,
                   " of ", size);
  return {own, size};
}

Environment read_environment() {
  constexpr int kMost = 1 << 30;
  Environment environment;
  for (const Launcher& launcher : kLaunchers) {
    const std::optional<int> rank = read_number(launcher.rank, 0, kMost);
    if (!rank) continue;
    environment.started_by_mpi |= launcher.is_mpi;
    if (environment.rank) continue;
    environment.launcher = launcher.name;
    environment.rank = rank;
    environment.world_size = read_number(launcher.world_size, 1, kMost);
    environment.local_rank = read_number(launcher.local_rank, 0, kMost);
    environment.local_world_size = read_number(launcher.local_world_size, 1, kMost);
    check_below(launcher.rank, rank, launcher.world_size, environment.world_size);
    check_below(launcher.local_rank, environment.local_rank, launcher.local_world_size, environment.local_world_size);
  }
  if (!environment.rank) environment.world_size = read_number(kLaunchers[0].world_size, 1, kMost);
  if (const char* address = std::getenv("MASTER_ADDR")) environment.master_addr = address;
  environment.master_port = read_number("MASTER_PORT", 1, 65535);
  environment.timeout_seconds = read_number("RUSH_DISTRIBUTED_TIMEOUT", 1, kMost);
  return environment;
}

}  // namespace rush::distributed
