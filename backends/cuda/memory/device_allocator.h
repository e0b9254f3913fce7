// The caching allocator of one device: which block serves which request.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/memory/allocator_config.h"
#include "backends/cuda/memory/block.h"
#include "backends/cuda/memory/foreign_uses.h"
#include "backends/cuda/memory/history.h"
#include "backends/cuda/memory/memory_driver.h"
#include "backends/cuda/memory/memory_stats.h"

namespace rush::cuda {

// Note [The CUDA caching allocator]
// Asking the driver for memory takes hundreds of microseconds, and giving it back waits for the whole device. So
// segments are taken from the driver and kept, cut into blocks, and blocks are handed out again. The rules are those of
// PyTorch's allocator, so that a program's memory looks the same in both:
//   - sizes are rounded up to 512 bytes; requests up to 1 MiB are cut from 2 MiB segments, those below 10 MiB from
//     20 MiB segments, larger ones get a segment of their own in multiples of 2 MiB;
//   - a block belongs to the stream that it was first allocated on and serves that stream's requests only. The host may
//     then free a block while kernels still use it: kernels of its next owner are queued behind them;
//   - the smallest free block that is large enough is taken, and split if the remainder is large enough; a freed block
//     merges with its free neighbours;
//   - a block that other streams used (record_stream) is free again when events at the ends of their work are reached;
//   - when the driver has no more, free segments are returned to it and the request is tried again; then comes an
//     OutOfMemoryError, after which everything goes on to work.
// A block is found by its record, which the storage keeps, so freeing looks nothing up.
//
// Expandable segments: one range of addresses for each stream, large enough for the whole device, behind which memory
// is put and taken away in chunks. Requests of any size then share one segment, and nothing is lost between segments.
class DeviceAllocator {
 public:
  static constexpr size_t kMinBlock = 512, kSmallSize = 1 << 20, kSmallSegment = 2 << 20, kLargeSegment = 20 << 20,
                          kMinLargeAllocation = 10 << 20, kRoundLarge = 2 << 20;

  // `order` is needed to find blocks that are reused too early, and asked in debug mode only.
  DeviceAllocator(int device, MemoryDriver& driver, const AllocatorConfig& config, StreamOrder* order = nullptr);

  // A block of at least `nbytes` > 0 for work on `stream`, from private pool `group` (0: the common one). Throws
  // OutOfMemoryError.
  Block* allocate(size_t nbytes, void* stream, uint64_t group = 0);
  void deallocate(Block* block) noexcept;
  // See Tensor::record_stream.
  void record_stream(Block* block, void* stream);
  // Debug mode: `op` was given the block on a stream. Note [Blocks that are reused too early].
  void note_use(const Block& block, void* stream, const OpBase& op);
  // How many blocks were reported.
  int64_t early_reuses() const;
  // Returns free segments to the driver, unless a stream is being captured.
  void empty_cache();

  MemoryStats stats() const;
  void reset_peak_stats();
  void reset_accumulated_stats();
  // Of the device's memory; beyond it a request fails as if the device were full.
  void set_memory_fraction(double fraction);
  double memory_fraction() const;

  // A private pool is live from when it is made until it was released as often as it was made; its free segments stay
  // until then.
  void make_group(uint64_t group);
  void release_group(uint64_t group);
  // While a stream is being captured into a graph, events can neither be recorded nor asked for.
  void set_capturing(bool capturing);

  // History, see history.h.
  void record_history(const HistoryOptions& options);
  DeviceSnapshot snapshot() const;

  int device() const { return device_; }

 private:
  friend struct AllocatorSteps;  // calls one step at a time, for the exercises of tests/labs/device_allocator.cpp

  using Lock = std::lock_guard<std::mutex>;

  static size_t round_size(size_t nbytes);
  static size_t segment_size(size_t size);
  StreamPool& pool(void* stream, bool small, uint64_t group);
  Block* take_free(StreamPool& pool, size_t size);
  Block* take_from_driver(StreamPool& pool, size_t size);
  Block* after_making_room(StreamPool& pool, size_t size);
  Block* hand_out(Block* block, size_t size, size_t requested);
  bool should_split(const Block& block, size_t size) const;
  void split(Block* block, size_t size);
  void give_back(Block* block);
  void take_off_list(Block* block);
  void absorb_next(Block* block);
  void count_inactive_split(const Block& block, bool more);
  void note_handed_out(Block& block);
  void note_given_back(Block& block);

  Stream stream_of(const Block& block) const;
  void poison(const Block& block);
  void forget_recorded_uses(const Block& block);
  void report_early_reuse(Block& block);

  void record_uses(Block* block);
  void collect_reached();
  void wait_for_all();

  Block* grow_expandable(StreamPool& pool, size_t size);
  bool map_chunks(char* start, size_t nbytes, size_t chunk);
  void unmap_free_chunks(StreamPool& pool);
  size_t chunk_size(const StreamPool& pool);

  bool releasable(const StreamPool& pool) const;
  void release_segment(Block* block);
  void release_free_segments(StreamPool& pool);
  bool release_large_enough(StreamPool& pool, size_t size);
  void collect_garbage(size_t wanted);
  void release_cached();
  bool fits_limit(size_t more) const;
  [[noreturn]] void throw_out_of_memory(size_t requested, size_t size);

  Block* new_block();
  void recycle(Block* block);
  void note(TraceEntry::Action action, const Block& block, size_t size);

  const int device_;
  MemoryDriver& driver_;
  const AllocatorConfig config_;
  StreamOrder* const order_;  // null unless in debug mode
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<StreamPool>> pools_;
  StreamPool* last_pool_[2] = {};  // the last one asked for: large, small
  std::vector<uint64_t> groups_;   // live private pools, once for each owner
  std::vector<std::unique_ptr<Block[]>> records_;
  std::vector<Block*> idle_records_;
  std::vector<Block*> segments_;  // the first block of each

  struct PendingUse {
    void* event;
    Block* block;
  };
  struct StreamUses {
    void* stream;
    std::deque<PendingUse> uses;  // in the stream's order
  };
  std::vector<StreamUses> pending_;
  size_t pending_count_ = 0;
  int capturing_ = 0;
  std::vector<Block*> deferred_;  // freed while a stream was being captured, with uses by other streams

  MemoryStats stats_;
  size_t total_memory_ = 0;
  size_t limit_ = 0;  // bytes that may be reserved; 0: no limit
  uint32_t clock_ = 0;
  History history_;
  ForeignUses foreign_uses_;  // debug mode
  int64_t early_reuses_ = 0;
};

}  // namespace rush::cuda
