// for (auto i : c10::irange(n)) { ... }
#pragma once
#include <ranges>
#include <type_traits>

namespace c10 {

/// From 0 to `end`, which it leaves out; nothing when that is negative.
template <class Integer>
requires std::is_integral_v<Integer>
auto irange(Integer end) { return std::views::iota(Integer{0}, end < 0 ? Integer{0} : end); }

/// From `begin` to `end`, which it leaves out; nothing when that is smaller.
template <class First, class Last>
requires std::is_integral_v<First> && std::is_integral_v<Last>
auto irange(First begin, Last end) {
  const Last first = static_cast<Last>(begin);
  return std::views::iota(first, end < first ? first : end);
}

}  // namespace c10
