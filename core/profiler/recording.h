// What a profile has recorded so far, and the lists of threads that add to it.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/profiler/busy_time.h"
#include "core/profiler/device_activity.h"
#include "core/profiler/facts.h"
#include "core/profiler/profiler.h"
#include "core/profiler/trace_writer.h"
#include "core/threads/thread.h"

namespace rush::profiler {

// The events of a thread that are not yet added up.
struct ThreadLog {
  std::mutex mutex;
  uint64_t recording = 0;  // which they belong to; 0 once it has ended
  uint32_t number = 0;     // of the thread in the recording
  std::vector<Event> events;
};

// What events are added up by. Texts are the recording's, or operators', one address each: while it records, keys are
// compared by addresses; in the end their order is that of the texts.
struct EventKey {
  std::string_view name;
  EventKind kind = EventKind::Operator;
  int8_t dtype = -1;
  const std::string* shapes = nullptr;
  const std::string* stack = nullptr;
  auto operator<=>(const EventKey&) const = default;

  bool is(const EventKey& other) const {
    return name.data() == other.name.data() && kind == other.kind && dtype == other.dtype && shapes == other.shapes &&
           stack == other.stack;
  }
  size_t hash() const {
    size_t hash = static_cast<size_t>(dtype + 1);
    for (const void* part :
         {static_cast<const void*>(name.data()), static_cast<const void*>(shapes), static_cast<const void*>(stack)}) {
      hash = hash * 0x9E3779B97F4A7C15 + std::hash<const void*>()(part);
    }
    return hash;
  }
};

// An operator within others; 0 is the path outside of all.
struct CallPath {
  uint32_t outer = 0;
  EventKey key;

  bool is(const CallPath& other) const { return outer == other.outer && key.is(other.key); }
  size_t hash() const { return key.hash() * 64 + outer; }
};

struct HashByAddress {
  size_t operator()(const auto& key) const { return key.hash(); }
};
struct SameAddresses {
  bool operator()(const auto& a, const auto& b) const { return a.is(b); }
};
template <class Key, class T>
using MapByAddress = std::unordered_map<Key, T, HashByAddress, SameAddresses>;
using CallPaths = MapByAddress<CallPath, uint32_t>;

class Recording final : private ActivitySink {
 public:
  explicit Recording(const ProfileOptions& options);

  const uint64_t id;  // no two have the same
  // False in a child that was forked meanwhile, where other threads may have held its locks, and its trace is the
  // parent's: there it is left alone.
  bool is_of_this_process() const;
  const bool record_shapes, with_stack, with_flops, profile_memory;
  DeviceType device_type = kCPU;  // of `devices`
  ActivitySource* const devices;  // null: they are not recorded

  // Text that lives as long as the recording, once however often it is asked for.
  const std::string* keep(std::string_view text);
  uint32_t next_number() { return numbers_.fetch_add(1, std::memory_order_relaxed) + 1; }
  // Of a path that was not asked for before, the next.
  uint32_t number_of(const CallPath& path);
  // Begins to record what devices do; what finish() ends.
  void start_devices();
  // A number for the thread that calls.
  uint32_t add_thread(const std::shared_ptr<ThreadLog>& log);
  // Adds the events up, and empties the list. What there is no memory for is dropped.
  void take(std::vector<Event>& events) noexcept;
  // What memory is used for on the device, as `op` returns.
  void see_memory(std::string_view op, Device device) noexcept;
  // Takes what all threads have, from which nothing comes any more. Throws IOError when the trace could not be written.
  void finish();
  // Frees what was recorded: threads may keep the object.
  void forget();

  KeyAverages averages(bool by_shapes, bool by_stack) const;
  Facts facts() const;
  MemoryPeak memory_peak() const;
  void write_trace(TraceWriter& writer) const;
  int64_t dropped() const;

 private:
  struct Sums {
    int64_t count = 0, total = 0, inner = 0;
    double flops = 0, flops_16 = 0, bytes = 0;
  };
  // What devices did for calls on a path, without those within.
  struct PathSums {
    CallPath path;
    int64_t device = 0, wait = 0, waits = 0;
  };
  void add(const Event& event);
  void take(std::span<const Activity> activities) noexcept override;
  void add(const Activity& activity);
  void add(const MemorySample& sample);
  void add(const CounterSample& sample);
  template <class Item>
  void keep_or_write(std::vector<Item>& kept, const Item& item);
  // Reads the devices' instruments until the recording ends, from a thread of its own.
  void read_counters();
  template <class Item>
  void add_all(std::span<const Item> items) noexcept;
  bool is_small(const Activity& kernel) const;
  // Whether there is room for another event in the trace.
  bool has_room();
  const std::string* keep_locked(std::string_view text);

  const int64_t process_;
  mutable std::mutex mutex_;  // of all below
  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_set<std::string, TextHash, std::equal_to<>> texts_;
  std::vector<std::shared_ptr<ThreadLog>> logs_;
  std::vector<int64_t> thread_ids_;  // the system's
  MapByAddress<EventKey, Sums> sums_;
  std::vector<Event> events_;
  std::vector<Activity> activities_;
  std::vector<MemorySample> memory_;
  std::vector<CounterSample> counters_;
  std::map<std::pair<DeviceType, int>, int64_t> memory_now_;  // the last sample's sum, of each device
  MemoryPeak peak_;
  std::atomic<uint32_t> numbers_{0};
  CallPaths path_numbers_;
  std::vector<PathSums> paths_;
  std::map<int32_t, BusyTime> busy_;              // of devices
  int64_t pageable_ = 0, small_ = 0;              // as in Facts
  std::vector<int64_t> multiprocessors_;          // of each device
  int64_t first_ = INT64_MAX, last_ = INT64_MIN;  // of the times of events and activities
  bool devices_run_ = false;
  const size_t max_events_;
  size_t written_ = 0;
  int64_t dropped_ = 0;
  std::unique_ptr<TraceWriter> trace_;
  std::string trouble_;  // why the trace could not be written
  rush::detail::Condition ended_;
  bool has_ended_ = false;
  rush::detail::Thread reading_counters_;
};

// The one that records now; null without any.
std::shared_ptr<Recording> current_recording();
// Throws Error where there is one.
void check_none_records();
void begin_recording(const std::shared_ptr<Recording>& recording);
// Does nothing where another one records.
void end_recording(const std::shared_ptr<Recording>& recording);

}  // namespace rush::profiler
