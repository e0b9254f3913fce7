// The speed of lab 6's products of float32 matrices on one thread, in GFLOP/s, a line for each: the library's loops
// (the learner's, where they are linked in their place), two ways that need no packing, and the most that a core can
// do.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "backends/cpu/linalg/gemm_pack.h"

using namespace rush;

namespace {

constexpr int64_t kSize = 512;
// Of C, that the slow ways compute: a measurement should end before another program gets the core.
constexpr int64_t kSlowRows = 16;
using Floats = std::vector<float>;
using Clock = std::chrono::steady_clock;

// The best of several runs, for at most a fifth of a second.
template <class Run>
double gflops(double operations, const Run& run) {
  double best = 1e9, all = 0;
  for (int i = 0; i < 100 && all < 0.2; ++i) {
    const auto begin = Clock::now();
    run();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::min(best, seconds);
    all += seconds;
  }
  return operations / best * 1e-9;
}

// C(i, j) by C(i, j), with a row of A and a column of B.
[[gnu::noinline]] void three_loops(const Floats& a, const Floats& b, Floats& c) {
  for (int64_t i = 0; i < kSlowRows; ++i) {
    for (int64_t j = 0; j < kSize; ++j) {
      float sum = 0;
      for (int64_t d = 0; d < kSize; ++d) sum += a[i * kSize + d] * b[d * kSize + j];
      c[i * kSize + j] = sum;
    }
  }
}

// Blocks that fit the L1 cache, and an innermost loop over a row of C, which the compiler vectorises.
[[gnu::noinline]] void by_blocks(const Floats& a, const Floats& b, Floats& c) {
  constexpr int64_t block = 64;
  std::fill(c.begin(), c.begin() + kSlowRows * kSize, 0.0F);
  for (int64_t d0 = 0; d0 < kSize; d0 += block) {
    for (int64_t j0 = 0; j0 < kSize; j0 += block) {
      for (int64_t i = 0; i < kSlowRows; ++i) {
        for (int64_t d = d0; d < d0 + block; ++d) {
          const float factor = a[i * kSize + d];
          const float* row = &b[d * kSize + j0];
          float* out = &c[i * kSize + j0];
          for (int64_t j = 0; j < block; ++j) out[j] += factor * row[j];
        }
      }
    }
  }
}

// Multiplications and additions of vectors in registers, enough of them that none waits for another.
[[gnu::noinline]] float only_arithmetic(int64_t steps) {
  constexpr int chains = 12;
  cpu::Vec::Floats sums[chains] = {};
  cpu::Vec::Floats factor = cpu::Vec(0.5F).lanes();
  for (auto& sum : sums) __asm__("" : "+x"(sum));  // so that the compiler takes them for different numbers
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (auto& sum : sums) {
      sum = sum * factor + factor;
    }
  }
  float total = 0;
  for (const auto& sum : sums) total += sum[0];
  return total;
}

}  // namespace

int main() {
  Floats a(kSize * kSize, 1), b(kSize * kSize, 2), c(kSize * kSize);
  constexpr double row_operations = 2.0 * kSize * kSize;
  constexpr int64_t steps = 100'000;
  float sink = 0;
  const cpu::MatrixSource<float> rows(a.data(), kSize, 1), columns(b.data(), 1, kSize);
  const double loops = gflops(row_operations * kSlowRows, [&] { three_loops(a, b, c); });
  const double blocks = gflops(row_operations * kSlowRows, [&] { by_blocks(a, b, c); });
  const double packed = gflops(row_operations * kSize, [&] {
    cpu::multiply<float>(kSize, kSize, kSize, rows, columns, 1, 0, {c.data(), kSize, 1});
  });
  const double peak = gflops(2.0 * 12 * cpu::Vec::kSize * steps, [&] { sink += only_arithmetic(steps); });
  std::printf("three_loops %.2f\nby_blocks %.2f\npacked %.2f\npeak %.2f\n", loops, blocks, packed, peak);
  return sink < 0 || c[0] != 2 * kSize;
}
