// Loops split over threads.
#pragma once
#include <cstdint>
#include <type_traits>

namespace rush {

/// Threads that parallel_for may use, on the calling thread's loops. Throws ValueError below one.
void set_num_threads(int threads);
int get_num_threads();
/// Whether the caller already runs inside a parallel_for, or under a SerialLoopsGuard; loops do not nest.
bool in_parallel_region();
/// Which of a loop's threads the caller is, below get_num_threads(): the caller of the loop is 0. Mirrors at::.
int get_thread_num();

/// For a scope, loops of this thread are not split: for threads that are themselves what runs in parallel.
class SerialLoopsGuard {
 public:
  SerialLoopsGuard();
  ~SerialLoopsGuard();
  SerialLoopsGuard(const SerialLoopsGuard&) = delete;
  SerialLoopsGuard& operator=(const SerialLoopsGuard&) = delete;

 private:
  bool before_;
};

namespace detail {
using RangeFn = void (*)(void* context, int64_t begin, int64_t end);
void parallel_ranges(int64_t begin, int64_t end, int64_t grain, RangeFn fn, void* context);
}  // namespace detail

/// Calls body(from, to) over parts of [begin, end), in parallel when there are more than `grain` steps: Note [The
/// thread pool]. Which parts, depends on the number of threads and on chance, so what a body makes of a step must not
/// depend on the part that it comes in. The first exception that a part throws reaches the caller; parts that have not
/// begun by then are left out.
template <class Body>
void parallel_for(int64_t begin, int64_t end, int64_t grain, Body&& body) {
  const detail::RangeFn part = [](void* context, int64_t from, int64_t to) {
    (*static_cast<std::remove_reference_t<Body>*>(context))(from, to);
  };
  void* context = const_cast<void*>(static_cast<const void*>(&body));
  if (end - begin > grain) return detail::parallel_ranges(begin, end, grain, part, context);
  if (begin < end) part(context, begin, end);
}

/// Steps below which splitting costs more than it gives, for a cheap body.
inline constexpr int64_t kGrain = 32768;

}  // namespace rush
