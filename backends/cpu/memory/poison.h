// Tells AddressSanitizer which memory the allocator keeps; does nothing in other builds.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define RUSH_POISON(data, n) ASAN_POISON_MEMORY_REGION(data, n)
#define RUSH_UNPOISON(data, n) ASAN_UNPOISON_MEMORY_REGION(data, n)
#else
#define RUSH_POISON(data, n) ((void)(data), (void)(n))
#define RUSH_UNPOISON(data, n) ((void)(data), (void)(n))
#endif
