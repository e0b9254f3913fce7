// for (auto i : c10::irange(n)) { ... }
#pragma once
#include <cstddef>
#include <iterator>
#include <type_traits>

namespace c10 {

/// Integers that follow each other. Not std::views::iota, since <ranges> takes a tenth of a second to compile.
template <class Integer>
class integer_range {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Integer;
    using difference_type = std::ptrdiff_t;
    using pointer = const Integer*;
    using reference = Integer;

    explicit iterator(Integer value) : value_(value) {}
    Integer operator*() const { return value_; }
    iterator& operator++() {
      ++value_;
      return *this;
    }
    iterator operator++(int) { return iterator(value_++); }
    friend bool operator==(const iterator&, const iterator&) = default;

   private:
    Integer value_;
  };

  integer_range(Integer begin, Integer end) : begin_(begin), end_(end < begin ? begin : end) {}
  iterator begin() const { return iterator(begin_); }
  iterator end() const { return iterator(end_); }

 private:
  Integer begin_, end_;
};

/// From 0 to `end`, which it leaves out; nothing when that is negative.
template <class Integer>
requires std::is_integral_v<Integer>
auto irange(Integer end) { return integer_range<Integer>(0, end); }

/// From `begin` to `end`, which it leaves out; nothing when that is smaller.
template <class First, class Last>
requires std::is_integral_v<First> && std::is_integral_v<Last>
auto irange(First begin, Last end) { return integer_range<Last>(static_cast<Last>(begin), end); }

}  // namespace c10
