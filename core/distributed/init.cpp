#include "core/distributed/init.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/dispatch/registry.h"
#include "core/distributed/environment.h"
#include "core/distributed/fake.h"
#include "core/distributed/flight_recorder.h"
#include "core/distributed/terminate_handler.h"
#include "core/environment_flag.h"

namespace rush::distributed {

namespace {

// Those of the library's own rooms as well, which the first use of the registry adds.
const auto& joined_backends() {
  registry();
  return detail::registered_backends();
}

std::string names_of_backends() {
  std::string names = "mpi, fake";
  for (const auto& [name, make] : joined_backends()) names += ", " + name;
  return names;
}

}  // namespace

void init_process_group(std::string_view backend, const InitOptions& options) {
  RUSH_CHECK_DISTRIBUTED(!is_initialized(),
                         "init_process_group: there is a process group already; destroy_process_group ends it");
  constexpr int64_t kMostBytes = std::numeric_limits<int>::max();  // MPI counts in ints
  constexpr std::chrono::hours kLongest{24 * 365 * 100};           // fits the clock's nanoseconds
  RUSH_CHECK_VALUE(options.message_bytes > 0 && options.message_bytes <= kMostBytes,
                   "init_process_group: message_bytes is ", options.message_bytes, ", expected 1 to ", kMostBytes);
  const std::chrono::milliseconds timeout =
      options.timeout.value_or(std::chrono::seconds(read_environment().timeout_seconds.value_or(30 * 60)));
  RUSH_CHECK_VALUE(timeout.count() > 0 && timeout <= kLongest, "init_process_group: the timeout is ", timeout.count(),
                   " ms, expected 1 ms to a hundred years");
  InitOptions resolved = options;
  resolved.timeout = timeout;
  detail::set_debug(options.debug || environment_flag("RUSH_DISTRIBUTED_DEBUG"));
  if (backend == "mpi") {
    detail::groups().push_back(detail::make_mpi_group(resolved));
  } else if (backend == "fake") {
    detail::groups().push_back(make_fake_group(options.rank, options.world_size));
  } else {
    const auto found = joined_backends().find(backend);
    RUSH_CHECK_VALUE(found != joined_backends().end(), "init_process_group: there is no backend '",
                     std::string(backend), "'; expected one of ", names_of_backends());
    const bool has_control = detail::has_mpi() && read_environment().started_by_mpi;
    detail::groups().push_back(found->second(resolved, has_control ? detail::make_mpi_group(resolved) : nullptr));
  }
  if (backend != "fake" && world()->size() > 1) detail::install_terminate_handler(world()->rank(), world()->size());
}

bool is_backend_available(std::string_view backend) {
  return backend == "fake" || (backend == "mpi" ? detail::has_mpi() : joined_backends().contains(backend));
}

void destroy_process_group() {
  world();
  const std::vector<Group> ended = std::exchange(detail::groups(), {});
  flight_recorder().clear();
  for (auto group = ended.rbegin(); group != ended.rend(); ++group) (*group)->shut_down();
}

bool is_mpi_available() { return detail::has_mpi(); }

Group new_group(const std::vector<int>& ranks) {
  const Group all = world();
  RUSH_CHECK_VALUE(!ranks.empty(), "new_group: there is no rank in the list");
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    RUSH_CHECK_VALUE(sorted[i] >= 0 && sorted[i] < all->size(), "new_group: expected ranks from 0 to ", all->size() - 1,
                     ", got ", sorted[i]);
    RUSH_CHECK_VALUE(i == 0 || sorted[i] != sorted[i - 1], "new_group: rank ", sorted[i], " is there twice");
  }
  static int made = 0;  // the same on all processes, members or not
  Group group = all->split(str(++made), sorted);
  if (group) detail::groups().push_back(group);
  return group;
}

}  // namespace rush::distributed
