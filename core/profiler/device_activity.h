// What a device does while a profile records, as its backend tells.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rush::profiler {

// Note [What a device did]
// A profile asks the backend of an accelerator for its ActivitySource, which reports kernels, copies and sets with the
// device's own times, and the calls of the device's runtime that started them or waited for them. To know whose they
// are, a scope that is recorded enters a label before its work and leaves it afterwards: what this thread starts
// meanwhile, a replayed graph's kernels included, comes back with the label. The label has two halves: the number of
// the call in the trace, and the path of the call, which is the operator and those around it. Paths are few, however
// many calls there are, and it is they that times are added up by.

enum class ActivityKind : uint8_t {
  Kernel,
  Copy,
  Set,
  Launch,   // a call of the device's runtime that starts one of these
  Wait,     // one that waits for them, on the host
  Runtime,  // another call of the runtime
};
/// Whether it took the device's time.
constexpr bool is_on_device(ActivityKind kind) { return kind <= ActivityKind::Set; }

struct Activity {
  ActivityKind kind = ActivityKind::Kernel;
  std::string_view name;       // valid while it is reported
  const char* category = "";   // in traces
  int64_t begin = 0, end = 0;  // nanoseconds of std::chrono::steady_clock
  uint64_t label = 0;          // 0: outside of all scopes
  uint32_t correlation = 0;    // the same for a call of the runtime and for what it started
  uint32_t thread = 0;         // the system's number, of calls of the runtime
  int32_t device = 0;
  uint32_t stream = 0;
  uint64_t bytes = 0;        // that are copied or set
  bool is_pageable = false;  // a copy from or to memory of the host that is not pinned
  uint64_t graph_node = 0;   // within the replay of a graph, else 0
  std::array<int32_t, 3> grid{}, block{};
  uint32_t registers = 0, shared_memory = 0;  // of a thread; bytes of a block
};

// What times of events and activities count in.
inline int64_t steady_now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What an instrument of a device shows.
struct Counter {
  const char* name = "";  // with the unit: "power (W)"
  double value = 0;
};

constexpr uint64_t label_of(uint32_t path, uint32_t number) { return uint64_t{path} << 32 | number; }
constexpr uint32_t path_of(uint64_t label) { return static_cast<uint32_t>(label >> 32); }
constexpr uint32_t number_of(uint64_t label) { return static_cast<uint32_t>(label); }

/// Takes what is reported, from any thread.
class ActivitySink {
 public:
  virtual void take(std::span<const Activity> activities) noexcept = 0;

 protected:
  ~ActivitySink() = default;
};

class ActivitySource {
 public:
  virtual ~ActivitySource() = default;
  /// Everything from now on goes to `sink`.
  virtual void start(ActivitySink& sink) = 0;
  /// What this thread starts belongs to `label` until the leave() that belongs to it. They nest.
  virtual void enter(uint64_t label) = 0;
  virtual void leave() noexcept = 0;
  /// Waits for the devices, reports what is left, and forgets the sink.
  virtual void stop() = 0;
  /// What the device's instruments show now; none where it has none. Called from a thread of its own.
  virtual std::vector<Counter> counters(int /*device*/) { return {}; }
};

}  // namespace rush::profiler
