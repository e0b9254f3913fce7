// Scans along a dimension, for any functor that has identity, take and combine.
#pragma once
#include "backends/cuda/device_properties.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/block_combine.h"
#include "backends/cuda/memory/scratch.h"
#include "core/ops/reduce/along_dim.h"

namespace rush::cuda {

// Note [How a scan runs on the GPU]
// A warp scans a line of the last dimension, kEach elements of each thread at a time. In other dimensions a thread
// scans a line, and neighbouring threads have neighbouring lines. If there are few lines, each is split into chunks:
// one pass computes the total of every chunk, a second one scans the totals, and a third one scans each chunk, starting
// with the totals before it. The chunks depend on the shape and the device alone, so results repeat.
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

// The combined values of all lanes up to the caller's.
template <class F>
__device__ typename F::Acc scan_warp(const F& f, typename F::Acc acc) {
#pragma unroll
  for (int delta = 1; delta < 32; delta *= 2) {
    const auto before = shuffle_up(acc, delta);
    if (static_cast<int>(threadIdx.x % 32) >= delta) acc = f.combine(before, acc);
  }
  return acc;
}

template <class T, class F, class Sink>
__global__ void __launch_bounds__(kThreads) scan_by_warps(Scan<T, F, Sink> s, int64_t tasks, ScanPhase phase) {
  using Acc = typename F::Acc;
  const int64_t task = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (task >= tasks) return;
  // The totals of a line's chunks are a line themselves.
  const bool of_totals = phase == ScanPhase::Prefixes;
  const int64_t line = of_totals ? task : task / s.chunks, chunk = of_totals ? 0 : task % s.chunks;
  const int64_t start = s.start(line), begin = chunk * s.chunk;
  const int64_t end = of_totals ? s.chunks : std::min<int64_t>(s.shape.size, begin + s.chunk);
  Acc* totals = s.totals + line * s.chunks;
  Acc carry = s.before(totals, chunk, phase);
  constexpr int kEach = 4;
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int64_t first = begin; first < end; first += 32 * kEach) {
    const int64_t own = first + lane * kEach;
    T values[kEach];  // all on their way from memory at a time
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      if (own + k < end && !of_totals) values[k] = s.x[start + own + k];
    }
    Acc upto[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      upto[k] = k == 0 ? s.f.identity() : upto[k - 1];
      const int64_t i = own + k;
      if (i < end) upto[k] = of_totals ? s.f.combine(upto[k], totals[i]) : s.take(upto[k], values[k], i);
    }
    const Acc all = s.f.combine(carry, scan_warp(s.f, upto[kEach - 1]));
    Acc before = shuffle_up(all, 1);
    if (lane == 0) before = carry;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      if (own + k >= end || phase == ScanPhase::Totals) break;
      const Acc acc = s.f.combine(before, upto[k]);
      if (of_totals) {
        totals[own + k] = acc;
      } else {
        s.sink(start + own + k, acc);
      }
    }
    carry = shuffle_from(all, 31);
  }
  if (phase == ScanPhase::Totals && lane == 0) totals[chunk] = carry;
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
  const int64_t lines = shape.outer * shape.inner;
  if (lines * shape.size == 0) return;
  const bool by_warps = shape.inner == 1;
  const int64_t processors = current_properties().multiProcessorCount;
  const int64_t wanted = processors * (by_warps ? 64 : 2048), least = by_warps ? 1024 : 64;
  int64_t chunks = std::clamp<int64_t>(wanted / lines, 1, std::max<int64_t>(1, shape.size / least));
  const int64_t chunk = (shape.size + chunks - 1) / chunks;
  chunks = (shape.size + chunk - 1) / chunk;
  const Scratch totals(chunks > 1 ? static_cast<size_t>(lines * chunks) * sizeof(typename F::Acc) : 0);
  const Scan<T, F, Sink> call{x, f, sink, shape, chunks, chunk, totals.template as<typename F::Acc>()};
  const auto kernel = by_warps ? scan_by_warps<T, F, Sink> : scan_by_threads<T, F, Sink>;
  const int64_t per_block = by_warps ? kThreads / 32 : kThreads;
  const auto launch = [&](ScanPhase phase, int64_t tasks) {
    launch_kernel(op, kernel, {static_cast<unsigned>((tasks + per_block - 1) / per_block), kThreads}, call, tasks,
                  phase);
  };
  if (chunks > 1) {
    launch(ScanPhase::Totals, lines * chunks);
    launch(ScanPhase::Prefixes, lines);
  }
  launch(ScanPhase::Elements, lines * chunks);
}

}  // namespace rush::cuda
