#include "core/profiler/profiled_program.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "core/distributed/environment.h"
#include "core/profiler/profiler.h"
#include "core/str.h"

namespace rush::profiler {

namespace {

constexpr size_t kRows = 20;
constexpr int64_t kMostEvents = 2'000'000;  // some 30 MB as a gzipped trace

Profile* profile = nullptr;  // never destroyed: threads may outlive the static variables
pid_t profiled_process = 0;

// Of the processes that a launcher has started together; none where there is one.
std::optional<int> rank_of_several() {
  const distributed::Environment environment = distributed::read_environment();
  return environment.world_size.value_or(1) > 1 ? environment.rank : std::nullopt;
}

// "trace.json.gz" for one process, "trace.rank1.json.gz" for one of several.
std::string trace_file(std::string path, std::optional<int> rank) {
  if (path.empty() || !rank) return path;
  size_t at = path.find(".json", path.rfind('/') + 1);  // in the file's name; npos + 1 is its beginning
  if (at == path.npos) at = path.size() - (path.ends_with(".gz") ? 3 : 0);
  return path.insert(at, str(".rank", *rank));
}

void report() {
  if (getpid() != profiled_process) return;
  std::string text;
  try {
    if (const std::optional<int> rank = rank_of_several()) text = str("The profile of rank ", *rank, ":\n");
    profile->stop();
  } catch (const std::exception& error) {
    text += str("profile: ", error.what(), '\n');
  }
  text += profile->key_averages().table({}, kRows) + to_text(profile->advice());
  const MemoryPeak peak = profile->memory_peak();
  if (!peak.op.empty()) text += str("Most memory was in use after ", peak.text(), '\n');
  const int64_t dropped = profile->dropped_events();
  if (dropped > 0 && profile->has_trace()) text += str("The trace lacks the last ", dropped, " events.\n");
  std::fputs(text.c_str(), stderr);  // at once: other processes may write theirs
}

}  // namespace

void profile_if_asked() {
  const char* path = std::getenv("RUSH_PROFILE");
  if (!path) return;
  try {
    const std::string trace = trace_file(path, rank_of_several());
    profile = new Profile({.profile_memory = true, .trace = trace, .max_events = *path ? kMostEvents : 0});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "profile: %s\n", error.what());
    return;
  }
  profiled_process = getpid();
  if (std::atexit(report) != 0) std::fputs("profile: there is no room for a report at the end\n", stderr);
}

}  // namespace rush::profiler
