// The launch that runs: what the grid (grid.cpp) and the watch of its memory (watch.cpp) know of each other.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/labs/grid/grid.h"
#include "tests/labs/grid/kernel.h"

namespace rush::grid {

inline constexpr int kWarp = 32;
inline constexpr size_t kMostShared = 227 << 10;  // bytes of dynamic shared memory that a block can have on Hopper

// The lanes' accesses to memory as one request of their warp.
struct Request {
  uint32_t size = 0;
  int lanes = 0;
  uintptr_t address[kWarp];
};

struct Running {
  bool in_kernel = false;  // accesses are the kernel's
  void* kernel = nullptr;
  size_t shared_bytes = 0;
  int threads = 0;                           // in a block
  int thread = 0;                            // the one that runs
  uint64_t block = 0;                        // its number
  uint32_t barriers = 0;                     // that the block has passed
  std::vector<uint32_t> warp_barriers;       // that each warp has passed
  uintptr_t stack_begin = 0, stack_end = 0;  // of all fibers
};
extern Running running;

// While it lives, the thread's accesses are the emulation's own. It shares inline functions with the kernels, such as
// std::max, of which the linker may have kept the copy that calls the watch.
struct OutsideKernel {
  const bool before = running.in_kernel;
  OutsideKernel() { running.in_kernel = false; }
  ~OutsideKernel() { running.in_kernel = before; }
};

// Ends the launch from within a fiber. `fault` is called outside of it, where the stack is large.
[[noreturn]] void stop(std::function<Fault()> fault);

// All 32 lanes of the warp call it, each with a pointer, which the other lanes may read until they call end_exchange.
// Gives each lane the pointers of all. Throws Fault where one of them has left the kernel.
struct OfLanes {
  const void* pointers[32];
};
OfLanes begin_exchange(const void* given, const char* function, int line);
void end_exchange(const char* function, int line);

// "block 3, thread (1, 0)", with as many coordinates as the launch has dimensions.
std::string block_name(uint64_t block);
std::string thread_name(int thread);
std::string kernel_name();

// ---- watch.cpp ----

void watch_launch();  // forgets the launch before
void watch_block();
void throw_noted();  // the block's first race, if there was one
void end_block();    // adds the requests of its warps to traffic()
// Checks and counts an access by the thread that runs; `code` is the address after the instruction's call.
void watch_access(uintptr_t address, size_t size, Use use, uintptr_t code);

}  // namespace rush::grid
