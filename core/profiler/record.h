// What a profile records: calls of operators, nodes of the backward pass, and ranges of the program's own.
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/dispatch/op.h"

namespace rush::profiler {

// Note [What a profile costs]
// While a profile records, every call carries the key Profiler (Note [Watching calls]); without one, calls do not know
// that there are profiles. The key's fallback makes a Scope on the stack of the call, which reads the clock twice and
// adds what it has seen to a list of its thread. A scope knows the one around it, to which it tells its own time, so
// that an event is complete when it is written down: full lists are added up, and given to the trace, while the program
// goes on. So memory does not grow with the number of steps.

enum class EventKind : uint8_t {
  Operator,
  Backward,
  Range,
  Step,
  Device,  // what a device did: a kernel, a copy
};

/// The range that a DataLoader's wait for its next batch is recorded as.
inline constexpr std::string_view kLoaderRange = "DataLoader";

/// One thing that took time, as the recording keeps it.
struct Event {
  std::string_view name;  // the operator's, or one that the recording keeps
  EventKind kind = EventKind::Operator;
  int8_t dtype = -1;                    // of an operator's first tensor
  uint32_t thread = 0;                  // its number in the recording
  int64_t begin = 0, end = 0;           // nanoseconds of std::chrono::steady_clock
  int64_t inner = 0;                    // nanoseconds of the events directly within
  int64_t sequence_nr = -1;             // of the node that the call made, or that is applied; of a step
  uint32_t number = 0;                  // of the event in the recording, from 1
  uint32_t path = 0;                    // Note [What a device did]; 0 without devices
  double flops = 0, flops_16 = 0;       // the second of numbers of 16 bits
  double bytes = 0;                     // of arguments and results
  const std::string* shapes = nullptr;  // of the arguments; kept by the recording
  const std::string* stack = nullptr;
};

namespace detail {
inline constinit std::atomic<uint64_t> recording{0};  // the number of the one that goes on
// In a child that was forked while a profile recorded: what devices do is the parent's to know.
inline constinit std::atomic<bool> devices_are_the_parents{false};
}  // namespace detail
/// Whether a profile records now.
inline bool is_recording() { return detail::recording.load(std::memory_order_relaxed) != 0; }

class Recording;
class ActivitySource;

// From its making to its end, an event of this thread; nothing while no profile records.
class Scope {
 public:
  // `name` returns the name, and is called only while a profile records.
  template <class Name>
  requires std::is_invocable_v<Name> Scope(EventKind kind, const Name& name, int64_t sequence_nr = -1) {
    if (RUSH_UNLIKELY(is_recording())) begin(kind, name(), sequence_nr);
  }
  ~Scope() {
    if (RUSH_UNLIKELY(recording_ != nullptr)) end();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  friend void observe_call(const OpBase& op, KeySet keys, Stack& stack);

  Scope(const OpBase& op, const Stack& arguments);
  void begin(EventKind kind, std::string_view name, int64_t sequence_nr);
  // Whether there is a recording that this thread takes part in.
  bool join();
  void open();
  // What the call's results tell.
  void see_results(const Stack& results);
  void end() noexcept;

  Recording* recording_ = nullptr;  // null: not recorded; it may end before the scope does
  uint64_t recording_id_ = 0;
  ActivitySource* devices_ = nullptr;  // which was told of the scope
  Scope* outer_ = nullptr;
  const OpBase* op_ = nullptr;
  double flops_per_result_ = 0;
  Event event_;
};

// The fallback of the key Profiler. A call is one event, at whichever keys it stops on its way.
void observe_call(const OpBase& op, KeySet keys, Stack& stack);

// What another tool's ranges begin and end with (NVTX's); null where there is none. Calls that a kernel of an
// accelerator serves are ranges, also ones that throw. Calls nest.
struct CallRanges {
  void (*begin)(std::string_view op) = nullptr;
  void (*end)() noexcept = nullptr;
};
inline constinit CallRanges call_ranges;

// The sequence number of the node that made the tensor; -1 where none did. Set by autograd.
using SequenceNr = int64_t (*)(const Tensor& tensor);
inline constinit SequenceNr sequence_nr_of = nullptr;

/// Sets observe_call as the fallback of the key Profiler.
void register_profiler(Registry& registry);

}  // namespace rush::profiler

namespace rush {

/// Names what happens until the end of the scope in profiles, and in Nsight's timelines under RUSH_NVTX=1.
/// torch.profiler.record_function.
///
///   const rush::record_function range("data");
class record_function {
 public:
  explicit record_function(std::string_view name);
  ~record_function();
  record_function(const record_function&) = delete;
  record_function& operator=(const record_function&) = delete;

 private:
  const bool is_marked_;
  const profiler::Scope scope_;
};

}  // namespace rush
