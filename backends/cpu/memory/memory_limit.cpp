#include "backends/cpu/memory/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

#include "core/threads/control_group.h"

namespace rush::cpu {

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// The number at the start of a file, kNoLimit where there is none: version 2 writes "max".
int64_t limit_in(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  file >> text;
  int64_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  return error == std::errc() && end != text.data() && limit > 0 ? limit : kNoLimit;
}

// "MemTotal:  24000 kB"
int64_t machine_memory(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string name, rest; file >> name; std::getline(file, rest)) {
    int64_t kilobytes = 0;
    if (name == "MemTotal:" && file >> kilobytes) return kilobytes * 1024;
  }
  return kNoLimit;
}

int64_t control_group_limit(const std::string& root) {
  int64_t limit = kNoLimit;
  for (const std::string& folder : control_group_folders("memory", root)) {
    limit = std::min({limit, limit_in(folder + "/memory.max"), limit_in(folder + "/memory.limit_in_bytes")});
  }
  return limit;
}

int64_t resource_limit(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur > static_cast<rlim_t>(kNoLimit)) return kNoLimit;
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

int64_t find_memory_limit(const std::string& root) {
  return std::min(
      {machine_memory(root), control_group_limit(root), resource_limit(RLIMIT_AS), resource_limit(RLIMIT_DATA)});
}

}  // namespace rush::cpu
