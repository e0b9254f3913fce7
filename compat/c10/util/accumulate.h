// Sums and products of integers, such as sizes.
#pragma once
#include <cstdint>
#include <iterator>
#include <type_traits>

#include "c10/util/Exception.h"

namespace c10 {

/// As int64; those of nothing are 0 and 1.
template <class Iterator>
int64_t sum_integers(Iterator begin, Iterator end) {
  static_assert(std::is_integral_v<typename std::iterator_traits<Iterator>::value_type>);
  int64_t sum = 0;
  for (; begin != end; ++begin) sum += *begin;
  return sum;
}
template <class Iterator>
int64_t multiply_integers(Iterator begin, Iterator end) {
  static_assert(std::is_integral_v<typename std::iterator_traits<Iterator>::value_type>);
  int64_t product = 1;
  for (; begin != end; ++begin) product *= *begin;
  return product;
}
template <class Container>
int64_t sum_integers(const Container& container) {
  return sum_integers(std::begin(container), std::end(container));
}
template <class Container>
int64_t multiply_integers(const Container& container) {
  return multiply_integers(std::begin(container), std::end(container));
}

/// Of the sizes from dimension `k` on, before it, and between two, which may come in either order. Throws IndexError.
template <class Container>
int64_t numelements_from_dim(int k, const Container& sizes) {
  RUSH_CHECK_INDEX(k >= 0, "numelements_from_dim: ", k, " is no dimension");
  return k > static_cast<int>(sizes.size()) ? 1 : multiply_integers(std::next(sizes.begin(), k), sizes.end());
}
template <class Container>
int64_t numelements_to_dim(int k, const Container& sizes) {
  RUSH_CHECK_INDEX(k >= 0 && k <= static_cast<int>(sizes.size()), "numelements_to_dim: ", k, " is no dimension");
  return multiply_integers(sizes.begin(), std::next(sizes.begin(), k));
}
template <class Container>
int64_t numelements_between_dim(int k, int l, const Container& sizes) {
  if (k > l) return numelements_between_dim(l, k, sizes);
  RUSH_CHECK_INDEX(k >= 0 && l < static_cast<int>(sizes.size()), "numelements_between_dim: ", k, " and ", l,
                   " are no two dimensions");
  return multiply_integers(std::next(sizes.begin(), k), std::next(sizes.begin(), l));
}

}  // namespace c10
