#include "core/profiler/recording.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ranges>
#include <utility>

#include "core/device/backend.h"
#include "core/print/stream_output.h"

namespace rush::profiler {

namespace {

std::mutex current_mutex;
// Never destroyed: threads may end after the static variables do.
std::shared_ptr<Recording>& current = *new std::shared_ptr<Recording>;

void set_watching(KeySet& watchers, bool on) {
  const std::atomic_ref keys(watchers);
  keys.store(on ? keys.load() | DispatchKey::Profiler : keys.load().without(DispatchKey::Profiler));
}
void start() {
  // Another tool's ranges are those of kernels, at a call's last stop.
  set_watching(watching_once, !call_ranges.begin);
  set_watching(watching, true);
}
void stop() {
  detail::recording.store(0);
  if (!call_ranges.begin) set_watching(watching, false);
  set_watching(watching_once, false);
}

// A child that is forked while a profile records is not recorded: the profile is the parent's, and is not destroyed
// here.
void lock_before_fork() { current_mutex.lock(); }
void unlock_in_parent() { current_mutex.unlock(); }
void stop_in_child() {
  if (current) {
    detail::devices_are_the_parents.store(true);
    stop();
    new std::shared_ptr<Recording>(std::move(current));
  }
  current_mutex.unlock();
}

// The first that a backend with a device has.
ActivitySource* activity_source(DeviceType& found) {
  if (detail::devices_are_the_parents.load()) return nullptr;
  for (int type = 0; type < kNumDeviceTypes; ++type) {
    found = static_cast<DeviceType>(type);
    if (!is_available(found)) continue;
    if (ActivitySource* source = backend_of(found).activity_source()) return source;
  }
  return nullptr;
}

void check_none() {
  RUSH_CHECK(!current, "profiler: another profile is recording; ",
             std::getenv("RUSH_PROFILE")
                 ? "where it is that of RUSH_PROFILE, which `./rush profile` sets, run without it"
                 : "stop() it first");
}

}  // namespace

std::shared_ptr<Recording> current_recording() {
  const std::lock_guard lock(current_mutex);
  return current;
}

void check_none_records() {
  const std::lock_guard lock(current_mutex);
  check_none();
}

void begin_recording(const std::shared_ptr<Recording>& recording) {
  static const int handler = pthread_atfork(lock_before_fork, unlock_in_parent, stop_in_child);
  RUSH_CHECK(handler == 0, "profiler: the system refuses a handler of fork()");
  const std::lock_guard lock(current_mutex);
  check_none();
  recording->start_devices();
  current = recording;
  detail::recording.store(recording->id);
  start();
}

void end_recording(const std::shared_ptr<Recording>& recording) {
  const std::lock_guard lock(current_mutex);
  if (current != recording) return;
  stop();
  current = nullptr;
}

bool Recording::is_of_this_process() const { return getpid() == process_; }

Recording::Recording(const ProfileOptions& options)
    : id([] {
        static std::atomic<uint64_t> last{0};
        return ++last;
      }()),
      record_shapes(options.record_shapes),
      with_stack(options.with_stack),
      with_flops(options.with_flops),
      profile_memory(options.profile_memory),
      devices(options.with_devices ? activity_source(device_type) : nullptr),
      process_(getpid()),
      paths_(1),
      max_events_(static_cast<size_t>(options.max_events)) {
  if (!options.trace.empty()) trace_ = std::make_unique<TraceWriter>(options.trace);
}

const std::string* Recording::keep(std::string_view text) {
  const std::lock_guard lock(mutex_);
  return keep_locked(text);
}

const std::string* Recording::keep_locked(std::string_view text) {
  const auto found = texts_.find(text);
  return &*(found != texts_.end() ? found : texts_.emplace(text).first);
}

uint32_t Recording::number_of(const CallPath& path) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = path_numbers_.try_emplace(path, static_cast<uint32_t>(paths_.size()));
  if (is_new) paths_.push_back({path});
  return at->second;
}

void Recording::start_devices() {
  if (!devices) return;
  Backend& backend = backend_of(device_type);
  for (int i = 0; i < backend.device_count(); ++i) {
    multiprocessors_.push_back(backend.properties(i).multi_processor_count);
  }
  devices->start(*this);
  devices_run_ = true;
  const auto has_counters = [&](int device) { return !devices->counters(device).empty(); };
  try {
    if (std::ranges::any_of(std::views::iota(0, backend.device_count()), has_counters)) {
      reading_counters_ = rush::detail::Thread([this] { read_counters(); });
    }
  } catch (const std::exception&) {
    // The machine refuses a thread, or memory: the trace goes without.
  }
}

