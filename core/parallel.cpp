#include "core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "core/dispatch/key.h"
#include "core/error.h"

namespace rush {

namespace {
std::atomic<int> requested_threads{0};
thread_local constinit bool serial_loops = false;

// Calls body(number, team) in each thread of a team, of which OpenMP may make fewer than it is asked for.
// ThreadSanitizer does not see how OpenMP's threads wait for each other; threads of our own it does.
#ifdef __SANITIZE_THREAD__
template <class Body>
void run_team(int threads, const Body& body) {
  std::vector<std::thread> team;
  for (int number = 1; number < threads; ++number) {
    team.emplace_back([&, number] {
      const SerialLoopsGuard nested;
      body(number, threads);
    });
  }
  {
    const SerialLoopsGuard nested;
    body(0, threads);
  }
  for (std::thread& each : team) each.join();
}
#else
template <class Body>
void run_team(int threads, const Body& body) {
#pragma omp parallel num_threads(threads)
  body(omp_get_thread_num(), omp_get_num_threads());
}
#endif
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
  std::exception_ptr failure;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  // The parts record and dispatch as their caller does.
  const DispatchState state = dispatch_state;
  run_team(threads, [&](int number, int team) {
    const int64_t part = (steps + team - 1) / team;
    const int64_t from = begin + number * part, to = std::min(from + part, end);
    if (from >= to) return;
    DispatchStateGuard guard;
    dispatch_state = state;
    try {
      fn(context, from, to);
    } catch (...) {
      if (!failed.test_and_set()) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rush
