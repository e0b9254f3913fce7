#include "tests/labs/device/streams.h"

#include "core/dispatch/key.h"
#include "core/dispatch/op.h"
#include "tests/labs/device/accelerator.h"

namespace rush::labs {

namespace {

std::string last_operator() {
  const OpBase* op = dispatch_state.device_op;
  return op ? str(" (the last operator was ", op->name(), ")") : std::string();
}

}  // namespace

void check_not_capturing(const char* what) {
  RUSH_CHECK_AS(CaptureError, !current_recording, "graph: ", what, " cannot be captured", last_operator());
}

size_t Streams::next_from_pool() {
  const std::lock_guard lock(mutex_);
  return 1 + from_pool_++ % (kCount - 1);
}

VectorClock Streams::clock_of_next(size_t stream) {
  VectorClock clock = queues_[stream].clock;
  clock.join(host_);
  clock.tick(stream);
  return clock;
}

void Streams::give(size_t stream, SharedWork work) {
  const std::lock_guard lock(mutex_);
  if (current_recording) {
    RUSH_CHECK_AS(CaptureError, current_recording->streams.count(stream), "graph: ", work->op,
                  " on a stream that has not waited for the captured one cannot be captured", last_operator());
    current_recording->work.push_back(std::move(work));
    return;
  }
  queues_[stream].clock = clock_of_next(stream);
  races().note(*work, stream, queues_[stream].clock);
  queues_[stream].items.push_back({std::move(work), {}});
}

Streams::Mark Streams::record(const std::shared_ptr<EventState>& event, size_t stream) {
  const std::lock_guard lock(mutex_);
  const bool captured = current_recording && current_recording->streams.count(stream);
  event->recording = captured ? current_recording : nullptr;
  if (captured) return {event, 0};
  queues_[stream].clock.join(host_);
  event->clock = queues_[stream].clock;
  ++event->recorded;
  const Mark mark{event, event->recorded};
  queues_[stream].items.push_back({nullptr, mark});
  return mark;
}

void Streams::wait(size_t stream, const std::shared_ptr<EventState>& event) {
  const std::lock_guard lock(mutex_);
  if (event->recording && event->recording == current_recording) {
    current_recording->streams.insert(stream);
    return;
  }
  RUSH_CHECK_AS(CaptureError, !current_recording || !current_recording->streams.count(stream),
                "graph: waiting for an event that was recorded outside of the capture cannot be captured",
                last_operator());
  queues_[stream].clock.join(event->clock);
  queues_[stream].items.push_back({nullptr, {event, event->recorded}, /*waits=*/true});
}

bool Streams::is_blocked(const Item& item) const { return item.waits && item.mark.event->reached < item.mark.number; }

void Streams::run_one() {
  size_t ready[kCount], count = 0;
  for (size_t i = 0; i < kCount; ++i) {
    if (!queues_[i].items.empty() && !is_blocked(queues_[i].items.front())) ready[count++] = i;
  }
  if (count == 0) return;
  Queue& queue = queues_[ready[random_() % count]];
  const Item item = std::move(queue.items.front());
  queue.items.pop_front();
  if (item.work) {
    item.work->run();
  } else if (!item.waits) {
    item.mark.event->reached = item.mark.number;
  }
}

bool Streams::has_reached(const Mark& mark) {
  if (mark.event->reached < mark.number) return false;
  if (mark.event->recorded == mark.number) host_.join(mark.event->clock);
  return true;
}

void Streams::synchronize() {
  const size_t waits = waits_;
  for (size_t stream = 0; stream < kCount; ++stream) synchronize(stream);
  waits_ = waits + 1;
}

void Streams::synchronize(size_t stream) {
  check_not_capturing("waiting for a stream");
  const std::lock_guard lock(mutex_);
  ++waits_;
  while (!queues_[stream].items.empty()) run_one();
  host_.join(queues_[stream].clock);
}

void Streams::synchronize(const Mark& mark) {
  check_not_capturing("waiting for an event");
  const std::lock_guard lock(mutex_);
  ++waits_;
  while (!has_reached(mark)) run_one();
}

bool Streams::query(const Mark& mark) {
  check_not_capturing("asking for an event");
  const std::lock_guard lock(mutex_);
  run_one();
  return has_reached(mark);
}

bool Streams::query(size_t stream) {
  check_not_capturing("asking for a stream");
  const std::lock_guard lock(mutex_);
  run_one();
  if (!queues_[stream].items.empty()) return false;
  host_.join(queues_[stream].clock);
  return true;
}

}  // namespace rush::labs
