// Profile: where a program's time goes, operator by operator.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/memory/memory_use.h"
#include "core/profiler/advice.h"
#include "core/profiler/record.h"

namespace rush::profiler {

/// Which steps of a program a profile records: after `skip_first`, again and again `wait` steps that are not, `warmup`
/// that are and are forgotten, and `active`; `repeat` times, or without end where that is 0. torch.profiler.schedule.
struct Schedule {
  int64_t wait = 0, warmup = 0, active = 1, repeat = 0, skip_first = 0;

  enum class Action : uint8_t { None, Warmup, Record, RecordAndSave };
  /// Of step `step`, from 0.
  Action at(int64_t step) const;
};

/// Everything that was recorded under one name (and of one shape, and from one place).
struct Average {
  std::string name;
  EventKind kind = EventKind::Operator;
  std::string shapes, stack;  // empty unless they were recorded and grouped by
  int64_t count = 0;
  double cpu_time_total = 0;       // microseconds
  double self_cpu_time_total = 0;  // without the events within
  // Multiplications and additions, each one, those of 16-bit numbers again, and the bytes of arguments and results:
  // with `with_flops`.
  double flops = 0, flops_16 = 0, bytes = 0;
  // Of devices: what the calls started, and where the host waited for it. A row of kind Device is a kernel or copy.
  double device_time_total = 0, self_device_time_total = 0;
  double self_wait_time_total = 0;

  double cpu_time_avg() const { return cpu_time_total / static_cast<double>(count); }  // of one call
};

/// torch.profiler's key_averages().
class KeyAverages : public std::vector<Average> {
 public:
  /// As text, with PyTorch's columns. `sort_by` is "self_cpu_time_total", "cpu_time_total", "cpu_time_avg",
  /// "self_device_time_total", "device_time_total", "count", "flops", or "none" for the order of the names. Empty is
  /// the device's own time where there is any, else the CPU's. Throws ValueError for another.
  std::string table(std::string_view sort_by = {}, size_t row_limit = 100, size_t max_name_width = 55) const;
  /// Null where nothing of that name was recorded.
  const Average* find(std::string_view name) const;

  std::string device = "device";  // the type of the devices, "CUDA"
};

/// When most memory was in use, of the moments at which operators returned.
struct MemoryPeak {
  MemoryUses uses;
  Device device;
  std::string op;  // that returned; empty: none was seen

  /// "aten::mm, with 1.20 GiB in use on cpu: activations 800.00 MiB, ...".
  std::string text() const;
};

class Profile;

/// What a Profile records beside the times, and where it writes them.
struct ProfileOptions {
  bool record_shapes = false;  // of the tensors that operators are given
  bool with_stack = false;     // the functions of the program that called; tens of microseconds a call
  // Of products, convolutions, attention, additions and multiplications; and the bytes of all tensors. See roofline.h.
  bool with_flops = false;
  // What memory is in use for as each operator returns: Profile::memory_peak(), and a counter of the trace.
  bool profile_memory = false;
  bool with_devices = true;  // what accelerators do: kernels, copies, waits for them
  /// Without one, everything from the profile's making to its end.
  std::optional<Schedule> schedule = std::nullopt;
  /// Called at the end of each `active`, in step() or stop().
  std::function<void(Profile&)> on_trace_ready = nullptr;
  /// A file that the trace is written to while it is recorded, see Profile::export_chrome_trace.
  std::string trace = {};
  /// How many events are kept for a trace, or written to its file; averages count those beyond it, too.
  int64_t max_events = int64_t{1} << 20;
};

/// Records what all threads do until stop(), or its end. There is one at a time: a second throws Error.
/// torch.profiler.profile.
///
///   rush::profiler::Profile profile({.record_shapes = true});
///   for (...) {
///     train_step();
///     profile.step();
///   }
///   profile.stop();
///   std::cout << profile.key_averages().table();
///   profile.export_chrome_trace("trace.json.gz");
class Profile {
 public:
  /// Throws IOError when `trace` cannot be written.
  explicit Profile(ProfileOptions options = {});
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// The next step begins. See Schedule.
  void step();
  /// Ends the recording. Throws IOError when its trace could not be written.
  void stop();

  /// What was recorded last, or so far: the sums over all calls of a name.
  KeyAverages key_averages(bool group_by_input_shape = false, bool group_by_stack = false) const;
  /// Of the device whose tensors took most, with `profile_memory`.
  MemoryPeak memory_peak() const;
  /// What bounded the program, and what to try. See Note [What advice goes by].
  std::vector<Advice> advice() const;
  /// Writes what was recorded last as JSON that Perfetto and chrome://tracing show, in the schema of PyTorch's traces;
  /// gzipped where `path` ends with ".gz". Throws IOError.
  void export_chrome_trace(const std::string& path) const;
  /// Whether its trace goes to a file while it records.
  bool has_trace() const { return !options_.trace.empty(); }
  /// How many events came after `max_events`, and are in no trace.
  int64_t dropped_events() const;

 private:
  void begin_step();
  void end_recording();

  const ProfileOptions options_;
  std::shared_ptr<Recording> recording_;  // the last one
  std::optional<Scope> step_scope_;
  int64_t step_ = 0;
  bool records_ = false, stopped_ = false;
};

}  // namespace rush::profiler
