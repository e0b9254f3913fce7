#include "examples/process_age.h"

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>

namespace examples {
namespace {

const auto static_variables_made = std::chrono::steady_clock::now();

// When this process was started, in seconds since the machine was; negative where that is not known. proc(5): the 22nd
// field of stat, 20 behind the name, which stands in parentheses and may hold anything.
double start_since_boot() {
  std::ifstream file("/proc/self/stat");
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = all.rfind(')');
  if (name_end == all.npos) return -1;
  std::istringstream fields(all.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;  // fields 3 to 22
  const long ticks = ::sysconf(_SC_CLK_TCK);
  return fields && ticks > 0 ? std::stod(field) / static_cast<double>(ticks) : -1;
}

}  // namespace

double process_age() {
#ifdef CLOCK_BOOTTIME
  timespec now{};
  const double start = start_since_boot();
  if (start >= 0 && ::clock_gettime(CLOCK_BOOTTIME, &now) == 0) {
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - start;
  }
#endif
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - static_variables_made).count();
}

}  // namespace examples
