#include "core/profiler/profiled_program.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/profiler/profiler.h"

namespace rush::profiler {

namespace {

constexpr size_t kRows = 20;
constexpr int64_t kMostEvents = 2'000'000;  // some 30 MB as a gzipped trace

Profile* profile = nullptr;  // never destroyed: threads may outlive the static variables
pid_t profiled_process = 0;

void report() {
  if (getpid() != profiled_process) return;
  try {
    profile->stop();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "profile: %s\n", error.what());
  }
  std::fputs(profile->key_averages().table({}, kRows).c_str(), stderr);
  std::fputs(to_text(profile->advice()).c_str(), stderr);
  const MemoryPeak peak = profile->memory_peak();
  if (!peak.op.empty()) std::fprintf(stderr, "Most memory was in use after %s\n", peak.text().c_str());
  const int64_t dropped = profile->dropped_events();
  if (dropped > 0 && profile->has_trace()) {
    std::fprintf(stderr, "The trace lacks the last %lld events.\n", static_cast<long long>(dropped));
  }
}

}  // namespace

void profile_if_asked() {
  const char* path = std::getenv("RUSH_PROFILE");
  if (!path) return;
  try {
    profile = new Profile({.profile_memory = true, .trace = path, .max_events = *path ? kMostEvents : 0});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "profile: %s\n", error.what());
    return;
  }
  profiled_process = getpid();
  if (std::atexit(report) != 0) std::fputs("profile: there is no room for a report at the end\n", stderr);
}

}  // namespace rush::profiler
