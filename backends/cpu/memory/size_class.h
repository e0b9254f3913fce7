// The sizes of blocks: 64, 128, ..., 512, then eight for each doubling: 576, 640, ..., 1024, 1152, ...
#pragma once
#include <bit>
#include <cstddef>

namespace rush::cpu {

// The class that `nbytes` > 0 belongs to.
constexpr size_t size_class(size_t nbytes) {
  const size_t lines = (nbytes + 63) / 64;
  if (lines <= 8) return lines - 1;
  const size_t doubling = static_cast<size_t>(std::bit_width(lines - 1)) - 4;  // 0 for 9..16 lines
  const size_t step = (lines - 1) >> doubling;                                 // 8..15
  return 8 + doubling * 8 + (step - 8);
}

// The size of a class's blocks: a multiple of 64, at most an eighth above what belongs to it.
constexpr size_t class_size(size_t size_class) {
  if (size_class < 8) return (size_class + 1) * 64;
  const size_t doubling = (size_class - 8) / 8, step = (size_class - 8) % 8 + 9;
  return (step << doubling) * 64;
}

// Small blocks are malloc's and kept by each thread. Medium ones are cut from pages, and kept in lists of their class.
// Larger ones are multiples of kLargeUnit.
inline constexpr size_t kSmall = size_t{64} << 10, kMedium = size_t{1} << 20, kLargeUnit = size_t{64} << 10;
inline constexpr size_t kSmallClasses = size_class(kSmall) + 1, kListedClasses = size_class(kMedium) + 1;

// The size of the block that serves `nbytes` > 0.
constexpr size_t block_size(size_t nbytes) {
  if (nbytes <= kMedium) return class_size(size_class(nbytes));
  return (nbytes + kLargeUnit - 1) / kLargeUnit * kLargeUnit;
}

}  // namespace rush::cpu
