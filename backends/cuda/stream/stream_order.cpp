#include "backends/cuda/stream/stream_order.h"

#include <algorithm>

namespace rush::cuda {

void StreamOrder::learn(Clock& clock, const Clock& news) {
  for (const auto& [stream, time] : news) {
    uint64_t& known = clock[stream];
    known = std::max(known, time);
  }
}

StreamOrder::Clock StreamOrder::end_of(const Stream& stream) {
  State& state = streams_[key(stream)];
  Clock clock = state.behind;
  clock[key(stream)] = state.now++;
  return clock;
}

StreamOrder::Moment StreamOrder::now(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  return {stream, streams_[key(stream)].now};
}

void StreamOrder::recorded(const void* event, const Stream& stream) {
  const std::lock_guard lock(mutex_);
  events_[event] = end_of(stream);
}

void StreamOrder::destroyed(const void* event) {
  const std::lock_guard lock(mutex_);
  events_.erase(event);
}

void StreamOrder::waited(const Stream& stream, const void* event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  if (found != events_.end()) learn(streams_[key(stream)].behind, found->second);
}

void StreamOrder::host_waited(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  learn(host_, end_of(stream));
}

void StreamOrder::host_waited(const void* event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  if (found != events_.end()) learn(host_, found->second);
}

void StreamOrder::host_waited_for_device(int device) {
  const std::lock_guard lock(mutex_);
  for (auto& [stream, state] : streams_) {
    if (stream.first == device) learn(host_, end_of({Device(kCUDA, device), stream.second}));
  }
}

bool StreamOrder::is_behind(const Stream& stream, const Moment& moment) {
  if (stream == moment.stream) return true;
  const std::lock_guard lock(mutex_);
  const auto knows = [&](const Clock& clock) {
    const auto found = clock.find(key(moment.stream));
    return found != clock.end() && found->second >= moment.time;
  };
  return knows(host_) || knows(streams_[key(stream)].behind);
}

}  // namespace rush::cuda
