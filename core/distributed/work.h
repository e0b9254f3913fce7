// Work: a collective that goes on while its caller computes.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/device/event.h"
#include "core/tensor.h"
#include "core/threads/thread.h"

namespace rush::distributed {

/// What was begun by a collective. Until it is waited for, the tensors that it was given may be neither read nor
/// written.
class Work {
 public:
  /// Whether the processes have exchanged what there is to exchange: wait() then returns without delay.
  bool is_completed() const;
  /// Waits for the collective, after which its results may be read. Where a GPU carries it out, it is the current
  /// stream that waits, and this returns at once. From one thread. Throws what went wrong.
  void wait();

  /// For backends: the collective is done, or has ended with an exception.
  void finish(std::exception_ptr failure = nullptr);
  /// For backends: it is done when this stream has done what it has been given until now.
  void finish_on(const Stream& stream);
  /// For collectives, and what is made of several: the first wait() calls `next` when it has waited.
  void when_done(std::function<void()> next) { next_.push_back(std::move(next)); }
  /// `target` gets the values of `source` once it has been waited for.
  void copy_when_done(Tensor target, Tensor source) {
    when_done([target = std::move(target), source = std::move(source)]() mutable { target.copy_(source); });
  }

  /// One that is done.
  static std::shared_ptr<Work> completed();

 private:
  mutable std::mutex mutex_;
  rush::detail::Condition changed_;
  bool is_completed_ = false;
  std::exception_ptr failure_;
  std::optional<Event> reached_;  // by the stream that finishes it,
  Device device_;                 // and where that is
  std::vector<std::function<void()>> next_;
};
using WorkPtr = std::shared_ptr<Work>;

/// A tensor that a collective fills meanwhile.
struct Arriving {
  Tensor tensor;
  WorkPtr work;  // null where it is there already

  /// Waits for it, and hands it over.
  Tensor take() {
    if (work) std::exchange(work, nullptr)->wait();
    return std::move(tensor);
  }
};

}  // namespace rush::distributed
