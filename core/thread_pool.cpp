#include "core/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>

#include "core/macros.h"
#include "core/warning.h"

#if __has_include(<pthread.h>)
#include <pthread.h>
#define RUSH_HAS_PTHREAD
#endif
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace rush::detail {

namespace {

// What a thread does between two looks at a value that another is about to write.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Asks the scheduler for the shortest slices (Linux 6.12; before, this changes nothing). A woken helper then gets its
// core at once, though another process is using it, instead of at the next tick of up to 4 ms; its share of the core
// stays what it was.
void ask_for_short_slices() {
#ifdef SYS_sched_setattr
  struct {  // struct sched_attr, which only new C libraries declare
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline, period;
  } attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 || attributes.policy != 0) return;
  attributes.size = sizeof attributes;
  attributes.runtime_ns = 100'000;
  static_cast<void>(syscall(SYS_sched_setattr, 0, &attributes, 0));  // a wish: loops run without it, too
#endif
}

// Blocks signals for a scope; threads that are started meanwhile never see any: they are for the program's own threads.
class NoSignals {
 public:
#ifdef RUSH_HAS_PTHREAD
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
#else
  NoSignals() {}
  ~NoSignals() {}
#endif
};

}  // namespace

class ThreadPool::Patience {
 public:
  // Spins until ready() or until patience ends; returns whether it became ready.
  template <class Ready>
  bool spin_until(const Ready& ready) {
    if (sleeps_ > 0) {
      --sleeps_;
      return ready();
    }
    const auto begin = Clock::now();
    for (auto before = begin;;) {
      for (int i = 0; i < kLooks; ++i) {
        if (ready()) return true;
        pause();
      }
      const auto now = Clock::now();
      if (now - before > kInterruption) {  // far longer than kLooks take: another thread had this core
        sleeps_ = kSleeps;
        return ready();
      }
      if (now - begin > kLongest) return ready();
      before = now;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kLongest{100}, kInterruption{200};
  static constexpr int kLooks = 16;
  static constexpr int kSleeps = 200;

  int sleeps_ = 0;  // how often it still sleeps at once
};

ThreadPool& ThreadPool::instance() {
  static auto* pool = new ThreadPool;
  return *pool;
}

ThreadPool::ThreadPool() {
#ifdef RUSH_HAS_PTHREAD
  // A child has the forking thread alone; the lock is held so that no half-started helper is copied.
  pthread_atfork([] { instance().starting_.lock(); }, [] { instance().starting_.unlock(); },
                 [] { instance().reset_child(); });
#endif
}

void ThreadPool::reset_child() {
  const int started = started_.exchange(0);
  for (int i = 0; i < started; ++i) helpers_[i].load()->state.store(kIdle);
  refused_at_.store(kMostHelpers);
  starting_.unlock();
}

// ---- helpers

uint32_t ThreadPool::Helper::wait_for_assignment() {
  thread_local Patience patience;
  uint32_t seen = state.load(std::memory_order_acquire);
  const auto assigned = [&] { return (seen = state.load(std::memory_order_acquire)) == kAssigned; };
  if (patience.spin_until(assigned)) return seen;
  while (!assigned()) state.wait(seen, std::memory_order_acquire);
  return seen;
}

void ThreadPool::Helper::loop() {
  ask_for_short_slices();
  for (;;) {
    uint32_t seen = wait_for_assignment();
    if (!state.compare_exchange_strong(seen, kRunning, std::memory_order_acquire)) continue;  // it was taken back
    work(context, member);
    state.store(kDone, std::memory_order_release);
    state.notify_one();  // the caller, if it sleeps
  }
}

bool ThreadPool::start_helper(Helper& helper) {
  const NoSignals inherited;
  try {
    std::thread([&helper] { helper.loop(); }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

// Returns how many there are, up to `wanted`.
int ThreadPool::start_helpers(int wanted) {
  wanted = std::min(wanted, refused_at_.load(std::memory_order_relaxed));
  if (RUSH_LIKELY(started_.load(std::memory_order_acquire) >= wanted)) return wanted;
  const int there = start_more(wanted);
  if (there < wanted) {
    RUSH_WARN("parallel_for: the system refused a thread; loops run on ", there + 1, " of ", wanted + 1, " threads");
  }
  return there;
}

int ThreadPool::start_more(int wanted) {
  const std::lock_guard lock(starting_);
  int there = started_.load();
  for (; there < wanted; ++there) {
    if (!helpers_[there].load()) helpers_[there].store(new Helper);
    if (!start_helper(*helpers_[there].load())) {
      refused_at_.store(there);
      break;
    }
    started_.store(there + 1, std::memory_order_release);
  }
  return std::min(there, wanted);
}

// ---- teams

void ThreadPool::run(int members, Work work, void* context) {
  const int wanted = std::min(members - 1, kMostHelpers), there = start_helpers(wanted);
  Helper* mine[kMostHelpers];
  int count = 0;
  for (int i = 0; i < started_.load(std::memory_order_relaxed) && count < there; ++i) {
    Helper* helper = helpers_[i].load(std::memory_order_relaxed);
    uint32_t idle = kIdle;
    if (!helper->state.compare_exchange_strong(idle, kReserved, std::memory_order_acquire)) continue;
    mine[count++] = helper;
    helper->member = count;
    helper->work = work;
    helper->context = context;
    helper->state.store(kAssigned, std::memory_order_release);
    helper->state.notify_one();
  }
  work(context, 0);
  for (int i = 0; i < count; ++i) release(*mine[i]);
}

// Takes the assignment back if the helper has not started, otherwise waits for the end of its work.
void ThreadPool::release(Helper& helper) noexcept {
  thread_local Patience patience;
  uint32_t assigned = kAssigned;
  if (helper.state.compare_exchange_strong(assigned, kIdle, std::memory_order_relaxed)) return;
  const auto done = [&] { return helper.state.load(std::memory_order_acquire) != kRunning; };
  if (!patience.spin_until(done)) {
    while (!done()) helper.state.wait(kRunning, std::memory_order_acquire);
  }
  helper.state.store(kIdle, std::memory_order_relaxed);
}

}  // namespace rush::detail