void Recording::read_counters() try {
  constexpr int64_t kPeriod = 100;  // milliseconds
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    for (int device = 0; device < static_cast<int>(multiprocessors_.size()); ++device) {
      std::vector<CounterSample> samples;
      for (const Counter& counter : devices->counters(device)) samples.push_back({steady_now(), device, counter});
      add_all(std::span<const CounterSample>(samples));
    }
    lock.lock();
  } while (!ended_.wait_for(lock, kPeriod, [this] { return has_ended_; }));
} catch (const std::exception&) {
  // There is no memory for more.
}

uint32_t Recording::add_thread(const std::shared_ptr<ThreadLog>& log) {
  const std::lock_guard lock(mutex_);
  logs_.push_back(log);
  thread_ids_.push_back(syscall(SYS_gettid));
  return static_cast<uint32_t>(logs_.size() - 1);
}

bool Recording::has_room() {
  if (written_ == max_events_ || !trouble_.empty()) {
    ++dropped_;
    return false;
  }
  ++written_;
  return true;
}

void Recording::add(const Event& event) {
  first_ = std::min(first_, event.begin);
  last_ = std::max(last_, event.end);
  Sums& sums = sums_[{event.name, event.kind, event.dtype, event.shapes, event.stack}];
  ++sums.count;
  sums.total += event.end - event.begin;
  sums.inner += event.inner;
  sums.flops += event.flops;
  sums.flops_16 += event.flops_16;
  sums.bytes += event.bytes;
  if (!has_room()) return;
  if (trace_) {
    trace_->add(event, thread_ids_[event.thread]);
  } else {
    events_.push_back(event);
  }
}

void Recording::add(const Activity& activity) {
  Activity kept = activity;
  kept.name = *keep_locked(activity.name);
  const uint32_t path = path_of(activity.label);
  PathSums& sums = paths_.at(path < paths_.size() ? path : 0);
  const int64_t time = activity.end - activity.begin;
  first_ = std::min(first_, activity.begin);
  last_ = std::max(last_, activity.end);
  if (is_on_device(activity.kind)) {
    sums.device += time;
    busy_[activity.device].add(activity.begin, activity.end);
    Sums& own = sums_[{kept.name, EventKind::Device}];
    ++own.count;
    own.total += time;
    if (activity.is_pageable) pageable_ += time;
    if (activity.kind == ActivityKind::Kernel && is_small(activity)) small_ += time;
  } else if (activity.kind == ActivityKind::Wait) {
    sums.wait += time;
    ++sums.waits;
  }
  keep_or_write(activities_, kept);
}

// Whether it leaves half of the multiprocessors without work, or more.
bool Recording::is_small(const Activity& kernel) const {
  const auto device = static_cast<size_t>(kernel.device);
  return device < multiprocessors_.size() &&
         int64_t{kernel.grid[0]} * kernel.grid[1] * kernel.grid[2] * 2 <= multiprocessors_[device];
}

void Recording::see_memory(std::string_view op, Device device) noexcept {
  if (device.is_meta()) return;
  const MemorySample sample{steady_now(), device, memory_uses(device), op};
  add_all(std::span<const MemorySample>(&sample, 1));
}

void Recording::add(const MemorySample& sample) {
  const int64_t sum = sample.uses.sum();
  if (std::exchange(memory_now_[{sample.device.type, sample.device.index}], sum) == sum) return;
  if (sum > peak_.uses.sum()) peak_ = {sample.uses, sample.device, std::string(sample.op)};
  keep_or_write(memory_, sample);
}

void Recording::add(const CounterSample& sample) { keep_or_write(counters_, sample); }

template <class Item>
void Recording::keep_or_write(std::vector<Item>& kept, const Item& item) {
  if (!has_room()) return;
  if (trace_) {
    trace_->add(item);
  } else {
    kept.push_back(item);
  }
}

MemoryPeak Recording::memory_peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

template <class Item>
void Recording::add_all(std::span<const Item> items) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Item& item : items) {
    try {
      add(item);
    } catch (const std::exception& error) {
      trouble_ = error.what();
      trace_ = nullptr;
    }
  }
}

void Recording::take(std::span<const Activity> activities) noexcept { add_all(activities); }

void Recording::take(std::vector<Event>& events) noexcept {
  add_all(std::span<const Event>(events));
  events.clear();
}

