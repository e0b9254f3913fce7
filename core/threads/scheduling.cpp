#include "core/threads/scheduling.h"

#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace rush::detail {

#ifdef __linux__

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

int current_processor() { return sched_getcpu(); }

void leave_processor(int processor) {
  if (processor < 0 || sched_getcpu() != processor) return;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  // The system refuses an empty set. The second call takes nothing back: a thread stays where it is allowed to.
  if (sched_setaffinity(0, sizeof others, &others) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

std::chrono::nanoseconds running_time() {
  // Not CLOCK_THREAD_CPUTIME_ID, which brings the scheduler's books up to date: the thread may lose its core by that.
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return std::chrono::steady_clock::now().time_since_epoch();
  const auto time = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return time(usage.ru_utime) + time(usage.ru_stime);
}

#else

void ask_for_short_slices() {}
int current_processor() { return -1; }
void leave_processor(int) {}
std::chrono::nanoseconds running_time() { return std::chrono::steady_clock::now().time_since_epoch(); }

#endif

}  // namespace rush::detail
