#include "core/device/out_of_memory.h"

#include "core/error/error.h"

namespace rush {

void throw_out_of_memory(const char* what) {
  RUSH_THROW(OutOfMemoryError, what, ": out of memory: the C++ heap has no more (std::bad_alloc)");
}

}  // namespace rush
