// What the allocator tells: counts, history and snapshots; and the memory of its records.
#include <chrono>
#include <utility>

#include "backends/cuda/memory/device_allocator.h"

namespace rush::cuda {

MemoryStats DeviceAllocator::stats() const {
  const Lock lock(mutex_);
  return stats_;
}

void DeviceAllocator::reset_peak_stats() {
  const Lock lock(mutex_);
  stats_.for_each([](StatByPool& stat) { stat.reset_peak(); });
}

void DeviceAllocator::reset_accumulated_stats() {
  const Lock lock(mutex_);
  stats_.for_each([](StatByPool& stat) { stat.reset_accumulated(); });
  stats_.num_alloc_retries = stats_.num_ooms = stats_.num_device_alloc = stats_.num_device_free = 0;
}

Block* DeviceAllocator::new_block() {
  if (idle_records_.empty()) {
    constexpr size_t kMore = 64;
    records_.push_back(std::make_unique<Block[]>(kMore));
    for (size_t i = 0; i < kMore; ++i) idle_records_.push_back(&records_.back()[i]);
  }
  Block* block = idle_records_.back();
  idle_records_.pop_back();
  block->allocator = this;
  return block;
}

void DeviceAllocator::recycle(Block* block) {
  // A free block's list of streams and its trace are empty; the next owner of the record sets the rest.
  block->before = block->after = nullptr;
  block->requested = 0;
  block->expandable = false;
  block->mapped = true;
  idle_records_.push_back(block);
}

void DeviceAllocator::note(TraceEntry::Action action, const Block& block, size_t size) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  history_.add({action, reinterpret_cast<uint64_t>(block.data), size, block.pool->stream,
                std::chrono::duration_cast<std::chrono::microseconds>(now).count(), block.trace});
}

void DeviceAllocator::record_history(const HistoryOptions& options) {
  const Lock lock(mutex_);
  history_.start(options);
}

DeviceSnapshot DeviceAllocator::snapshot() const {
  const Lock lock(mutex_);
  DeviceSnapshot snapshot{device_, {}, {history_.entries().begin(), history_.entries().end()}};
  for (const Block* first : segments_) {
    const StreamPool& pool = *first->pool;
    const SegmentInfo none{
        .stream = pool.stream, .small = pool.small, .expandable = first->expandable, .group = pool.group, .blocks = {}};
    SegmentInfo segment = none;
    const auto finish = [&] {
      if (!segment.blocks.empty()) snapshot.segments.push_back(std::exchange(segment, none));
    };
    for (const Block* block = first; block; block = block->after) {
      if (!block->mapped) {
        finish();
        continue;
      }
      if (segment.blocks.empty()) segment.address = reinterpret_cast<uint64_t>(block->data);
      const bool active = !block->is_free();
      segment.total_size += block->size;
      segment.allocated_size += block->in_use ? block->size : 0;
      segment.active_size += active ? block->size : 0;
      segment.requested_size += block->requested;
      segment.blocks.push_back({reinterpret_cast<uint64_t>(block->data), block->size, block->requested, block->in_use,
                                active, block->trace});
    }
    finish();
  }
  return snapshot;
}

}  // namespace rush::cuda
