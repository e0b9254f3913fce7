// Scans along a dimension, for any functor that has identity, take and combine.
#pragma once
#include "backends/cuda/device_properties.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/block_combine.h"
#include "backends/cuda/memory/scratch.h"
#include "core/ops/reduce/along_dim.h"

namespace rush::cuda {

// Note [How a scan runs on the GPU]
// In the last dimension a warp scans a line or, if there are few long ones, a block, a few elements of each thread at a
// time. In other dimensions a thread scans a line, and neighbouring threads have neighbouring lines. If there are too
// few lines for that, each is split into chunks. A first pass computes the total of every chunk. The last one scans
// each chunk, starting with the totals before it: a block combines these itself, for threads a pass between scans them.
// The chunks depend on the shape and the device alone, so results repeat.
enum class ScanPhase { Totals, Prefixes, Elements };

// F is a reduction's functor, and may have take(acc, x, i) with the element's index in the line. In combine(a, b), a
// has the earlier elements. sink(offset, acc) stores.
template <class T, class F, class Sink>
struct Scan {
  using Acc = typename F::Acc;
  const T* x;
  F f;
  Sink sink;
  AlongDim shape;
  int64_t chunks, chunk;
  Acc* totals;  // (lines, chunks)

  __device__ int64_t start(int64_t line) const {
    return line / shape.inner * shape.size * shape.inner + line % shape.inner;
  }
  // What is combined before a chunk: the prefixes of the line's totals are known when its elements are scanned.
  __device__ Acc before(const Acc* totals, int64_t chunk, ScanPhase phase) const {
    return phase == ScanPhase::Elements && chunk > 0 ? totals[chunk - 1] : f.identity();
  }
  __device__ Acc take(const Acc& acc, const T& value, int64_t i) const {
    using In = typename F::In;
    if constexpr (requires { f.take(acc, static_cast<In>(value), i); }) {
      return f.take(acc, static_cast<In>(value), i);
    } else {
      return f.take(acc, static_cast<In>(value));
    }
  }
};

// The combined values of all lanes up to the caller's, of `lanes` lanes.
template <int lanes = 32, class F>
__device__ typename F::Acc scan_warp(const F& f, typename F::Acc acc) {
#pragma unroll
  for (int delta = 1; delta < lanes; delta *= 2) {
    const auto before = shuffle_up(acc, delta);
    if (static_cast<int>(threadIdx.x % 32) >= delta) acc = f.combine(before, acc);
  }
  return acc;
}

// The `acc` of all threads of the block before the caller's combined, and into `all` those of all threads.
template <class F>
__device__ typename F::Acc scan_block(const F& f, typename F::Acc acc, typename F::Acc& all) {
  using Acc = typename F::Acc;
  constexpr int kWarps = kThreads / 32;
  __shared__ alignas(16) unsigned char memory[kWarps * sizeof(Acc)];
  Acc* warps = reinterpret_cast<Acc*>(memory);
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  acc = scan_warp(f, acc);
  if (lane == 31) warps[warp] = acc;
  __syncthreads();
  const Acc upto_warps = scan_warp<kWarps>(f, warps[lane % kWarps]);  // in every warp
  all = shuffle_from(upto_warps, kWarps - 1);
  const Acc upto_warp = shuffle_from(upto_warps, warp > 0 ? warp - 1 : 0),
            before_warp = warp > 0 ? upto_warp : f.identity();
  const Acc in_warp = shuffle_up(acc, 1);
  __syncthreads();
  return lane > 0 ? f.combine(before_warp, in_warp) : before_warp;
}

// The values of kEach neighbouring elements from `own` on, each combined with those before it.
template <int kEach, class T, class F, class Sink>
__device__ void scan_own(const Scan<T, F, Sink>& s, int64_t start, int64_t own, int64_t end,
                         typename F::Acc (&upto)[kEach]) {
  T values[kEach];  // all on their way from memory at a time
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    if (own + k < end) values[k] = s.x[start + own + k];
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    upto[k] = k == 0 ? s.f.identity() : upto[k - 1];
    if (own + k < end) upto[k] = s.take(upto[k], values[k], own + k);
  }
}

// A warp for each line.
template <class T, class F, class Sink>
__global__ void __launch_bounds__(kThreads) scan_by_warps(Scan<T, F, Sink> s, int64_t lines) {
  using Acc = typename F::Acc;
  const int64_t line = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (line >= lines) return;
  const int64_t start = s.start(line), end = s.shape.size;
  Acc carry = s.f.identity();
  constexpr int kEach = 4;
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int64_t first = 0; first < end; first += 32 * kEach) {
    const int64_t own = first + lane * kEach;
    Acc upto[kEach];
    scan_own(s, start, own, end, upto);
    const Acc all = s.f.combine(carry, scan_warp(s.f, upto[kEach - 1]));
    Acc before = shuffle_up(all, 1);
    if (lane == 0) before = carry;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      if (own + k < end) s.sink(start + own + k, s.f.combine(before, upto[k]));
    }
    carry = shuffle_from(all, 31);
  }
}

// totals[0, n) combined, by all threads of a block and for all of them.
template <class F>
__device__ typename F::Acc combine_totals(const F& f, const typename F::Acc* totals, int64_t n) {
  auto own = f.identity(), all = f.identity();
  const int64_t each = (n + kThreads - 1) / kThreads, begin = threadIdx.x * each;
  for (int64_t c = begin; c < std::min<int64_t>(n, begin + each); ++c) own = f.combine(own, totals[c]);
  scan_block(f, own, all);
  return all;
}

