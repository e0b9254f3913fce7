#include "core/threads/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error/warning.h"
#include "core/macros.h"
#include "core/threads/scheduling.h"

#if __has_include(<pthread.h>)
#include <pthread.h>
#define RUSH_HAS_PTHREAD
#endif

namespace rush::detail {

using Clock = std::chrono::steady_clock;

namespace {

// What a thread does between two looks at a value that another is about to write.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
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

// What a thread knows of the core that it runs on: whether others want it too, and how much of it the thread has had.
// See Note [Beside other work].
class ThreadPool::Core {
 public:
  // The calling thread's.
  static Core& own() {
    thread_local Core core;
    return core;
  }

  // Spins until ready() or until patience ends; returns whether it became ready.
  template <class Ready>
  bool spin_until(const Ready& ready) {
    const auto begin = Clock::now();
    Clock::duration spun{};
    for (auto before = begin;;) {
      for (int i = 0; i < kLooks; ++i) {
        if (ready()) return true;
        pause();
      }
      auto now = Clock::now();
      if (!interrupted(before, now)) spun += now - before;
      if (spun > kPatience) {
        if (!is_shared(now) || now - begin > kLongPatience) return ready();
        now = yield();
        spun = {};
      }
      before = now;
    }
  }

  void begin_turn() { turn_began_ = Clock::now(); }

  // Whether the thread should leave its core to others before it begins something that another thread waits for. Where
  // no others want the core, a new turn begins at once.
  bool turn_is_over() {
    const auto now = Clock::now();
    if (now - turn_began_ < kTurn) return false;
    if (is_shared(now)) return true;
    yield();
    return false;
  }

  // Lets others run, if there are any, and begins a new turn; returns when that was.
  Clock::time_point yield() {
    const auto before = Clock::now();
    std::this_thread::yield();
    begin_turn();
    interrupted(before, turn_began_);
    return turn_began_;
  }

  // Whether others had the core for much of the last milliseconds in which the thread wanted it. What it slept of its
  // own will, elsewhere than here, is taken for the same.
  bool is_taken_away() {
    const auto now = Clock::now();
    if (now - asked_ > kInterval) {
      const auto ran = running_time();
      is_taken_away_ = (now - asked_) - (ran - ran_before_) - slept_ > (now - asked_) / 4;
      asked_ = now;
      ran_before_ = ran;
      slept_ = {};
    }
    return is_taken_away_;
  }

  // Sleeps while the value is `old`.
  void sleep(std::atomic<uint32_t>& value, uint32_t old) {
    const auto before = Clock::now();
    value.wait(old, std::memory_order_acquire);
    begin_turn();
    slept_ += turn_began_ - before;
  }

 private:
  static constexpr std::chrono::microseconds kPatience{100};     // of spinning
  static constexpr std::chrono::milliseconds kLongPatience{50};  // of spinning, yielding and being interrupted
  static constexpr std::chrono::milliseconds kTurn{1};
  static constexpr std::chrono::microseconds kInterruption{200};  // far longer than a few looks take
  static constexpr std::chrono::milliseconds kMemory{100};        // for how long an interruption counts
  static constexpr std::chrono::milliseconds kInterval{20};       // between questions to the system
  static constexpr int kLooks = 16;

  bool interrupted(Clock::time_point before, Clock::time_point now) {
    if (now - before <= kInterruption) return false;
    last_interrupted_ = turn_began_ = now;
    return true;
  }
  bool is_shared(Clock::time_point now) const { return now - last_interrupted_ < kMemory; }

  Clock::time_point last_interrupted_{}, turn_began_{}, asked_{};
  std::chrono::nanoseconds ran_before_{}, slept_{};
  bool is_taken_away_ = false;
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

bool ThreadPool::turn_is_over() { return Core::own().turn_is_over(); }

uint32_t ThreadPool::Helper::wait_for_assignment() {
  uint32_t seen = state.load(std::memory_order_acquire);
  const auto assigned = [&] { return (seen = state.load(std::memory_order_acquire)) == kAssigned; };
  if (Core::own().spin_until(assigned)) return seen;
  while (!assigned()) Core::own().sleep(state, seen);
  return seen;
}

void ThreadPool::Helper::loop() {
  ask_for_short_slices();
  for (;;) {
    uint32_t seen = wait_for_assignment();
    if (!state.compare_exchange_strong(seen, kRunning, std::memory_order_acquire)) continue;  // it was taken back
    leave_processor(caller_processor);
    const bool done = work(context, member, takes_turns);
    state.store(done ? kDone : kAssigned, std::memory_order_release);
    state.notify_one();  // the caller, if it sleeps
    if (!done) Core::own().yield();
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
  const int processor = current_processor();
  const bool takes_turns = !Core::own().is_taken_away();
  Helper* mine[kMostHelpers];
  int count = 0;
  for (int i = 0; i < started_.load(std::memory_order_relaxed) && count < there; ++i) {
    Helper* helper = helpers_[i].load(std::memory_order_relaxed);
    uint32_t idle = kIdle;
    if (!helper->state.compare_exchange_strong(idle, kReserved, std::memory_order_acquire)) continue;
    mine[count++] = helper;
    helper->member = count;
    helper->caller_processor = processor;
    helper->takes_turns = takes_turns;
    helper->work = work;
    helper->context = context;
    helper->state.store(kAssigned, std::memory_order_release);
    helper->state.notify_one();
  }
  work(context, 0, false);
  for (int i = 0; i < count; ++i) release(*mine[i]);
}

// Takes the assignment back unless the helper is at work, in which case this waits.
void ThreadPool::release(Helper& helper) noexcept {
  for (;;) {
    uint32_t seen = kAssigned;
    if (helper.state.compare_exchange_strong(seen, kIdle, std::memory_order_acquire)) return;
    if (seen == kDone) break;
    const auto left = [&] { return helper.state.load(std::memory_order_acquire) != kRunning; };
    if (Core::own().spin_until(left)) continue;
    Core::own().sleep(helper.state, kRunning);
  }
  helper.state.store(kIdle, std::memory_order_relaxed);
}

}  // namespace rush::detail
