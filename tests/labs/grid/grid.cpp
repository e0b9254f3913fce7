// The emulated grid: blocks, their threads as fibers, barriers, and what the lanes of a warp exchange.
#include "tests/labs/grid/grid.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>

#include "tests/labs/grid/running.h"
#include "tests/labs/grid/symbols.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace rush::labs {
// Kernels declare it with the type that they want. The watch holds them to the bytes that the launch asked for.
extern thread_local unsigned char shared_memory[grid::kMostShared];
alignas(16) thread_local unsigned char shared_memory[grid::kMostShared];
}  // namespace rush::labs

namespace rush::grid {

Running running;

namespace {

constexpr int kMostThreads = 1024;
constexpr const char* kSyncWarp = "__syncwarp";
constexpr size_t kStackBytes = 128 << 10, kPageBytes = 4096;
int64_t last_blocks = 0;  // 0: all of them

enum class State : uint8_t { Ready, AtBarrier, InWarp, Left };

struct Thread {
  ucontext_t context;
  State state = State::Left;
  int line = 0;  // where it waits
  const char* function = "";
  unsigned mask = 0;  // of the exchange that it is in
  uint64_t given = 0, received = 0;
  int source = 0;
  unsigned ballot = 0;
};

struct Machine {
  std::unique_ptr<Thread[]> threads{new Thread[kMostThreads]};
  char* stacks;
  ucontext_t scheduler;
  void (*call)(const void*) = nullptr;  // of the kernel
  const void* arguments = nullptr;
  std::exception_ptr thrown;
  bool stopped = false;
  FaultKind fault = {};
  std::function<std::string()> fault_text;

