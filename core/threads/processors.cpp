#include "core/threads/processors.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "core/threads/control_group.h"

#if __has_include(<sched.h>)
#include <sched.h>
#endif

namespace rush {

namespace {

int processors_to_run_on() {
#ifdef CPU_COUNT
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
#endif
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// Processors' time in a period of so many microseconds, as a number of processors; 0 where there is no limit: a file
// that is not there, version 2's "max 100000", version 1's -1.
double quota_in(const std::string& folder) {
  double quota = 0, period = 0;
  std::ifstream both(folder + "/cpu.max");
  if (both) {
    both >> quota >> period;
  } else {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

int available_processors(const std::string& root) {
  int processors = processors_to_run_on();
  for (const std::string& folder : control_group_folders("cpu", root)) {
    const double quota = quota_in(folder);
    if (quota > 0 && quota < processors) processors = static_cast<int>(std::ceil(quota));
  }
  return processors;
}

}  // namespace rush
