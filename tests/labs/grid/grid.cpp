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
  // Of an exchange within the warp: what the call says, and what it gets.
  unsigned mask = 0;
  uint64_t given = 0;
  int source = 0;
  uint64_t received = 0;
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
  std::function<Fault()> fault;  // of the access that stopped it

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

// Of the warp's lanes, those that exist and have not left.
unsigned present_lanes(int first) {
  unsigned lanes = 0;
  for (int l = 0; l < kWarp && first + l < running.threads; ++l) {
    if (machine().threads[first + l].state != State::Left) lanes |= 1U << l;
  }
  return lanes;
}

bool all_wait_where(const Thread& t, const Thread* lanes, unsigned mask) {
  for (int l = 0; l < kWarp; ++l) {
    const bool waits = lanes[l].state == State::InWarp && lanes[l].line == t.line && lanes[l].function == t.function;
    if ((mask >> l & 1U) && !waits) return false;
  }
  return true;
}

void check_exchange(int first, int lane, unsigned mask) {
  const Thread& t = machine().threads[first + lane];
  if (mask >> lane & mask >> t.source & 1U) return;
  const std::string call =
      "divergence in " + kernel_name() + ": in block " + block_name(running.block) + " " + where(first + lane);
  throw Fault(FaultKind::Divergence, mask >> lane & 1U ? call + " for lane " + std::to_string(t.source) +
                                                             ", which has left or is not in the mask"
                                                       : call + ", whose mask lacks its own lane");
}

void give_values(int first, unsigned mask) {
  Thread* lanes = machine().threads.get() + first;
  unsigned ballot = 0;
  for (int l = 0; l < kWarp; ++l) {
    if (mask >> l & 1U && lanes[l].given != 0) ballot |= 1U << l;
  }
  for (int l = 0; l < kWarp; ++l) {
    if (!(mask >> l & 1U)) continue;
    check_exchange(first, l, mask);
    lanes[l].received = lanes[lanes[l].source].given;
    lanes[l].ballot = ballot;
    lanes[l].mask = mask;
    lanes[l].state = State::Ready;
  }
}

// Called when no lane of the warp is ready. Lets lanes exchange their values for which all of their mask wait that have
// not left; whether there were such.
bool complete_exchange(int first) {
  const Thread* lanes = machine().threads.get() + first;
  const unsigned present = present_lanes(first);
  for (int l = 0; l < kWarp; ++l) {
    if (!(present >> l & 1U) || lanes[l].state != State::InWarp) continue;
    const unsigned mask = lanes[l].mask & present;
    if (!all_wait_where(lanes[l], lanes, mask)) continue;
    check_exchange(first, l, mask);
    if (lanes[l].function == kSyncWarp) ++running.warp_barriers[static_cast<size_t>(first / kWarp)];
    give_values(first, mask);
    return true;
  }
  return false;
}

// ---- blocks ----

void end_stopped_launch() {
  if (!machine().stopped) return;
  if (machine().thrown) std::rethrow_exception(std::exchange(machine().thrown, nullptr));
  throw_noted();  // a wrong index may be one that was read too early
  throw machine().fault();
}

// Runs the warp's lanes until each has left or waits, and not for other lanes that wait as well.
void run_warp(int first) {
  do {
    for (int t = first; t < std::min(first + kWarp, running.threads); ++t) {
      if (machine().threads[t].state != State::Ready) continue;
      resume(t);
      end_stopped_launch();
    }
  } while (complete_exchange(first));
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

void stop(std::function<Fault()> fault) {
  machine().fault = std::move(fault);
  machine().stopped = true;
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
  const OutsideKernel outside;
  Thread& t = current();
  t.given = bits;
  t.source = source;
  t.mask = mask;
  wait(State::InWarp, function, line);
  return t.received;
}

OfLanes begin_exchange(const void* given, const char* function, int line) {
  exchange(0xffffffffU, reinterpret_cast<uintptr_t>(given), lane(), function, line);
  const int first = running.thread - lane();
  if (current().mask != 0xffffffffU) {
    throw Fault(FaultKind::Divergence, "divergence in " + kernel_name() + ": in block " + block_name(running.block) +
                                           " " + "thread " + thread_name(running.thread) + " calls " + function +
                                           " in line " + std::to_string(line) + " without all 32 lanes of its warp");
  }
  OfLanes result = {};
  for (int l = 0; l < kWarp; ++l)
    result.pointers[l] = reinterpret_cast<const void*>(machine().threads[first + l].given);
  return result;
}

// The lanes that resume first leave what they gave as it is, for those that have not yet read it.
void end_exchange(const char* function, int line) { exchange(0xffffffffU, current().given, lane(), function, line); }

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
