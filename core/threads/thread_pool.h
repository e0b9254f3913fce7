// ThreadPool: the threads that help parallel_for.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace rush::detail {

// Note [The thread pool]
// parallel_for cuts its range into one share for each thread and every share into a few chunks. A thread takes the
// chunks of its own share first, always the same part of the range, whose data its caches may still hold, and then
// those that others have not begun. So a helper that comes late, because another process has its core, costs nothing:
// the caller does its share, and takes its assignment back if it has not started at all. Only a chunk that a helper has
// begun is waited for.
//
// A thread without work spins for some microseconds, when a training step's next loop usually comes; then it sleeps.
//
// Helpers are started when a loop first wants them. If the system refuses one, the loops run on those that there are,
// and a warning says so once. After fork() a child has none, and starts its own. Several callers share the helpers:
// each takes those that are idle.
//
// Note [Beside other work]
// Where other processes want the cores too, the time is lost in which one thread waits for another that has lost its
// core. Linux switches between threads that are always busy at its ticks, some 4 ms apart, and leaves a thread that
// woke where it slept. So:
// - A helper that finds itself on its caller's core moves to another one. Each would have half of that core only.
// - A helper that shares its core gives it up by itself, between two chunks and after 1 ms: a tick would take it away
//   in the middle of a chunk, for which the caller waits. The caller, and the helper once it is back, do the remaining
//   chunks.
// - If the caller shares its own core, a helper does not do that: both lose their cores at the same tick, and get them
//   back at the same tick.
// - A thread that shares its core and has no work yields instead of sleeping, for some milliseconds: the scheduler
//   gives back what a thread that is ready to run had to wait, but not what it slept.
class ThreadPool {
 public:
  // What a member of a team does. It must not throw. One that takes turns may leave its work for later when
  // turn_is_over(); it then returns false, and is called again unless the others have done its work.
  using Work = bool (*)(void* context, int member, bool takes_turns);

  // Whether the calling thread should leave its core to others for a while.
  static bool turn_is_over();

  // Never destroyed: helpers sleep in it when the process ends.
  static ThreadPool& instance();

  // Calls work as member 0 in this thread, and as members 1 .. members - 1 in helpers, as far as there are idle ones
  // that come before the caller is done. Returns when nobody works any more.
  void run(int members, Work work, void* context);

 private:
  static constexpr int kMostHelpers = 1023;

  // Only the caller that reserved the helper may change it, and only while the helper does not run.
  enum State : uint32_t { kIdle, kReserved, kAssigned, kRunning, kDone };

  // Lies on a cache line of its own, which helper and caller pass to and fro.
  struct alignas(64) Helper {
    std::atomic<uint32_t> state{kIdle};
    int member = 0, caller_processor = -1;
    bool takes_turns = false;
    Work work = nullptr;
    void* context = nullptr;

    void loop();
    uint32_t wait_for_assignment();
  };

  class Core;

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
