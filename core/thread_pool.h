// ThreadPool: the threads that help parallel_for.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace rush::detail {

// Note [The thread pool]
// parallel_for cuts its range into one share for each thread and every share into a few pieces. A thread takes the
// pieces of its own share first, always the same part of the range, whose data its caches may still hold, and then
// those that others have not begun. So a helper that comes late, because another process has its core, costs nothing:
// the caller does its share, and takes its assignment back if it has not started at all. Only a piece that a helper has
// begun is waited for.
//
// A thread without work spins for some microseconds, in which the next loop of a training step usually comes, and then
// sleeps. One that finds itself interrupted while it spins shares its core with other work: it sleeps at once for a
// while, because what it spins away it would lack later.
//
// Helpers are started when a loop first wants them. If the system refuses one, the loops run on those that there are,
// and a warning says so once. After fork() a child has none, and starts its own. Several callers share the helpers:
// each takes those that are idle.
class ThreadPool {
 public:
  // What a member of a team does. It must not throw.
  using Work = void (*)(void* context, int member);

  // Never destroyed: helpers sleep in it when the process ends.
  static ThreadPool& instance();

  // Calls work(context, 0) in this thread, and work(context, 1 .. members - 1) in helpers, as far as there are idle
  // ones that come before the caller is done. Returns when nobody works any more.
  void run(int members, Work work, void* context);

 private:
  static constexpr int kMostHelpers = 1023;

  // Who may change it: the caller that reserved the helper, unless it runs.
  enum State : uint32_t { kIdle, kReserved, kAssigned, kRunning, kDone };

  // Lies on a cache line of its own, which helper and caller pass to and fro.
  struct alignas(64) Helper {
    std::atomic<uint32_t> state{kIdle};
    int member = 0;
    Work work = nullptr;
    void* context = nullptr;

    void loop();
    uint32_t wait_for_assignment();
  };

  // For how long a thread spins before it sleeps.
  class Patience;

  ThreadPool();
  int start_helpers(int wanted);
  int start_more(int wanted);
  bool start_helper(Helper& helper);
  void release(Helper& helper) noexcept;
  void reset_child();

  std::array<std::atomic<Helper*>, kMostHelpers> helpers_{};
  std::atomic<int> started_{0};
  std::atomic<int> refused_at_{kMostHelpers};  // the number of helpers beyond which the system had no more
  std::mutex starting_;
};

}  // namespace rush::detail
