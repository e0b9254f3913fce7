#include "core/threads/thread.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <thread>

namespace rush::detail {

namespace {
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
}  // namespace

struct Thread::Impl {
  std::jthread thread;
};

Thread::Thread() = default;
Thread::Thread(std::function<void()> work) : impl_(new Impl{std::jthread(std::move(work))}) {}
Thread::~Thread() = default;
Thread::Thread(Thread&&) noexcept = default;
Thread& Thread::operator=(Thread&&) noexcept = default;

struct Condition::Impl {
  std::condition_variable condition;
};

Condition::Condition() : impl_(std::make_unique<Impl>()) {}
Condition::~Condition() = default;

void Condition::notify_one() noexcept { impl_->condition.notify_one(); }
void Condition::notify_all() noexcept { impl_->condition.notify_all(); }

int64_t Condition::after(int64_t milliseconds) {
  const int64_t now = std::chrono::ceil<Milliseconds>(Clock::now().time_since_epoch()).count();
  const int64_t a_year = Milliseconds(std::chrono::years(1)).count();
  return now + std::clamp<int64_t>(milliseconds, 0, a_year);
}

bool Condition::wait_once(std::unique_lock<std::mutex>& lock, int64_t end) {
  if (end == kForever) {
    impl_->condition.wait(lock);
    return true;
  }
  return impl_->condition.wait_until(lock, Clock::time_point(Milliseconds(end))) == std::cv_status::no_timeout;
}

}  // namespace rush::detail
