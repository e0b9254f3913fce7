// Kernels that keep a whole row of numbers in registers: the launch, and the row.
#pragma once
#include <algorithm>

#include "backends/cuda/check.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/block_combine.h"
#include "backends/cuda/stream/current_stream.h"

namespace rush::cuda {

// Note [Rows in registers]
// A row is read once, in 16-byte accesses, and stays in the registers of the threads that share it: 32 for a short row,
// up to 1024 for a long one, kHold elements each (half as many of 8 bytes). Rows whose length is no multiple of the
// access, or that start elsewhere, are read element by element.
//
// Kernels that move several rows for each row have a variant in which a single warp holds a row, of up to 32 elements
// for each thread: warps that need no barrier compute while others load. Values that are used twice stay in registers
// in the dtype in which they were read.
template <class T, bool kWide, int kHold = 16>
struct RowAccess {
  static constexpr int kLanes = kWide ? 16 / sizeof(T) : 1;
  static constexpr int kHeld = !kWide ? 8 : sizeof(T) == 8 ? kHold / 2 : kHold;
  static constexpr int kVectors = kHeld / kLanes;
  static constexpr int64_t kLongest = int64_t{1024} * kHeld;
  static constexpr int64_t kLongestOfWarp = int64_t{32} * kHeld;
};

// The calling thread's elements of a row of n: its vector v starts at column(v).
template <class T, bool kWide, int kHold = 16>
struct HeldRow {
  using Access = RowAccess<T, kWide, kHold>;
  using Math = opmath_t<T>;
  Math value[Access::kVectors][Access::kLanes];

  __device__ static int64_t column(int v) {
    return (static_cast<int64_t>(v) * blockDim.x + threadIdx.x) * Access::kLanes;
  }
  // Elements beyond the row become `rest`.
  __device__ void load(const T* row, int64_t n, Math rest) {
    Lanes<T, Access::kLanes> lanes[Access::kVectors];
#pragma unroll
    for (int v = 0; v < Access::kVectors; ++v) {
      if (column(v) < n) lanes[v] = *reinterpret_cast<const Lanes<T, Access::kLanes>*>(row + column(v));
    }
#pragma unroll
    for (int v = 0; v < Access::kVectors; ++v) {
#pragma unroll
      for (int l = 0; l < Access::kLanes; ++l) {
        value[v][l] = column(v) < n ? static_cast<Math>(lanes[v].lane[l]) : rest;
      }
    }
  }
  __device__ void fill(Math number) {
#pragma unroll
    for (int v = 0; v < Access::kVectors; ++v) {
#pragma unroll
      for (int l = 0; l < Access::kLanes; ++l) value[v][l] = number;
    }
  }
  __device__ void store(T* row, int64_t n) const {
#pragma unroll
    for (int v = 0; v < Access::kVectors; ++v) {
      Lanes<T, Access::kLanes> lanes;
#pragma unroll
      for (int l = 0; l < Access::kLanes; ++l) lanes.lane[l] = static_cast<T>(value[v][l]);
      if (column(v) < n) *reinterpret_cast<Lanes<T, Access::kLanes>*>(row + column(v)) = lanes;
    }
  }
  // body(v, l) for every element that lies in the row.
  template <class Body>
  __device__ void for_each(int64_t n, const Body& body) const {
#pragma unroll
    for (int v = 0; v < Access::kVectors; ++v) {
#pragma unroll
      for (int l = 0; l < Access::kLanes; ++l) {
        if (column(v) + l < n) body(v, l);
      }
    }
  }
};

// The calling thread's elements of a row that is read and not changed. 16-bit elements stay packed: twice as many of
// them are in flight in the same registers, and more threads fit a multiprocessor.
template <class T, bool kWide>
struct PackedRow {
  using Access = RowAccess<T, kWide, sizeof(T) == 2 ? 32 : 16>;
  using Math = opmath_t<T>;
  static constexpr int kLanes = Access::kLanes;
  Lanes<T, kLanes> lanes[Access::kVectors];

