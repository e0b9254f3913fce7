// The caching allocator's records: blocks, and the lists of free ones.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/debug/stack_trace.h"

namespace rush {
class OpBase;
}

namespace rush::cuda {

class StreamPool;
class DeviceAllocator;

// A range of a segment (memory of one call of the driver, or an expandable range of addresses). The blocks of a segment
// cover it without gaps.
struct Block {
  char* data = nullptr;
  size_t size = 0;
  size_t requested = 0;  // what the caller asked for
  StreamPool* pool = nullptr;
  DeviceAllocator* allocator = nullptr;
  Block* before = nullptr;  // neighbours in the segment, by address
  Block* after = nullptr;
  Block* previous_free = nullptr;  // neighbours in a list of FreeBlocks
  Block* next_free = nullptr;
  std::vector<void*> streams;  // others that use it, from record_stream
  int pending_events = 0;      // at the ends of those uses; it is free when they are reached
  uint32_t last_used = 0;      // the allocator's count of allocations when it was freed
  bool in_use = false;
  bool expandable = false;                  // part of an expandable segment
  bool mapped = true;                       // whether there is memory behind the addresses
  std::shared_ptr<const StackTrace> trace;  // where it was allocated, while history is recorded
  const OpBase* allocated_in = nullptr;     // debug mode: by which operator

  bool is_free() const { return !in_use && pending_events == 0; }
  bool is_whole_segment() const { return !before && !after; }
  // Whether it is all that one call of the driver gave, and so can be returned to it.
  bool is_driver_allocation() const { return is_whole_segment() && !expandable; }
};

// Free blocks by size. Sizes are multiples of 512. Up to 32 KiB each size has a list of its own; above, 32 lists share
// a doubling, each sorted by size. A bitmap tells which lists hold something, so that the smallest block that is large
// enough is found without a search tree and without allocating anything.
class FreeBlocks {
 public:
  static constexpr size_t kUnit = 512;

  void insert(Block* block) {
    const size_t bin = bin_of(block->size);
    Block* previous = nullptr;
    Block* next = heads_[bin];
    while (next && next->size < block->size) {
      previous = next;
      next = next->next_free;
    }
    block->previous_free = previous;
    block->next_free = next;
    (previous ? previous->next_free : heads_[bin]) = block;
    if (next) next->previous_free = block;
    words_[bin / 64] |= uint64_t{1} << bin % 64;
    ++count_;
  }

  void remove(Block* block) {
    const size_t bin = bin_of(block->size);
    (block->previous_free ? block->previous_free->next_free : heads_[bin]) = block->next_free;
    if (block->next_free) block->next_free->previous_free = block->previous_free;
    block->previous_free = block->next_free = nullptr;
    if (!heads_[bin]) words_[bin / 64] &= ~(uint64_t{1} << bin % 64);
    --count_;
  }

  // The smallest of at least `size` bytes; null when there is none.
  Block* best_fit(size_t size) const;
  // The one that follows in size, for walking over all from best_fit(kUnit).
  Block* next(const Block* block) const {
    return block->next_free ? block->next_free : first_from(bin_of(block->size) + 1);
  }
  Block* smallest() const { return first_from(0); }
  size_t count() const { return count_; }

 private:
  static constexpr size_t kExact = 64, kSteps = 32, kDoublings = 36;
  static constexpr size_t kBins = kExact + kDoublings * kSteps;
  static constexpr size_t kWords = (kBins + 63) / 64;

  static size_t bin_of(size_t size) {
    const size_t units = size / kUnit;
    if (units < kExact) return units;
    const auto doubling = static_cast<size_t>(std::bit_width(units)) - 7;  // 0 for 64..127 units
    return std::min(kExact + doubling * kSteps + ((units >> (doubling + 1)) & (kSteps - 1)), kBins - 1);
  }

  Block* first_from(size_t bin) const {
    size_t word = bin / 64;
    if (word >= kWords) return nullptr;
    uint64_t bits = words_[word] & (~uint64_t{0} << bin % 64);
    while (bits == 0) {
      if (++word == kWords) return nullptr;
      bits = words_[word];
    }
    return heads_[word * 64 + static_cast<size_t>(std::countr_zero(bits))];
  }

  std::array<uint64_t, kWords> words_{};
  std::array<Block*, kBins> heads_{};
  size_t count_ = 0;
};

// Blocks of one kind (small or large) that belong to one stream.
class StreamPool {
 public:
  StreamPool(void* stream, bool small, uint64_t group) : stream(stream), small(small), group(group) {}

  void* const stream;
  const bool small;
  const uint64_t group;  // of which private pool; 0 for the common one
  FreeBlocks free;
  std::vector<Block*> unmapped;  // in expandable segments: addresses without memory
};

}  // namespace rush::cuda
