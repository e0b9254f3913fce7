// FlightRecorder: what collectives this process has begun, for the case that one does not end.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/distributed/reduce_op.h"
#include "core/distributed/work.h"

namespace rush::distributed {

// Note [Collectives that differ]
// Processes whose collectives differ wait for each other until the time-out, or exchange the wrong bytes.
// docs/distributed.md, "Starting processes", says what tells them apart: on a time-out the file of this recorder, and
// in debug mode a comparison before each collective, which costs a small exchange that the host waits for.

/// A collective as one process has called it. What has no meaning for it is absent.
struct CollectiveRecord {
  uint64_t number = 0;         ///< among those of its group, from 1 on; sends and receives have 0
  std::string group;           ///< its name
  const char* name = "";       ///< "all_reduce"
  std::optional<ReduceOp> op;  ///< of a reduction
  int root = -1;               ///< the member that it goes to or comes from
  int64_t elements = -1;       ///< of a process, on which all agree
  std::optional<ScalarType> dtype;
  std::string caller;                           ///< where it is called; only in debug mode
  std::chrono::system_clock::time_point begun;  ///< when
  std::weak_ptr<Work> work;                     ///< gone once nobody waits for it

  /// "all_reduce of 15 elements of float32, sum": what all processes must agree on.
  std::string what() const;
};

class FlightRecorder {
 public:
  static constexpr size_t kMostRecords = 1000;

  /// Keeps the record, instead of the oldest where there are too many. From any thread.
  void add(CollectiveRecord record);
  /// The number that the group's next collective will have.
  uint64_t next_number(const std::string& group) const;
  /// From the oldest on.
  std::vector<CollectiveRecord> records() const;
  /// Writes them as JSON: a list of objects, each with "state", "completed" or "under way". Throws IOError.
  void write(const std::string& path) const;
  /// Forgets all.
  void clear();

 private:
  mutable std::mutex mutex_;
  std::deque<CollectiveRecord> records_;
  std::map<std::string, uint64_t> numbers_;  // of each group's last
};

/// This process's.
FlightRecorder& flight_recorder();

/// For backends, on a time-out: writes the records to rank_N.json in the folder RUSH_FLIGHT_RECORDER, or one in the
/// system's folder of temporary files, and returns a text that says where; or why it could not be done.
std::string dump_flight_recorder();

namespace detail {
/// Set by init_process_group: Note [Collectives that differ].
void set_debug(bool debug);
bool is_debug();
}  // namespace detail

}  // namespace rush::distributed
