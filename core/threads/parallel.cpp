#include "core/threads/parallel.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "core/dispatch/key.h"
#include "core/error/error.h"
#include "core/threads/processors.h"
#include "core/threads/thread_pool.h"

namespace rush {

namespace {

std::atomic<int> requested_threads{0};
thread_local constinit bool serial_loops = false;
thread_local constinit int loop_member = 0;  // of the last loop that this thread worked in; 0 in callers

// OMP_NUM_THREADS counts here as for PyTorch, whose users limit programs by it.
int default_threads() {
  int threads = 0;
  if (const char* text = std::getenv("OMP_NUM_THREADS")) std::from_chars(text, text + std::strlen(text), threads);
  return threads >= 1 ? threads : available_processors();
}

// A loop that several threads run, see Note [The thread pool].
class Loop {
 public:
  Loop(int64_t begin, int64_t steps, int members, int chunks, detail::RangeFn fn, void* context)
      : begin_(begin), steps_(steps), members_(members), chunks_(chunks), fn_(fn), context_(context) {
    for (int member = 0; member < members; ++member) shares_[member].next.store(0, std::memory_order_relaxed);
  }

  // Runs the member's own share first, then the remaining chunks of others. Returns false if it left some for later.
  bool work(int member, bool takes_turns) noexcept {
    const SerialLoopsGuard nested;
    const DispatchStateGuard guard;
    dispatch_state = state_;
    loop_member = member;
    for (int i = 0; i < members_; ++i) {
      const int share = (member + i) % members_;
      std::atomic<int>& next = shares_[share].next;
      while (next.load(std::memory_order_relaxed) < chunks_) {
        if (takes_turns && detail::ThreadPool::turn_is_over()) return false;
        const int chunk = next.fetch_add(1, std::memory_order_relaxed);
        if (chunk < chunks_) run_chunk(int64_t{share} * chunks_ + chunk);
      }
    }
    return true;
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  static constexpr int kMostMembers = 256;

 private:
  struct alignas(64) Share {  // a cache line each: most members write to their own alone
    std::atomic<int> next;    // the first chunk that nobody has taken
  };

  // The chunks differ by at most one step.
  void run_chunk(int64_t number) {
    const int64_t count = int64_t{members_} * chunks_, size = steps_ / count, longer = steps_ % count;
    const int64_t from = begin_ + number * size + std::min(number, longer);
    const int64_t to = from + size + (number < longer);
    if (from == to || failed_.load(std::memory_order_relaxed)) return;
    try {
      fn_(context_, from, to);
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
  }

  const int64_t begin_, steps_;
  const int members_, chunks_;
  const detail::RangeFn fn_;
  void* const context_;
  const DispatchState state_ = dispatch_state;  // chunks record and dispatch as their caller does
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
  Share shares_[kMostMembers];
};

}  // namespace

SerialLoopsGuard::SerialLoopsGuard() : before_(std::exchange(serial_loops, true)) {}
SerialLoopsGuard::~SerialLoopsGuard() { serial_loops = before_; }

void set_num_threads(int threads) {
  RUSH_CHECK_VALUE(threads >= 1, "set_num_threads: expected at least 1, got ", threads);
  requested_threads.store(threads);
}

int get_num_threads() {
  const int threads = requested_threads.load(std::memory_order_relaxed);
  if (RUSH_LIKELY(threads)) return threads;
  static const int by_default = default_threads();
  return by_default;
}

bool in_parallel_region() { return serial_loops; }
int get_thread_num() { return loop_member; }

void detail::parallel_ranges(int64_t begin, int64_t end, int64_t grain, RangeFn fn, void* context) {
  constexpr int kChunks = 4;  // of a share: the more, the less is waited for, and the more calls
  const int64_t steps = end - begin;
  const int64_t wanted = grain > 0 ? (steps - 1) / grain + 1 : steps;
  const auto members = static_cast<int>(std::min<int64_t>({get_num_threads(), wanted, Loop::kMostMembers}));
  if (members <= 1 || serial_loops) return fn(context, begin, end);
  const auto chunks = static_cast<int>(std::clamp<int64_t>(wanted / members, 1, kChunks));
  Loop loop(begin, steps, members, chunks, fn, context);
  ThreadPool::instance().run(
      members,
      [](void* loop, int member, bool takes_turns) { return static_cast<Loop*>(loop)->work(member, takes_turns); },
      &loop);
  loop.rethrow();
}

}  // namespace rush
