#include "core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "core/dispatch/key.h"
#include "core/error.h"

namespace rush {

#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace {
std::atomic<int> requested_threads{0};
thread_local constinit bool serial_loops = false;

// A point that orders what threads did before `pass_on` before what others do after `take_over`. OpenMP's own barriers
// do so already, but by system calls that ThreadSanitizer does not see; it is told here.
class Handover {
 public:
#ifdef __SANITIZE_THREAD__
  void pass_on() { __tsan_release(this); }
  void take_over() { __tsan_acquire(this); }
#else
  void pass_on() {}
  void take_over() {}
#endif
};
}  // namespace

SerialLoopsGuard::SerialLoopsGuard() : before_(std::exchange(serial_loops, true)) {}
SerialLoopsGuard::~SerialLoopsGuard() { serial_loops = before_; }

void set_num_threads(int threads) {
  RUSH_CHECK_VALUE(threads >= 1, "set_num_threads: expected at least 1, got ", threads);
  requested_threads.store(threads);
  omp_set_num_threads(threads);
}

int get_num_threads() {
  const int threads = requested_threads.load(std::memory_order_relaxed);
  return threads ? threads : omp_get_max_threads();
}

bool in_parallel_region() { return serial_loops || omp_in_parallel(); }

void detail::parallel_ranges(int64_t begin, int64_t end, int64_t grain, RangeFn fn, void* context) {
  const int64_t steps = end - begin;
  const int64_t wanted = grain > 0 ? (steps + grain - 1) / grain : steps;
  const int threads = static_cast<int>(std::min<int64_t>(get_num_threads(), wanted));
  if (threads <= 1 || in_parallel_region()) return fn(context, begin, end);
  const int64_t part = (steps + threads - 1) / threads;
  std::exception_ptr failure;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  // The parts record and dispatch as their caller does.
  const DispatchState state = dispatch_state;
  Handover begun, ended;
  begun.pass_on();
#pragma omp parallel num_threads(threads)
  {
    begun.take_over();
    const int64_t from = begin + omp_get_thread_num() * part;
    const int64_t to = std::min(from + part, end);
    DispatchStateGuard guard;
    dispatch_state = state;
    if (from < to) {
      try {
        fn(context, from, to);
      } catch (...) {
        if (!failed.test_and_set()) failure = std::current_exception();
      }
    }
    ended.pass_on();
  }
  ended.take_over();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rush
