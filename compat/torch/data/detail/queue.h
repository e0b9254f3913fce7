// data::detail::Queue: values handed from thread to thread. Our loaders have a pool of their own
// (nn/data/worker_pool.h).
#pragma once
#include <chrono>
#include <mutex>
#include <optional>
#include <queue>

#include "core/error/error.h"
#include "core/threads/thread.h"

namespace rush::data::detail {

template <class T>
class Queue {
 public:
  void push(T value) {
    {
      const std::lock_guard lock(mutex_);
      values_.push(std::move(value));
    }
    filled_.notify_one();
  }
  /// Waits for a value, no longer than `timeout` where that is given: then it throws Error.
  T pop(std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
    std::unique_lock lock(mutex_);
    const auto filled = [this] { return !values_.empty(); };
    if (timeout) {
      RUSH_CHECK(filled_.wait_for(lock, timeout->count(), filled),
                 "Timeout in DataLoader queue while waiting for next batch (timeout was ", timeout->count(), " ms)");
    } else {
      filled_.wait(lock, filled);
    }
    T value = std::move(values_.front());
    values_.pop();
    return value;
  }
  /// Returns how many values it dropped.
  size_t clear() {
    const std::lock_guard lock(mutex_);
    const size_t dropped = values_.size();
    values_ = {};
    return dropped;
  }

 private:
  std::queue<T> values_;
  std::mutex mutex_;
  rush::detail::Condition filled_;
};

}  // namespace rush::data::detail
