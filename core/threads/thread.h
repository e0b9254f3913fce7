// Thread and Condition: std::thread and std::condition_variable out of sight. Every program that includes their headers
// compiles a tenth of a second longer.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace rush::detail {

/// A thread that its destructor waits for.
class Thread {
 public:
  Thread();
  /// Throws std::system_error when the machine refuses a thread.
  explicit Thread(std::function<void()> work);
  ~Thread();
  Thread(Thread&&) noexcept;
  Thread& operator=(Thread&&) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// As std::condition_variable.
class Condition {
 public:
  Condition();
  ~Condition();
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  void notify_one() noexcept;
  void notify_all() noexcept;
  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Ready ready) {
    while (!ready()) wait_once(lock, kForever);
  }
  /// Returns whether it is ready, false after so many milliseconds at least.
  template <class Ready>
  bool wait_for(std::unique_lock<std::mutex>& lock, int64_t milliseconds, Ready ready) {
    const int64_t end = after(milliseconds);
    while (!ready()) {
      if (!wait_once(lock, end)) return ready();
    }
    return true;
  }

 private:
  static constexpr int64_t kForever = INT64_MAX;
  // The moment in so many milliseconds, on the clock that wait_once goes by; the last one where that is out of range.
  static int64_t after(int64_t milliseconds);
  // Whether it was woken, by a notification or by chance, before the moment.
  bool wait_once(std::unique_lock<std::mutex>& lock, int64_t end);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rush::detail
