// Times between events of the streams, where CUPTI cannot be had.
#include <deque>
#include <mutex>
#include <vector>

#include "backends/cuda/check.h"
#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/outside_capture.h"
#include "backends/cuda/profiler/activity_sources.h"
#include "backends/cuda/stream/current_stream.h"
#include "core/environment_flag.h"
#include "core/error/warning.h"

namespace rush::cuda {

namespace {

using profiler::Activity;

// An event at every enter() and leave(): the time from one to the next belongs to the label in force between them.
class EventSource final : public profiler::ActivitySource {
 public:
  void start(profiler::ActivitySink& sink) override {
    const std::lock_guard lock(mutex_);
    first_ = take_event();
    RUSH_CUDA_CHECK(cudaEventRecord(first_, current_stream()));
    RUSH_CUDA_CHECK(cudaEventSynchronize(first_));
    first_time_ = profiler::steady_now();
    ++started_;
    sink_ = &sink;  // last: a source that could not start has none
  }

  void enter(uint64_t label) override {
    mark();
    thread_.labels.push_back(label);
  }

  void leave() noexcept override {
    try {
      mark();
    } catch (const std::exception&) {
      // The segment is not known; the program meets the error in its next call.
    }
    if (!thread_.labels.empty()) thread_.labels.pop_back();
  }

  std::vector<profiler::Counter> counters(int device) override { return nvml_counters(device); }

  void stop() override {
    static_cast<void>(wait_for_device());
    const std::lock_guard lock(mutex_);
    const Forget at_end{*this};
    report(true);
  }

 private:
  // The sink and the events go, whatever fails.
  struct Forget {
    EventSource& source;
    ~Forget() {
      for (const cudaEvent_t event : source.made_) static_cast<void>(cudaEventDestroy(event));
      source.made_.clear();
      source.free_.clear();
      source.open_.clear();
      source.sink_ = nullptr;
    }
  };
  struct Boundary {
    cudaEvent_t event = nullptr;
    cudaStream_t stream = nullptr;
    uint64_t started = 0;
  };
  struct Segment {
    cudaEvent_t begin, end;
    uint64_t label;
  };
  struct Thread {
    std::vector<uint64_t> labels;
    Boundary last;
  };
  static constexpr size_t kMostOpen = 4096;  // segments whose events are not read yet

  void mark() {
    const cudaStream_t stream = current_stream();
    if (is_capturing(stream)) return;
    const std::lock_guard lock(mutex_);
    if (!sink_) return;
    Boundary now{take_event(), stream, started_};
    RUSH_CUDA_CHECK(cudaEventRecord(now.event, stream));
    const Boundary before = std::exchange(thread_.last, now);
    if (before.started != started_) return;  // its event went with the source's last run
    const bool is_whole = before.stream == stream && !thread_.labels.empty();
    open_.push_back({before.event, now.event, is_whole ? thread_.labels.back() : 0});
    if (open_.size() > kMostOpen) report(false);
  }

  cudaEvent_t take_event() {
    if (free_.empty()) {
      cudaEvent_t event = nullptr;
      RUSH_CUDA_CHECK(cudaEventCreate(&event));
      made_.push_back(event);
      return event;
    }
    const cudaEvent_t event = free_.back();
    free_.pop_back();
    return event;
  }

  static int64_t nanoseconds_between(cudaEvent_t begin, cudaEvent_t end) {
    float milliseconds = 0;
    RUSH_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    return static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
  }

  // Reads the older half, or all, waiting for what is not done.
  void report(bool all) {
    std::vector<Activity> activities;
    for (size_t count = all ? open_.size() : open_.size() / 2; count > 0; --count) {
      const Segment segment = open_.front();
      open_.pop_front();
      if (segment.label != 0 && cudaEventSynchronize(segment.end) == cudaSuccess) {
        Activity& activity = activities.emplace_back();
        activity.name = "between events";
        activity.category = "kernel";
        activity.label = segment.label;
        activity.begin = first_time_ + nanoseconds_between(first_, segment.begin);
        activity.end = activity.begin + nanoseconds_between(segment.begin, segment.end);
        RUSH_CUDA_CHECK(cudaGetDevice(&activity.device));
      }
      free_.push_back(segment.begin);
    }
    if (sink_) sink_->take(activities);
  }

  std::mutex mutex_;
  profiler::ActivitySink* sink_ = nullptr;
  cudaEvent_t first_ = nullptr;
  int64_t first_time_ = 0;
  uint64_t started_ = 0;
  std::deque<Segment> open_;
  std::vector<cudaEvent_t> made_, free_;
  static thread_local Thread thread_;
};
thread_local EventSource::Thread EventSource::thread_;

}  // namespace

profiler::ActivitySource& event_source() {
  static EventSource& source = *new EventSource;
  return source;
}

profiler::ActivitySource& activity_source() {
  std::string trouble = "RUSH_CUPTI is 0";
  if (environment_flag("RUSH_CUPTI", true)) {
    if (profiler::ActivitySource* source = cupti_source(trouble)) return *source;
  }
  RUSH_WARN("profiler: times of the GPU are taken by events, and show no kernels: ", trouble);
  return event_source();
}

}  // namespace rush::cuda