  Machine() {
    void* memory =
        mmap(nullptr, kStackBytes * kMostThreads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    stacks = static_cast<char*>(memory);
    running.stack_begin = reinterpret_cast<uintptr_t>(stacks);
    running.stack_end = running.stack_begin + kStackBytes * kMostThreads;
    // A thread that needs more ends by a signal, and not in the stack of another thread.
    for (int t = 0; t < kMostThreads; ++t) mprotect(stacks + t * kStackBytes, kPageBytes, PROT_NONE);
  }
};

Machine& machine() {
  static Machine only;
  return only;
}
Thread& current() { return machine().threads[running.thread]; }

std::string coordinates(dim3 at, dim3 sizes) {
  if (sizes.z > 1) return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) + ")";
  if (sizes.y > 1) return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ")";
  return std::to_string(at.x);
}

dim3 position(uint64_t number, dim3 sizes) {
  const auto line = number / sizes.x;
  return {static_cast<unsigned>(number % sizes.x), static_cast<unsigned>(line % sizes.y),
          static_cast<unsigned>(line / sizes.y)};
}

// ---- fibers ----

void thread_main() {
  try {
    machine().call(machine().arguments);
  } catch (...) {
    machine().thrown = std::current_exception();
    machine().stopped = true;
  }
  current().state = State::Left;  // uc_link leads back to the scheduler
}

void prepare(int thread) {
  Thread& t = machine().threads[thread];
  getcontext(&t.context);
  t.context.uc_stack = {machine().stacks + thread * kStackBytes, 0, kStackBytes};
  t.context.uc_link = &machine().scheduler;
  makecontext(&t.context, thread_main, 0);
  t.state = State::Ready;
}

void resume(int thread) {
  running.thread = thread;
  threadIdx = position(static_cast<uint64_t>(thread), blockDim);
  running.in_kernel = true;
  swapcontext(&machine().scheduler, &machine().threads[thread].context);
  running.in_kernel = false;
}

void wait(State state, const char* function, int line) {
  Thread& t = current();
  t.state = state;
  t.function = function;
  t.line = line;
  swapcontext(&t.context, &machine().scheduler);
}

// ---- barriers ----

std::string where(int thread) {
  const Thread& t = machine().threads[thread];
  if (t.state == State::Left) return "thread " + thread_name(thread) + " has left the kernel";
  return "thread " + thread_name(thread) + " waits at " + t.function + " in line " + std::to_string(t.line);
}

[[noreturn]] void throw_divergence(int a, int b) {
  throw Fault(FaultKind::Divergence, "divergence in " + kernel_name() + ": in block " + block_name(running.block) +
                                         " " + where(a) +
                                         (a == b ? " for lanes that do not come" : ", and " + where(b)));
}

// Called when no thread is ready: all wait at the same barrier, which lets them pass, or some never come there.
void pass_barrier() {
  Thread* threads = machine().threads.get();
  int waiting = 0;
  while (threads[waiting].state == State::Left) ++waiting;
  const auto elsewhere = [&](const Thread& t) {
    return t.state != threads[waiting].state || t.line != threads[waiting].line;
  };
  const Thread* other = std::find_if(threads, threads + running.threads, elsewhere);
  if (other != threads + running.threads) throw_divergence(waiting, static_cast<int>(other - threads));
  if (threads[waiting].state != State::AtBarrier) throw_divergence(waiting, waiting);
  for (int t = 0; t < running.threads; ++t) threads[t].state = State::Ready;
  ++running.barriers;
}

// Gives the lanes what they asked for, once all of the mask that have not left are here.
void complete_exchange(int first, unsigned mask) {
  Thread* lanes = machine().threads.get() + first;
  unsigned ballot = 0;
  for (int l = 0; l < kWarp; ++l) {
    if (mask >> l & 1U && lanes[l].given != 0) ballot |= 1U << l;
  }
  for (int l = 0; l < kWarp; ++l) {
    if (!(mask >> l & 1U)) continue;
    lanes[l].received = lanes[lanes[l].source].given;
    lanes[l].ballot = ballot;
    lanes[l].state = State::Ready;
  }
}

// Of the lanes of the caller's warp, those that exist and have not left.
unsigned present_lanes(int first) {
  unsigned lanes = 0;
  for (int l = 0; l < kWarp && first + l < running.threads; ++l) {
    if (machine().threads[first + l].state != State::Left) lanes |= 1U << l;
  }
  return lanes;
}

void refuse_exchange(const std::string& why) {
  const Thread& t = current();
  const int thread = running.thread;
  stop(FaultKind::Divergence, [=, function = t.function, line = t.line] {
    return "divergence in " + kernel_name() + ": in block " + block_name(running.block) + " thread " +
           thread_name(thread) + " calls " + function + " in line " + std::to_string(line) + why;
  });
}

void exchange_lanes(unsigned mask, uint64_t bits, int source, const char* function, int line) {
  const OutsideKernel outside;
  Thread& t = current();
  const int first = running.thread / kWarp * kWarp;
  t.function = function;
  t.line = line;
  t.given = bits;
  t.source = source;
  t.mask = mask & present_lanes(first);
  if (!(mask >> lane() & 1U)) refuse_exchange(", whose mask lacks its own lane");
  if (!(t.mask >> source & 1U)) {
    refuse_exchange(" for lane " + std::to_string(source) + ", which has left or is not in the mask");
  }
  bool complete = true;
  for (int l = 0; l < kWarp; ++l) {
    const Thread& other = machine().threads[first + l];
    if (!(t.mask >> l & 1U) || first + l == running.thread) continue;
    complete = complete && other.state == State::InWarp && other.line == line && other.function == function;
  }
  if (!complete) return wait(State::InWarp, function, line);
  if (function == kSyncWarp) ++running.warp_barriers[static_cast<size_t>(first / kWarp)];
  complete_exchange(first, t.mask);
}

// ---- blocks ----

void end_stopped_launch() {
  if (!machine().stopped) return;
  if (machine().thrown) std::rethrow_exception(std::exchange(machine().thrown, nullptr));
  if (machine().fault == FaultKind::OutOfBounds) throw_noted();  // it may be the index that is read too early
  throw Fault(machine().fault, machine().fault_text());
}

// Runs the warp's lanes until each has left or waits at a barrier, or they wait for one another.
void run_warp(int first) {
  for (bool again = true; again;) {
    again = false;
    for (int t = first; t < std::min(first + kWarp, running.threads); ++t) {
      if (machine().threads[t].state != State::Ready) continue;
      resume(t);
      end_stopped_launch();
      again = true;
    }
  }
}

bool all_left() {
  for (int t = 0; t < running.threads; ++t) {
    if (machine().threads[t].state != State::Left) return false;
  }
  return true;
}

void run_block(uint64_t number) {
  running.block = number;
  blockIdx = position(number, gridDim);
  running.barriers = 0;
  running.warp_barriers.assign(static_cast<size_t>((running.threads + kWarp - 1) / kWarp), 0);
  watch_block();
  for (int t = 0; t < running.threads; ++t) prepare(t);
  for (;;) {
    for (int first = 0; first < running.threads; first += kWarp) run_warp(first);
    if (all_left()) break;
    pass_barrier();
  }
  end_block();
}

void check_configuration(dim3 grid, dim3 block, size_t shared_bytes) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const bool fits = grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 0x7fffffffU && grid.y <= 65535 &&
                    grid.z <= 65535 && threads > 0 && threads <= kMostThreads && block.z <= 64 &&
                    shared_bytes <= kMostShared;
  if (fits) return;
  throw Fault(FaultKind::Configuration,
              "launch of " + kernel_name() + ": a grid of " + coordinates(grid, {1, 1, 2}) + " blocks of " +
                  coordinates(block, {1, 1, 2}) + " threads with " + std::to_string(shared_bytes) +
                  " bytes of dynamic shared memory; a grid has 1 to (2147483647, 65535, 65535) blocks of 1 to 1024 "
                  "threads, with at most " +
                  std::to_string(kMostShared) + " bytes");
}

}  // namespace

