// Expandable segments, see Note [The CUDA caching allocator]. The blocks of such a segment cover a range of addresses
// that is never given back; those without memory behind them are not `mapped`, and begin and end between chunks.
#include <algorithm>

#include "backends/cuda/memory/device_allocator.h"

namespace rush::cuda {

// The unit in which memory is put behind addresses: one object of the driver each, which can only be removed whole.
size_t DeviceAllocator::chunk_size(const StreamPool& pool) {
  const size_t unit = driver_.granularity(), wanted = pool.small ? kSmallSegment : kLargeSegment;
  return (wanted + unit - 1) / unit * unit;
}

bool DeviceAllocator::map_chunks(char* start, size_t nbytes, size_t chunk) {
  for (size_t done = 0; done < nbytes; done += chunk) {
    if (driver_.map(start + done, chunk)) continue;
    while (done > 0) {
      done -= chunk;
      driver_.unmap(start + done, chunk);
    }
    return false;
  }
  return true;
}

// Puts memory behind enough addresses for a block of `size` bytes, which may begin with a free block before them.
// The block is on no list; null when there is no memory.
Block* DeviceAllocator::grow_expandable(StreamPool& pool, size_t size) {
  const size_t chunk = chunk_size(pool);
  if (pool.unmapped.empty()) {
    if (total_memory_ == 0) total_memory_ = driver_.info().total;
    // An eighth more than there is, because what is in use splits the range.
    const size_t range = (total_memory_ + total_memory_ / 8 + chunk - 1) / chunk * chunk;
    void* start = driver_.reserve_addresses(range);
    if (!start) return nullptr;
    Block* all = new_block();
    all->data = static_cast<char*>(start);
    all->size = range;
    all->pool = &pool;
    all->expandable = true;
    all->mapped = false;
    segments_.push_back(all);
    pool.unmapped.push_back(all);
    stats_.segment.increase(pool.small, 1);
  }
  const auto free_before = [](const Block* block) -> size_t {
    const Block* before = block->before;
    return before && before->is_free() && before->mapped ? before->size : 0;
  };
  Block* hole = nullptr;
  for (Block* each : pool.unmapped) {
    if (each->size + free_before(each) >= size && (!hole || each->data < hole->data)) hole = each;
  }
  if (!hole) return nullptr;
  const size_t more = size - std::min(size, free_before(hole));
  const size_t nbytes = (more + chunk - 1) / chunk * chunk;
  if (nbytes > hole->size || !fits_limit(nbytes) || !map_chunks(hole->data, nbytes, chunk)) return nullptr;

  if (nbytes < hole->size) {
    split(hole, nbytes);
    std::replace(pool.unmapped.begin(), pool.unmapped.end(), hole, hole->after);
  } else {
    pool.unmapped.erase(std::find(pool.unmapped.begin(), pool.unmapped.end(), hole));
  }
  hole->mapped = true;
  stats_.reserved_bytes.increase(pool.small, static_cast<int64_t>(nbytes));
  ++stats_.num_device_alloc;
  if (history_.enabled()) note(TraceEntry::Action::SegmentMap, *hole, nbytes);
  if (free_before(hole) > 0) {
    hole = hole->before;
    take_off_list(hole);
    absorb_next(hole);
  }
  if (Block* after = hole->after; after && after->mapped && after->is_free()) {
    take_off_list(after);
    absorb_next(hole);
  }
  return hole;
}

// Takes the memory away from behind free blocks, as far as they cover whole chunks.
void DeviceAllocator::unmap_free_chunks(StreamPool& pool) {
  if (!config_.expandable_segments || pool.unmapped.empty()) return;
  const size_t chunk = chunk_size(pool);
  std::vector<Block*> candidates;
  for (Block* block = pool.free.best_fit(chunk); block; block = pool.free.next(block)) {
    if (block->expandable) candidates.push_back(block);
  }
  for (Block* block : candidates) {
    Block* first = block;
    while (first->before) first = first->before;
    const auto offset = static_cast<size_t>(block->data - first->data);
    const size_t begin = (offset + chunk - 1) / chunk * chunk, end = (offset + block->size) / chunk * chunk;
    if (begin >= end) continue;
    for (size_t at = begin; at < end; at += chunk) driver_.unmap(first->data + at, chunk);
    if (order_) foreign_uses_.forget(first->data + begin, first->data + end);
    stats_.reserved_bytes.decrease(pool.small, static_cast<int64_t>(end - begin));
    ++stats_.num_device_free;

    take_off_list(block);
    if (begin > offset) {  // keeps a free block before the hole
      split(block, begin - offset);
      pool.free.insert(block);
      block = block->after;
      take_off_list(block);
    }
    if (block->size > end - begin) split(block, end - begin);  // and one after it
    block->mapped = false;
    if (history_.enabled()) note(TraceEntry::Action::SegmentUnmap, *block, end - begin);
    if (Block* after = block->after; after && !after->mapped) {
      pool.unmapped.erase(std::find(pool.unmapped.begin(), pool.unmapped.end(), after));
      absorb_next(block);
    }
    if (Block* before = block->before; before && !before->mapped) {
      absorb_next(before);  // which is on the list of holes already
    } else {
      pool.unmapped.push_back(block);
    }
  }
}

}  // namespace rush::cuda
