#include "core/threads/stack_space.h"

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "core/error/error.h"

namespace rush {

namespace {

constexpr uintptr_t kNeeded = uintptr_t{256} << 10;  // for whatever is called next

// The lowest address of the calling thread's stack, 0 where it is not known.
uintptr_t stack_begin() {
  uintptr_t begin = 0;
#ifdef __linux__
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return 0;
  void* address = nullptr;
  size_t size = 0;
  if (::pthread_attr_getstack(&attributes, &address, &size) == 0) begin = reinterpret_cast<uintptr_t>(address);
  ::pthread_attr_destroy(&attributes);
#endif
  return begin;
}

}  // namespace

void check_stack_space(const char* what) {
  static thread_local const uintptr_t least = stack_begin() + kNeeded;
  const auto now = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  RUSH_CHECK(now >= least, what, ": nested too deep: less than ", kNeeded >> 10,
             " KiB of this thread's stack are left");
}

}  // namespace rush
