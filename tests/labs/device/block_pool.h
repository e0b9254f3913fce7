// The caching allocator of the emulated accelerator, and that of pinned memory.
#pragma once
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/device/allocator.h"
#include "tests/labs/device/streams.h"

namespace rush::labs {

// Note [Blocks of the emulated accelerator]
// A block that is freed is handed out again at once, to its own stream: whatever that does with it comes later. Work of
// other streams that record_stream told of has to be done first. Blocks are never given back to the system, so that a
// wrong order shows as a race and not as a crash. New memory is filled with NaNs. What is allocated while a graph is
// captured comes from the graph's private pool, and goes back there.
class BlockPool final : public Allocator {
 public:
  static constexpr size_t kHost = ~size_t{0};  // the stream of pinned memory, which is the host's own

  BlockPool(Streams& streams, bool is_pinned) : streams_(streams), is_pinned_(is_pinned) {}

  void* allocate(size_t nbytes) override;
  void deallocate(void* data, size_t nbytes) noexcept override;
  AllocatorStats stats() const override { return stats_; }
  void empty_cache() override {}  // see the Note

  // Whether a block begins there.
  bool contains(const void* data) const;
  // A stream other than the block's own uses it.
  void record_stream(const void* data, size_t stream);
  // The number of the block's present use: it changes when the block is freed. Blocks of private pools have one use.
  uint64_t use_of(const void* data) const;
  // The private pool that the block is in; 0: in none.
  uint64_t pool_of(const void* data) const;

  // A graph keeps what is in its pool, until as many release it as retained it.
  void retain_pool(uint64_t pool);
  void release_pool(uint64_t pool);

 private:
  struct Block {
    void* data;
    size_t size, stream;
    uint64_t pool = 0, use = 1;
    std::set<size_t> users;  // streams other than its own
  };
  struct Waiting {
    Block* block;
    std::vector<Streams::Mark> marks;  // none yet, while a graph is captured
  };
  Block* take_free(size_t size, size_t stream, uint64_t pool);
  void collect_reached();
  void mark_ends(Waiting& waiting);

  Streams& streams_;
  const bool is_pinned_;
  std::deque<Block> blocks_;
  std::unordered_map<const void*, Block*> by_address_;
  std::vector<Block*> free_;
  std::vector<Waiting> waiting_;
  std::map<uint64_t, int> retained_;
  AllocatorStats stats_;
};

}  // namespace rush::labs
