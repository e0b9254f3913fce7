// A grid of CUDA threads, emulated on one core: what a program that checks kernels sees of it. The kernels include
// kernel.h.
//
// Note [The emulated grid]
// Blocks run one after another, in the order of their numbers. The threads of a block are fibers, which change at
// barriers and where a warp exchanges values; so a launch does the same each time, and a debugger stops in it as in any
// function. Kernels are compiled with -fsanitize=thread, which puts a call before every access to memory:
// __tsan_read4(address) and the like. The program is not linked with the library that usually defines these functions
// (libtsan); watch.cpp defines them. It therefore sees an access before it happens, and stops the launch instead if it
// is wrong.
//
// For each word of 4 bytes it keeps who wrote it and who read it last. Two accesses by different threads, one of them a
// write, are a race unless a barrier lies between them (in one block), or __syncwarp (in one warp), or both are atomic.
// No barrier lies between blocks of one launch. What orders accesses otherwise is not known here: a flag that another
// block waits for (__threadfence) is reported as a race. Of types smaller than a word some races are not found,
// nor accesses by memcpy of structures, as Clang before 15 copies them, nor of a structure in memory to which the
// result of a function is assigned, except for CUDA's vectors.
//
// Tensor cores (tensor_core.h) are a function that all lanes of a warp call together; the one that loads their operands
// accesses memory as any other load.
//
// Counted are the requests of warps: the k-th time that the lanes of a warp come to an instruction is one request.
// Global memory serves it in sectors of 32 bytes, shared memory in as many passes as the most used of its 32 banks has
// different words to give.
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rush::grid {

// Race: a barrier is missing between a write and the first reads of it. RaceOfNext: between those reads and the next
// write.
enum class FaultKind { OutOfBounds, Misaligned, Race, RaceOfNext, RaceOfBlocks, Unwritten, Divergence, Configuration };

/// What a launch was stopped for. Its text names the kernel, the block, the thread, the element and the line.
struct Fault : std::runtime_error {
  FaultKind kind;
  Fault(FaultKind kind_, const std::string& text) : std::runtime_error(text), kind(kind_) {}
};

/// Memory that kernels may access, zero at first and with a name for reports. Pages that are never written take no
/// memory, so that it can have more elements than the machine has memory for.
class Memory {
 public:
  Memory(std::string name, int64_t count, size_t element_size);
  virtual ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* begin() const { return begin_; }

 protected:
  void* begin_;
};

/// `count` elements of type T, or those of a vector. The host reads and writes them between launches.
template <class T>
class Buffer : public Memory {
 public:
  Buffer(std::string name, int64_t count) : Memory(std::move(name), count, sizeof(T)), count_(count) {}
  Buffer(std::string name, const std::vector<T>& values)
      : Buffer(std::move(name), static_cast<int64_t>(values.size())) {
    std::copy(values.begin(), values.end(), data());
  }
  T* data() const { return static_cast<T*>(begin_); }
  T& operator[](int64_t index) const { return data()[index]; }
  std::vector<T> values() const { return {data(), data() + count_}; }

 private:
  int64_t count_;
};

enum class Use { Load, Store, Atomic };

/// What the warps asked of memory at one place of a kernel.
struct Traffic {
  std::string memory;  // the buffer's name, or the shared array's
  bool shared;
  Use use;
  uintptr_t code;             // place_of says the line
  int64_t requests = 0;       // of warps; of atomics, of threads
  int64_t sectors = 0;        // of global memory that they touched
  int64_t least_sectors = 0;  // that hold as many bytes
  int64_t passes = 0;         // of shared memory's banks; as many as requests without conflicts
};

/// Of the last launch that ended, each place of its kernel that accessed memory.
const std::vector<Traffic>& traffic();

/// "file.cu:12" of machine code, if addr2line finds it; else "an unknown line".
std::string place_of(uintptr_t code);

/// While it lives, launches run the last blocks of their grids only: sizes beyond 2^31 elements are checked so.
class OnlyLastBlocks {
 public:
  explicit OnlyLastBlocks(int64_t count);
  ~OnlyLastBlocks();
  OnlyLastBlocks(const OnlyLastBlocks&) = delete;
  OnlyLastBlocks& operator=(const OnlyLastBlocks&) = delete;
};

}  // namespace rush::grid
