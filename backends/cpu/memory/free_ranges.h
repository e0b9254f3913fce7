// Pages from the system that no block uses.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rush::cpu {

// Mappings consist of huge pages if the system has them: a matrix product reads more pages of 4 KiB than the TLB holds,
// and each page costs a fault when it is first written.
inline constexpr size_t kHugePage = size_t{2} << 20;

// Free memory as ranges of addresses, whatever mapping they come from: a block is cut from the smallest range that is
// large enough, and a freed one merges with its neighbours. A search looks at all ranges in a vector: there are few,
// since each is larger than kSmall and is followed by a block in use.
class FreeRanges {
 public:
  // `page` is the system's: what is given back is whole pages.
  explicit FreeRanges(size_t page);

  // New pages, `size` a multiple of kHugePage; false when the system has no more. `now` is the caller's clock.
  bool grow(size_t size, uint64_t now) noexcept;
  // A block of `size` bytes; null when no range is large enough.
  char* take(size_t size) noexcept;
  // A block that was taken is free again.
  void put(char* data, size_t size, uint64_t now) noexcept;
  // As put, for many: the ranges are in order again after `settle`.
  void append(char* data, size_t size, uint64_t now) noexcept;
  void settle() noexcept;
  // Gives pages of the range that was longest not used back to the system, `wanted` bytes or a little more where it has
  // so many. Returns how many: none when no range has a page, or when the system takes none.
  size_t release_oldest(size_t wanted) noexcept;
  // When the range was last used that release_oldest would take.
  std::optional<uint64_t> oldest() const noexcept;

 private:
  struct Range {
    char* data;
    size_t size;
    uint64_t used_at;
    char* end() const { return data + size; }
    void merge(const Range& next);
  };

  char* first_page(const Range& range) const { return align(range.data + page_ - 1, page_); }
  char* end_of_pages(const Range& range) const { return align(range.end(), page_); }
  static char* align(char* at, size_t unit) { return at - reinterpret_cast<uintptr_t>(at) % unit; }
  bool make_places() noexcept;
  void insert(const Range& range) noexcept;
  std::vector<Range>::iterator find_oldest() noexcept;
  void remove(std::vector<Range>::iterator range, char* begin, char* end) noexcept;

  const size_t page_;
  std::vector<Range> ranges_;  // by address, no two of them adjacent
  size_t taken_ = 0;           // blocks: ranges_ has a free record for each, because freeing must not allocate
};

}  // namespace rush::cpu
