// Traces as JSON, for Perfetto, chrome://tracing and Holistic Trace Analysis.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/memory/memory_use.h"
#include "core/profiler/device_activity.h"
#include "core/profiler/record.h"

namespace rush::profiler {

// What memory was in use for, in nanoseconds of std::chrono::steady_clock.
struct MemorySample {
  int64_t time = 0;
  Device device;
  MemoryUses uses;
  std::string_view op;  // that returned; an operator's own name
};

// What an instrument of a device showed.
struct CounterSample {
  int64_t time = 0;
  int device = 0;
  Counter counter;
};

class TraceWriter {
 public:
  /// Throws IOError. Gzipped where `path` ends with ".gz".
  explicit TraceWriter(std::string path);
  /// In a forked child it leaves the file to the parent.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;

  /// Each throws IOError (disk full, ...). `thread` is the system's number of the event's thread.
  void add(const Event& event, int64_t thread);
  void add(const Activity& activity);
  void add(const MemorySample& sample);
  void add(const CounterSample& sample);
  void finish();

 private:
  void write(const std::string& text);
  void add_arrow(const Event& event, int64_t thread);
  void introduce(int32_t device, uint32_t stream);

  struct Closer {
    void operator()(void* file) const;
  };
  const std::string path_;
  const int64_t process_;
  std::unique_ptr<void, Closer> file_;                 // zlib's
  std::set<std::pair<int32_t, uint32_t>> introduced_;  // devices and their streams
  std::map<int64_t, int64_t> newest_nodes_;            // by thread, the last that an arrow begins at
};

}  // namespace rush::profiler
