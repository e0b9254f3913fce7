// Traces as JSON, for Perfetto, chrome://tracing and Holistic Trace Analysis.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/profiler/device_activity.h"
#include "core/profiler/record.h"

namespace rush::profiler {

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
};

}  // namespace rush::profiler
