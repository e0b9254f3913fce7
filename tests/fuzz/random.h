// Random choices for the fuzzers: the same ones for the same seed, on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

namespace fuzz {

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// From 0 to n - 1; 0 for n = 0.
  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(next() % n); }
  /// From `low` to `high`, both included.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<size_t>(high - low + 1)));
  }
  bool percent(int chance) { return static_cast<int>(below(100)) < chance; }

  template <class List>
  const auto& pick(const List& list) {
    return list[below(std::size(list))];
  }

  /// A number at which arithmetic on sizes goes wrong.
  int64_t extreme() {
    using Limits = std::numeric_limits<int64_t>;
    constexpr int64_t values[] = {Limits::min(),
                                  Limits::min() + 1,
                                  Limits::max(),
                                  Limits::max() - 1,
                                  -1,
                                  0,
                                  int64_t{1} << 31,
                                  (int64_t{1} << 31) - 1,
                                  1 << 16,
                                  int64_t{1} << 32,
                                  (int64_t{1} << 32) - 1,
                                  int64_t{1} << 61,
                                  int64_t{1} << 62,
                                  -(int64_t{1} << 31),
                                  -(int64_t{1} << 62),
                                  1'000'000'007};
    return pick(values);
  }

 private:
  uint64_t state_;
};

}  // namespace fuzz
