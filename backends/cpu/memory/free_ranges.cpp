#include "backends/cpu/memory/free_ranges.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "backends/cpu/memory/poison.h"

namespace rush::cpu {

namespace {

char* map(size_t size) noexcept {
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<char*>(data);
}

bool unmap(char* data, size_t size) noexcept {
  if (size == 0) return true;
  RUSH_UNPOISON(data, size);  // the next owner may write here
  return ::munmap(data, size) == 0;
}

size_t misalignment(const char* data) { return reinterpret_cast<uintptr_t>(data) % kHugePage; }

char* map_pages(size_t size) noexcept {
  char* data = map(size);
  if (data && misalignment(data) != 0) {
    // What is too much at both ends is cut off. Where the system refuses that, it only costs addresses.
    unmap(data, size);
    char* wide = map(size + kHugePage);
    if (!wide) return nullptr;
    const size_t before = (kHugePage - misalignment(wide)) % kHugePage;
    data = wide + before;
    unmap(wide, before);
    unmap(data + size, kHugePage - before);
  }
#ifdef MADV_HUGEPAGE
  if (data) ::madvise(data, size, MADV_HUGEPAGE);  // advice: what the system makes of it is all the same
#endif
  return data;
}

}  // namespace

FreeRanges::FreeRanges(size_t page) : page_(page) {}

void FreeRanges::Range::merge(const Range& next) {
  size += next.size;
  used_at = std::max(used_at, next.used_at);
}

// Whether there is a record for each block in use and for two more ranges.
bool FreeRanges::make_places() noexcept {
  const size_t needed = ranges_.size() + taken_ + 2;
  if (ranges_.capacity() >= needed) return true;
  try {
    ranges_.reserve(2 * needed);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

bool FreeRanges::grow(size_t size, uint64_t now) noexcept {
  char* data = make_places() ? map_pages(size) : nullptr;
  if (data) insert({data, size, now});
  return data;
}

char* FreeRanges::take(size_t size) noexcept {
  if (!make_places()) return nullptr;
  auto best = ranges_.end();
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
    if (range->size >= size && (best == ranges_.end() || range->size < best->size)) best = range;
  }
  if (best == ranges_.end()) return nullptr;
  char* data = best->data;
  best->data += size;
  best->size -= size;
  if (best->size == 0) ranges_.erase(best);
  ++taken_;
  RUSH_UNPOISON(data, size);
  return data;
}

void FreeRanges::put(char* data, size_t size, uint64_t now) noexcept {
  --taken_;
  insert({data, size, now});
}

void FreeRanges::insert(const Range& freed) noexcept {
  RUSH_POISON(freed.data, freed.size);
  const auto after = std::ranges::lower_bound(ranges_, freed.data, {}, &Range::data);
  const bool follows = after != ranges_.begin() && std::prev(after)->end() == freed.data;
  const bool precedes = after != ranges_.end() && freed.end() == after->data;
  if (follows) {
    std::prev(after)->merge(freed);
    if (precedes) {
      std::prev(after)->merge(*after);
      ranges_.erase(after);
    }
  } else if (precedes) {
    after->data = freed.data;
    after->merge(freed);
  } else {
    ranges_.insert(after, freed);
  }
}

void FreeRanges::append(char* data, size_t size, uint64_t now) noexcept {
  RUSH_POISON(data, size);
  --taken_;
  ranges_.push_back({data, size, now});
}

void FreeRanges::settle() noexcept {
  std::ranges::sort(ranges_, {}, &Range::data);
  size_t kept = 0;
  for (size_t i = 1; i < ranges_.size(); ++i) {
    if (ranges_[kept].end() == ranges_[i].data) {
      ranges_[kept].merge(ranges_[i]);
    } else {
      ranges_[++kept] = ranges_[i];
    }
  }
  if (!ranges_.empty()) ranges_.erase(ranges_.begin() + static_cast<std::ptrdiff_t>(kept) + 1, ranges_.end());
}

std::vector<FreeRanges::Range>::iterator FreeRanges::find_oldest() noexcept {
  auto oldest = ranges_.end();
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
    const bool has_page = first_page(*range) < end_of_pages(*range);
    if (has_page && (oldest == ranges_.end() || range->used_at < oldest->used_at)) oldest = range;
  }
  return oldest;
}

std::optional<uint64_t> FreeRanges::oldest() const noexcept {
  const auto range = const_cast<FreeRanges*>(this)->find_oldest();
  return range == ranges_.end() ? std::nullopt : std::optional(range->used_at);
}

size_t FreeRanges::release_oldest(size_t wanted) noexcept {
  const auto range = find_oldest();
  // The remainders at both ends may need one more record.
  if (range == ranges_.end() || !make_places()) return 0;
  char* begin = first_page(*range);
  char* end = end_of_pages(*range);
  // The end of a longer range, so that the huge pages of the rest stay whole.
  if (wanted < static_cast<size_t>(end - begin))
    begin = std::max(begin, align(end - wanted, std::max(page_, kHugePage)));
  const auto size = static_cast<size_t>(end - begin);
  // Refused when the process would have more mappings than the system allows: the pages then stay here.
  if (!unmap(begin, size)) {
    RUSH_POISON(begin, size);
    return 0;
  }
  remove(range, begin, end);
  return size;
}

void FreeRanges::remove(std::vector<Range>::iterator range, char* begin, char* end) noexcept {
  const Range rest{end, static_cast<size_t>(range->end() - end), range->used_at};
  range->size = static_cast<size_t>(begin - range->data);
  if (rest.size > 0) range = std::prev(ranges_.insert(std::next(range), rest));
  if (range->size == 0) ranges_.erase(range);
}

}  // namespace rush::cpu
