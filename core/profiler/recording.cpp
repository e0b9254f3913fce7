#include "core/profiler/recording.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace rush::profiler {

namespace {

std::mutex current_mutex;
// Never destroyed: threads may end after the static variables do.
std::shared_ptr<Recording>& current = *new std::shared_ptr<Recording>;

void watch(bool on) {
  const std::atomic_ref<KeySet> keys(watching);
  keys.store(on ? keys.load() | DispatchKey::Profiler : keys.load().without(DispatchKey::Profiler));
}
void stop() {
  detail::recording.store(0);
  if (!call_ranges.begin) watch(false);
}

// A child that is forked while a profile records is not recorded: the profile is the parent's, and is not destroyed
// here.
void lock_before_fork() { current_mutex.lock(); }
void unlock_in_parent() { current_mutex.unlock(); }
void stop_in_child() {
  if (current) {
    stop();
    new std::shared_ptr<Recording>(std::move(current));
  }
  current_mutex.unlock();
}

void check_none() { RUSH_CHECK(!current, "profiler: another profile is recording; stop() it first"); }

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
  current = recording;
  detail::recording.store(recording->id);
  watch(true);
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
      process_(getpid()),
      max_events_(static_cast<size_t>(options.max_events)) {
  if (!options.trace.empty()) trace_ = std::make_unique<TraceWriter>(options.trace);
}

const std::string* Recording::keep(std::string_view text) {
  const std::lock_guard lock(mutex_);
  return &*texts_.emplace(text).first;
}

uint32_t Recording::add_thread(const std::shared_ptr<ThreadLog>& log) {
  const std::lock_guard lock(mutex_);
  logs_.push_back(log);
  thread_ids_.push_back(syscall(SYS_gettid));
  return static_cast<uint32_t>(logs_.size() - 1);
}

void Recording::add(const Event& event) {
  Sums& sums = sums_[{event.name, event.kind, event.shapes, event.stack}];
  ++sums.count;
  sums.total += event.end - event.begin;
  sums.inner += event.inner;
  sums.flops += event.flops;
  if (written_ == max_events_ || !trouble_.empty()) {
    ++dropped_;
    return;
  }
  ++written_;
  if (trace_) {
    trace_->add(event, thread_ids_[event.thread]);
  } else {
    events_.push_back(event);
  }
}

void Recording::take(std::vector<Event>& events) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Event& event : events) {
    try {
      add(event);
    } catch (const std::exception& error) {
      trouble_ = error.what();
      trace_ = nullptr;
    }
  }
  events.clear();
}

void Recording::finish() {
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
  sums_ = {};
}

KeyAverages Recording::averages(bool by_shapes, bool by_stack) const {
  const std::lock_guard lock(mutex_);
  std::map<Key, Sums> grouped;
  for (const auto& [key, sums] : sums_) {
    const auto& [name, kind, shapes, stack] = key;
    Sums& group = grouped[{name, kind, by_shapes ? shapes : nullptr, by_stack ? stack : nullptr}];
    group.count += sums.count;
    group.total += sums.total;
    group.inner += sums.inner;
    group.flops += sums.flops;
  }
  KeyAverages averages;
  for (const auto& [key, sums] : grouped) {
    const auto& [name, kind, shapes, stack] = key;
    averages.push_back({.name = std::string(name),
                        .kind = kind,
                        .shapes = shapes ? *shapes : "",
                        .stack = stack ? *stack : "",
                        .count = sums.count,
                        .cpu_time_total = static_cast<double>(sums.total) * 1e-3,
                        .self_cpu_time_total = static_cast<double>(sums.total - sums.inner) * 1e-3,
                        .flops = sums.flops});
  }
  return averages;
}

void Recording::write_trace(TraceWriter& writer) const {
  const std::lock_guard lock(mutex_);
  for (const Event& event : events_) writer.add(event, thread_ids_[event.thread]);
}

int64_t Recording::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace rush::profiler