void Recording::finish() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_all();
  reading_counters_ = {};  // waits for the thread
  if (std::exchange(devices_run_, false)) devices->stop();
  std::vector<std::shared_ptr<ThreadLog>> logs;
  {
    const std::lock_guard lock(mutex_);
    logs.swap(logs_);
  }
  for (const std::shared_ptr<ThreadLog>& log : logs) {
    const std::lock_guard lock(log->mutex);
    if (log->recording != id) continue;
    take(log->events);
    log->recording = 0;
  }
  const std::lock_guard lock(mutex_);
  if (const auto trace = std::move(trace_)) trace->finish();
  RUSH_CHECK_IO(trouble_.empty(), trouble_);
}

void Recording::forget() {
  const std::lock_guard lock(mutex_);
  events_ = {};
  activities_ = {};
  memory_ = {};
  counters_ = {};
  memory_now_ = {};
  peak_ = {};
  sums_ = {};
  busy_ = {};
}

KeyAverages Recording::averages(bool by_shapes, bool by_stack) const {
  const std::lock_guard lock(mutex_);
  const auto group_of = [&](const EventKey& key) {
    return EventKey{key.name, key.kind, -1, by_shapes ? key.shapes : nullptr, by_stack ? key.stack : nullptr};
  };
  std::map<EventKey, Average> groups;
  const auto average_of = [&](const EventKey& group) -> Average& {
    const auto [at, is_new] = groups.try_emplace(group);
    if (is_new) {
      at->second.name = group.name;
      at->second.kind = group.kind;
      if (group.shapes) at->second.shapes = *group.shapes;
      if (group.stack) at->second.stack = *group.stack;
    }
    return at->second;
  };
  const auto microseconds = [](int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; };
  for (const auto& [key, sums] : sums_) {
    Average& average = average_of(group_of(key));
    average.count += sums.count;
    average.flops += sums.flops;
    average.flops_16 += sums.flops_16;
    average.bytes += sums.bytes;
    if (key.kind == EventKind::Device) {
      average.device_time_total += microseconds(sums.total);
      average.self_device_time_total += microseconds(sums.total);
    } else {
      average.cpu_time_total += microseconds(sums.total);
      average.self_cpu_time_total += microseconds(sums.total - sums.inner);
    }
  }
  for (size_t number = 1; number < paths_.size(); ++number) {
    const PathSums& sums = paths_[number];
    if (sums.device == 0 && sums.wait == 0) continue;
    std::vector<EventKey> counted;  // an operator that is within itself has the time once
    for (uint32_t at = static_cast<uint32_t>(number); at != 0; at = paths_[at].path.outer) {
      const EventKey group = group_of(paths_[at].path.key);
      Average& average = average_of(group);
      if (at == number) {
        average.self_device_time_total += microseconds(sums.device);
        average.self_wait_time_total += microseconds(sums.wait);
      }
      if (std::find(counted.begin(), counted.end(), group) != counted.end()) continue;
      counted.push_back(group);
      average.device_time_total += microseconds(sums.device);
    }
  }
  KeyAverages averages;
  if (devices) averages.device = upper_case(device_type_name(device_type));
  for (auto& [key, average] : groups) averages.push_back(std::move(average));
  return averages;
}

Facts Recording::facts() const {
  const std::lock_guard lock(mutex_);
  Facts facts;
  facts.span = last_ > first_ ? last_ - first_ : 0;
  for (BusyTime busy : std::views::values(busy_)) facts.busy = std::max(facts.busy, busy.total());
  facts.pageable = pageable_;
  facts.small = small_;
  for (const auto& [key, sums] : sums_) {
    if (key.kind == EventKind::Device) {
      facts.on_device[std::string(key.name)] = {sums.count, sums.total};
      facts.kernels += sums.count;
    }
    if (key.kind == EventKind::Range && key.name == kLoaderRange) facts.loader += sums.total;
  }
  for (const PathSums& sums : paths_) {
    const std::string_view name = sums.path.key.name;
    if (sums.waits > 0) {
      facts.waits.push_back({name.empty() ? "The program" : std::string(name), sums.waits, sums.wait});
    }
    if (sums.device > 0) facts.calls.push_back({std::string(name), sums.path.key.dtype, sums.device});
  }
  return facts;
}

void Recording::write_trace(TraceWriter& writer) const {
  const std::lock_guard lock(mutex_);
  for (const Event& event : events_) writer.add(event, thread_ids_[event.thread]);
  for (const Activity& activity : activities_) writer.add(activity);
  for (const MemorySample& sample : memory_) writer.add(sample);
  for (const CounterSample& sample : counters_) writer.add(sample);
}

int64_t Recording::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace rush::profiler
