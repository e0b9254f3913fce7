// Sums, means and variances of runs of contiguous elements, vectorised, with errors that do not grow with the length.
#pragma once
#include <algorithm>
#include <vector>

#include "backends/functors/optional_data.h"
#include "core/tensor.h"
#include "core/threads/parallel.h"

namespace rush::cpu {

// Note [Sums in blocks]
// A sum of n floats, added one by one, is off by up to n roundings. Here four vectors of partial sums run over a block
// that fits the L1 cache, and blocks are added in double. The order depends on nothing but n (and, across
// rows, on the number of threads), so results repeat.
inline constexpr int64_t kBlock = 4096;

// f(0) + ... + f(n - 1) for one block.
template <class Math, class F>
RUSH_ALWAYS_INLINE Math block_sum(int64_t n, const F& f) {
  Math s0 = 0, s1 = 0, s2 = 0, s3 = 0, rest = 0;
  const int64_t quarter = n / 4;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (int64_t i = 0; i < quarter; ++i) {
    s0 += f(i);
    s1 += f(i + quarter);
    s2 += f(i + 2 * quarter);
    s3 += f(i + 3 * quarter);
  }
  for (int64_t i = 4 * quarter; i < n; ++i) rest += f(i);
  return (s0 + s1) + (s2 + s3) + rest;
}

template <class Math, class F>
RUSH_ALWAYS_INLINE double long_sum(int64_t n, const F& f) {
  double total = 0;
  for (int64_t start = 0; start < n; start += kBlock) {
    total += block_sum<Math>(std::min(kBlock, n - start), [&](int64_t i) { return f(start + i); });
  }
  return total;
}

// Count, mean and sum of squared deviations from it, of elements seen so far. Merged by Chan, Golub and LeVeque's
// formula (1979, Updating formulae and a pairwise algorithm for computing sample variances).
struct Moments {
  double count = 0, mean = 0, m2 = 0;

  void merge(const Moments& other) {
    if (other.count == 0) return;
    const double total = count + other.count, delta = other.mean - mean;
    mean += delta * (other.count / total);
    m2 += other.m2 + delta * delta * (count * other.count / total);
    count = total;
  }
  double var() const { return m2 / count; }  // biased; NaN of nothing
};

template <class T>
Moments moments(const T* x, int64_t n) {
  using Math = opmath_t<T>;
  Moments all;
  for (int64_t start = 0; start < n; start += kBlock) {
    const T* block = x + start;
    const int64_t size = std::min(kBlock, n - start);
    const Math mean =
        block_sum<Math>(size, [=](int64_t i) { return static_cast<Math>(block[i]); }) / static_cast<Math>(size);
    const Math m2 = block_sum<Math>(size, [=](int64_t i) {
      const Math deviation = static_cast<Math>(block[i]) - mean;
      return deviation * deviation;
    });
    all.merge({static_cast<double>(size), mean, m2});
  }
  return all;
}

// Sums over rows into `width` totals. body(begin, end, sums) adds what the rows [begin, end) contribute to `sums`; it
// is called from several threads, each with sums of its own. `cost` is the work of a row, in elements. How the rows are
// cut does not depend on the number of threads, and so neither do the totals.
template <class Math, class Body>
std::vector<double> sum_over_rows(int64_t rows, int64_t width, int64_t cost, const Body& body) {
  constexpr int64_t kRows = 256, kMostParts = 32;
  const int64_t wanted = std::max<int64_t>(1, rows * std::max<int64_t>(cost, 1) / kGrain);
  const int64_t parts = std::min(kMostParts, wanted);
  std::vector<double> totals(static_cast<size_t>(parts * width), 0.0);
  parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    std::vector<Math> sums(static_cast<size_t>(width));
    for (int64_t part = first; part < last; ++part) {
      const int64_t end = rows * (part + 1) / parts;
      for (int64_t row = rows * part / parts; row < end; row += kRows) {
        std::fill(sums.begin(), sums.end(), Math(0));
        body(row, std::min(row + kRows, end), sums.data());
        for (int64_t i = 0; i < width; ++i) totals[part * width + i] += sums[i];
      }
    }
  });
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < width; ++i) totals[i] += totals[part * width + i];
  }
  return totals;
}

}  // namespace rush::cpu