// A block for each chunk of a line. A thread has neighbouring elements; through shared memory, neighbouring threads
// store neighbouring ones.
template <class T, class F, class Sink>
__global__ void __launch_bounds__(kThreads) scan_by_blocks(Scan<T, F, Sink> s, ScanPhase phase) {
  using Acc = typename F::Acc;
  constexpr int kEach = 8, kStep = kThreads * kEach;
  __shared__ alignas(16) unsigned char memory[(kStep + kThreads) * sizeof(Acc)];
  Acc* scanned = reinterpret_cast<Acc*>(memory);
  const auto padded = [](int i) { return i + i / kEach; };  // against bank conflicts
  const int64_t line = blockIdx.x / s.chunks, chunk = blockIdx.x % s.chunks, start = s.start(line);
  const int64_t begin = chunk * s.chunk, end = std::min<int64_t>(s.shape.size, begin + s.chunk);
  const int own = static_cast<int>(threadIdx.x) * kEach;
  Acc* totals = s.totals + line * s.chunks;
  Acc carry = phase == ScanPhase::Totals || chunk == 0 ? s.f.identity() : combine_totals(s.f, totals, chunk);
  for (int64_t first = begin; first < end; first += kStep) {
    Acc upto[kEach], all;
    scan_own(s, start, first + own, end, upto);
    const Acc before = s.f.combine(carry, scan_block(s.f, upto[kEach - 1], all));
    carry = s.f.combine(carry, all);
    if (phase == ScanPhase::Totals) continue;
#pragma unroll
    for (int k = 0; k < kEach; ++k) scanned[padded(own + k)] = s.f.combine(before, upto[k]);
    __syncthreads();
    const int size = static_cast<int>(std::min<int64_t>(kStep, end - first));
    for (int i = static_cast<int>(threadIdx.x); i < size; i += kThreads) s.sink(start + first + i, scanned[padded(i)]);
    // scan_block of the next step waits for all threads before any of them writes there again.
  }
  if (phase == ScanPhase::Totals && threadIdx.x == 0) totals[chunk] = carry;
}

template <class T, class F, class Sink>
__global__ void __launch_bounds__(kThreads) scan_by_threads(Scan<T, F, Sink> s, int64_t tasks, ScanPhase phase) {
  using Acc = typename F::Acc;
  const int64_t task = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (task >= tasks) return;
  Acc acc = s.f.identity();
  if (phase == ScanPhase::Prefixes) {
    Acc* totals = s.totals + task * s.chunks;
    for (int64_t c = 0; c < s.chunks; ++c) totals[c] = acc = s.f.combine(acc, totals[c]);
    return;
  }
  // Neighbouring threads get neighbouring lines.
  const int64_t inner = task % s.shape.inner, rest = task / s.shape.inner;
  const int64_t chunk = rest % s.chunks, line = rest / s.chunks * s.shape.inner + inner, start = s.start(line);
  const int64_t end = std::min<int64_t>(s.shape.size, (chunk + 1) * s.chunk);
  acc = s.before(s.totals + line * s.chunks, chunk, phase);
  for (int64_t i = chunk * s.chunk; i < end; ++i) {
    const int64_t at = start + i * s.shape.inner;
    acc = s.take(acc, s.x[at], i);
    if (phase == ScanPhase::Elements) s.sink(at, acc);
  }
  if (phase == ScanPhase::Totals) s.totals[line * s.chunks + chunk] = acc;
}

template <class T, class F, class Sink>
void scan(const char* op, const T* x, const F& f, const Sink& sink, const AlongDim& shape) {
  using Acc = typename F::Acc;
  const int64_t lines = shape.outer * shape.inner;
  if (lines * shape.size == 0) return;
  const bool along_rows = shape.inner == 1;
  const int64_t processors = current_properties().multiProcessorCount;
  const auto blocks_of = [](int64_t tasks, int64_t each) { return static_cast<unsigned>((tasks + each - 1) / each); };
  if (along_rows && (shape.size <= 1024 || lines >= processors * 32)) {
    const Scan<T, F, Sink> call{x, f, sink, shape, 1, shape.size, nullptr};
    return launch_kernel(op, scan_by_warps<T, F, Sink>, {blocks_of(lines, kThreads / 32), kThreads}, call, lines);
  }
  const int64_t wanted = processors * (along_rows ? 4 : 2048), least = along_rows ? 2048 : 64;
  int64_t chunks = std::clamp<int64_t>(wanted / lines, 1, std::max<int64_t>(1, shape.size / least));
  const int64_t chunk = (shape.size + chunks - 1) / chunks;
  chunks = (shape.size + chunk - 1) / chunk;
  const Scratch totals(chunks > 1 ? static_cast<size_t>(lines * chunks) * sizeof(Acc) : 0);
  const Scan<T, F, Sink> call{x, f, sink, shape, chunks, chunk, totals.template as<Acc>()};
  const auto launch = [&](ScanPhase phase, int64_t tasks) {
    if (along_rows) {
      launch_kernel(op, scan_by_blocks<T, F, Sink>, {static_cast<unsigned>(tasks), kThreads}, call, phase);
    } else {
      launch_kernel(op, scan_by_threads<T, F, Sink>, {blocks_of(tasks, kThreads), kThreads}, call, tasks, phase);
    }
  };
  if (chunks > 1) {
    launch(ScanPhase::Totals, lines * chunks);
    if (!along_rows) launch(ScanPhase::Prefixes, lines);
  }
  launch(ScanPhase::Elements, lines * chunks);
}

}  // namespace rush::cuda