void stop(FaultKind kind, std::function<std::string()> text) {
  machine().fault = kind;
  machine().fault_text = std::move(text);
  machine().stopped = true;
  running.in_kernel = false;
  setcontext(&machine().scheduler);
  std::terminate();
}

std::string block_name(uint64_t block) { return coordinates(position(block, gridDim), gridDim); }
std::string thread_name(int thread) { return coordinates(position(static_cast<uint64_t>(thread), blockDim), blockDim); }
std::string kernel_name() { return function_name(running.kernel); }

void run(void* kernel, dim3 grid, dim3 block, size_t shared_bytes, void (*thread)(const void*), const void* arguments) {
  running.kernel = kernel;
  check_configuration(grid, block, shared_bytes);
  gridDim = grid;
  blockDim = block;
  running.shared_bytes = shared_bytes;
  running.threads = static_cast<int>(block.x * block.y * block.z);
  machine().call = thread;
  machine().arguments = arguments;
  machine().stopped = false;
  watch_launch();
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  const uint64_t count = last_blocks > 0 ? std::min(blocks, static_cast<uint64_t>(last_blocks)) : blocks;
  for (uint64_t number = blocks - count; number < blocks; ++number) run_block(number);
}

int lane() { return running.thread % kWarp; }

uint64_t exchange(unsigned mask, uint64_t bits, int source, const char* function, int line) {
  exchange_lanes(mask, bits, source, function, line);
  return current().received;
}

OnlyLastBlocks::OnlyLastBlocks(int64_t count) { last_blocks = count; }
OnlyLastBlocks::~OnlyLastBlocks() { last_blocks = 0; }

}  // namespace rush::grid

void rush::labs::to_do(const char* what) { throw std::runtime_error(what); }

using namespace rush::grid;

void __syncthreads(int line) {
  const OutsideKernel outside;
  wait(State::AtBarrier, "__syncthreads", line);
}

void __syncwarp(unsigned mask, int line) { exchange(mask, 0, lane(), kSyncWarp, line); }

unsigned __ballot_sync(unsigned mask, int predicate, int line) {
  exchange(mask, predicate != 0, lane(), "__ballot_sync", line);
  return current().ballot;
}
int __any_sync(unsigned mask, int predicate, int line) {
  exchange(mask, predicate != 0, lane(), "__any_sync", line);
  return current().ballot != 0;
}
int __all_sync(unsigned mask, int predicate, int line) {
  exchange(mask, predicate != 0, lane(), "__all_sync", line);
  return current().ballot == current().mask;
}

namespace {

template <class T, class Combine>
T atomic(T* address, T value, const Combine& combine, void* code) {
  watch_access(reinterpret_cast<uintptr_t>(address), sizeof(T), Use::Atomic, reinterpret_cast<uintptr_t>(code));
  const OutsideKernel outside;
  return std::exchange(*address, combine(*address, value));
}
template <class T>
T add(T a, T b) {
  return a + b;
}
template <class T>
T larger(T a, T b) {
  return std::max(a, b);
}

}  // namespace

#define RUSH_ATOMIC(Name, T, combine) \
  T Name(T* address, T value) { return atomic(address, value, combine<T>, __builtin_return_address(0)); }
RUSH_ATOMIC(atomicAdd, int, add)
RUSH_ATOMIC(atomicAdd, unsigned, add)
RUSH_ATOMIC(atomicAdd, unsigned long long, add)
RUSH_ATOMIC(atomicAdd, float, add)
RUSH_ATOMIC(atomicAdd, double, add)
RUSH_ATOMIC(atomicMax, int, larger)
RUSH_ATOMIC(atomicMax, unsigned, larger)
RUSH_ATOMIC(atomicMax, unsigned long long, larger)
#undef RUSH_ATOMIC
