// What a profile has recorded so far, and the lists of threads that add to it.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "core/profiler/profiler.h"
#include "core/profiler/trace_writer.h"

namespace rush::profiler {

// The events of a thread that are not yet added up.
struct ThreadLog {
  std::mutex mutex;
  uint64_t recording = 0;  // which they belong to; 0 once it has ended
  uint32_t number = 0;     // of the thread in the recording
  std::vector<Event> events;
};

class Recording {
 public:
  explicit Recording(const ProfileOptions& options);

  const uint64_t id;  // no two have the same
  // False in a child that was forked meanwhile, where other threads may have held its locks, and its trace is the
  // parent's: there it is left alone.
  bool is_of_this_process() const;
  const bool record_shapes, with_stack, with_flops;

  // Text that lives as long as the recording, once however often it is asked for.
  const std::string* keep(std::string_view text);
  // A number for the thread that calls.
  uint32_t add_thread(const std::shared_ptr<ThreadLog>& log);
  // Adds the events up, and empties the list. What there is no memory for is dropped.
  void take(std::vector<Event>& events) noexcept;
  // Takes what all threads have, from which nothing comes any more. Throws IOError when the trace could not be written.
  void finish();
  // Frees what was recorded: threads may keep the object.
  void forget();

  KeyAverages averages(bool by_shapes, bool by_stack) const;
  void write_trace(TraceWriter& writer) const;
  int64_t dropped() const;

 private:
  using Key = std::tuple<std::string_view, EventKind, const std::string*, const std::string*>;
  struct Sums {
    int64_t count = 0, total = 0, inner = 0;
    double flops = 0;
  };
  void add(const Event& event);

  const int64_t process_;
  mutable std::mutex mutex_;  // of all below
  std::unordered_set<std::string> texts_;
  std::vector<std::shared_ptr<ThreadLog>> logs_;
  std::vector<int64_t> thread_ids_;  // the system's
  std::map<Key, Sums> sums_;
  std::vector<Event> events_;
  const size_t max_events_;
  size_t written_ = 0;
  int64_t dropped_ = 0;
  std::unique_ptr<TraceWriter> trace_;
  std::string trouble_;  // why the trace could not be written
};

// The one that records now; null without any.
std::shared_ptr<Recording> current_recording();
// Throws Error where there is one.
void check_none_records();
void begin_recording(const std::shared_ptr<Recording>& recording);
// Does nothing where another one records.
void end_recording(const std::shared_ptr<Recording>& recording);

}  // namespace rush::profiler