  __device__ static int column(int v) {
    return (v * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * kLanes;
  }
  __device__ void load(const T* row, int n) {
#pragma unroll
    for (int v = 0; v < Access::kVectors; ++v) {
      if (column(v) < n) lanes[v] = *reinterpret_cast<const Lanes<T, kLanes>*>(row + column(v));
    }
  }
  // body(element)
  template <class Body>
  __device__ void for_each(int n, const Body& body) const {
#pragma unroll
    for (int v = 0; v < Access::kVectors; ++v) {
      if (column(v) >= n) continue;
#pragma unroll
      for (int l = 0; l < kLanes; ++l) body(static_cast<Math>(lanes[v].lane[l]));
    }
  }
  // Writes what body(values, column) makes of the kLanes values from that column on.
  template <class Body>
  __device__ void store(T* row, int n, const Body& body) const {
#pragma unroll
    for (int v = 0; v < Access::kVectors; ++v) {
      if (column(v) >= n) continue;
      Math values[kLanes];
#pragma unroll
      for (int l = 0; l < kLanes; ++l) values[l] = static_cast<Math>(lanes[v].lane[l]);
      body(values, column(v));
      Lanes<T, kLanes> result;
#pragma unroll
      for (int l = 0; l < kLanes; ++l) result.lane[l] = static_cast<T>(values[l]);
      *reinterpret_cast<Lanes<T, kLanes>*>(row + column(v)) = result;
    }
  }
};

// Numbers of kLanes columns, in 16-byte accesses.
template <class Math, int kLanes>
__device__ void read_columns(Math (&to)[kLanes], const Math* from) {
  constexpr int kEach = std::min<int>(kLanes, 16 / sizeof(Math));
#pragma unroll
  for (int l = 0; l < kLanes; l += kEach) {
    const auto some = *reinterpret_cast<const Lanes<Math, kEach>*>(from + l);
#pragma unroll
    for (int e = 0; e < kEach; ++e) to[l + e] = some.lane[e];
  }
}

// The columns of a row that a lane of its warp has: body(v, column) for vector v of them, if it lies in the row.
template <int kVectors, int kLanes, class Body>
__device__ void for_each_vector(int n, const Body& body) {
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int column = (v * 32 + static_cast<int>(threadIdx.x)) * kLanes;
    if (column < n) body(v, column);
  }
}

// Calls body(std::integral_constant<int, kHold>()) with the fewest elements for each thread with which a warp can hold
// a row of n, read as vectors. Returns false and calls nothing if that would be too many.
template <class T, class Body>
bool for_rows_of_warps(int64_t n, const Body& body) {
  bool done = false;
  const auto with = [&](auto hold) {
    if (done || n > RowAccess<T, true, decltype(hold)::value>::kLongestOfWarp) return;
    body(hold);
    done = true;
  };
  with(std::integral_constant<int, 16>());
  with(std::integral_constant<int, 24>());
  with(std::integral_constant<int, 32>());
  return done;
}

struct RowLaunch {
  dim3 grid, block;
  // `most`: the largest number of blocks, which loop over the rows. `least`: the smallest number of threads for a row.
  RowLaunch(int64_t rows, int64_t columns, int held, int64_t most = int64_t{1} << 30, int64_t least = 32) {
    int64_t width = least;
    while (width < 1024 && width * held < columns) width *= 2;
    const int64_t height = std::max<int64_t>(1, kThreads / width);
    block = dim3(static_cast<unsigned>(width), static_cast<unsigned>(height));
    grid = dim3(static_cast<unsigned>(std::clamp<int64_t>((rows + height - 1) / height, 1, most)));
  }
  // With fewer threads than a warp for a row of few accesses, of `lanes` elements each.
  static RowLaunch of_short_rows(int64_t rows, int64_t columns, int held, int lanes) {
    int64_t least = 1;
    while (least < 32 && least * lanes < columns) least *= 2;
    return {rows, columns, held, int64_t{1} << 30, least};
  }
  static RowLaunch of_warps(int64_t rows, int64_t most = int64_t{1} << 30) { return {rows, 32, 1, most}; }
};

// Whether rows of n elements may be read as vectors.
template <class T, class... Pointers>
bool rows_are_wide(int64_t n, const Pointers*... data) {
  return n % RowAccess<T, true>::kLanes == 0 && ((reinterpret_cast<uintptr_t>(data) % 16 == 0) && ...);
}

template <class Math>
struct AddUp {
  __device__ Math combine(Math a, Math b) const { return a + b; }
};

// The sum over the caller's row of threads.
template <class Math>
__device__ Math sum_row(Math x) {
  return combine_row(x, AddUp<Math>());
}

}  // namespace rush::cuda
