// The reduction engine: any functor of backends/functors/reduce.h over any set of dimensions, strides and dtypes.
#pragma once
#include <algorithm>

#include "backends/cuda/check.h"
#include "backends/cuda/device_properties.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/block_combine.h"
#include "backends/cuda/kernels/reduce/reduce_shape.h"
#include "backends/cuda/memory/scratch.h"

namespace rush::cuda {

// Note [How a reduction runs on the GPU]
// Dimensions are sorted by stride, and neighbours that are contiguous with each other are coalesced. Then
//   if the innermost one is reduced, a row of threads computes an output, with accesses of 16 bytes;
//   if the innermost one is kept, neighbouring threads compute neighbouring outputs, and rows of threads share the
//     elements of each.
// If that makes too few thread blocks to fill the device, the elements of every output are split into chunks, whose
// accumulators go to scratch memory, and a second kernel combines them. There are no atomics: the order of summation
// depends on the shape, the kernel and the device alone, so results repeat.
//
// A functor may have, instead of take(acc, x), take_at(acc, x, offset, i): x is element `offset` of the input and the
// i-th of the elements that its output is reduced from.

// Marks a functor that is too rarely used or too slow for kernels of wide accesses.
template <class F>
struct Narrow : F {
  static constexpr bool kNarrow = true;
};

// Elements of a 16-byte access; one where the accumulators would not fit the registers.
template <class T, class F>
constexpr int reduce_lanes() {
  if constexpr (requires { F::kNarrow; }) return 1;
  return is_floating_v<T> && sizeof(typename F::Acc) <= 16 ? 16 / sizeof(T) : 1;
}
template <class T, class F>
inline constexpr int kReduceLanes = reduce_lanes<T, F>();

namespace reduce {

inline constexpr int kUnroll = 4;  // accesses in flight

template <class F, class T>
__device__ void take(const F& f, typename F::Acc& acc, const T& x, int64_t offset, int64_t i) {
  if constexpr (requires { f.take_at(acc, static_cast<typename F::In>(x), offset, i); }) {
    acc = f.take_at(acc, static_cast<typename F::In>(x), offset, i);
  } else {
    acc = f.take(acc, static_cast<typename F::In>(x));
  }
}

// Accumulates elements [begin, end) of the output whose first element is x[base], with one row of threads.
template <class T, int kLanes, class F>
__device__ typename F::Acc along_run(const F& f, const T* x, int64_t base, const ReduceShape& g, int64_t begin,
                                     int64_t end) {
  typename F::Acc acc = f.identity();
  const int64_t step = blockDim.x;
  if constexpr (kLanes == 1) {
    int64_t i = begin + threadIdx.x;
    for (; i + (kUnroll - 1) * step < end; i += kUnroll * step) {
      T value[kUnroll];
      int64_t at[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        at[u] = base + g.reduced.offset(i + u * step);
        value[u] = x[at[u]];
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) take(f, acc, value[u], at[u], i + u * step);
    }
    for (; i < end; i += step) {
      const int64_t at = base + g.reduced.offset(i);
      take(f, acc, x[at], at, i);
    }
  } else {
    // A single contiguous range may be unaligned, so its ends are read one by one. Several ranges consist of whole
    // vectors.
    const bool one_run = g.reduced.dims <= 1;
    int64_t first = begin, last = end;
    if (one_run) {
      const auto misplaced = static_cast<int64_t>(reinterpret_cast<uintptr_t>(x + base + begin) / sizeof(T) % kLanes);
      first = std::min<int64_t>(end, begin + (misplaced == 0 ? 0 : kLanes - misplaced));
      last = first + (end - first) / kLanes * kLanes;
      const int64_t before = begin + threadIdx.x, after = last + threadIdx.x;
      if (before < first) take(f, acc, x[base + before], base + before, before);
      if (after < end) take(f, acc, x[base + after], base + after, after);
    }
    using Vector = Lanes<T, kLanes>;
    const auto place = [&](int64_t i) { return base + (one_run ? i : g.reduced.offset(i)); };
    int64_t i = first + static_cast<int64_t>(threadIdx.x) * kLanes;
    const int64_t stride = step * kLanes;
    for (; i + (kUnroll - 1) * stride < last; i += kUnroll * stride) {
      Vector value[kUnroll];
      int64_t at[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        at[u] = place(i + u * stride);
        value[u] = *reinterpret_cast<const Vector*>(x + at[u]);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
        for (int l = 0; l < kLanes; ++l) take(f, acc, value[u].lane[l], at[u] + l, i + u * stride + l);
      }
    }
    for (; i < last; i += stride) {
      const int64_t at = place(i);
      const Vector value = *reinterpret_cast<const Vector*>(x + at);
#pragma unroll
      for (int l = 0; l < kLanes; ++l) take(f, acc, value.lane[l], at + l, i + l);
    }
  }
  return acc;
}

// One row of threads for each output. A row of fewer than kLanes threads would miss the unaligned ends of the elements,
// so blockDim.x >= kLanes where there are any.
template <class T, int kLanes, class F, class Sink>
__global__ void __launch_bounds__(kThreads) rows_kernel(const T* x, F f, Sink sink, typename F::Acc* partials,
                                                        int64_t chunk, const __grid_constant__ ReduceShape g) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < g.kept.count; first += step) {
    const int64_t o = first + threadIdx.y;
    typename F::Acc acc = f.identity();
    int64_t base = 0, out = 0;
    if (o < g.kept.count) {
      g.kept.locate(o, base, out);
      const int64_t begin = blockIdx.y * chunk;
      acc = along_run<T, kLanes>(f, x, base, g, begin, std::min<int64_t>(g.reduced.count, begin + chunk));
    }
    acc = combine_row(acc, f);
    if (threadIdx.x != 0 || o >= g.kept.count) continue;
    if (partials) {
      partials[o * gridDim.y + blockIdx.y] = acc;
    } else {
      sink(out, acc);
    }
  }
}

// kLanes neighbouring outputs for each thread; the rows of threads share the elements.
template <class T, int kLanes, class F, class Sink>
__global__ void __launch_bounds__(kThreads) columns_kernel(const T* x, F f, Sink sink, typename F::Acc* partials,
                                                           int64_t chunk, const __grid_constant__ ReduceShape g) {
  using Acc = typename F::Acc;
  using Vector = Lanes<T, kLanes>;
  __shared__ alignas(16) unsigned char memory[kThreads * kLanes * sizeof(Acc)];
  Acc* shared = reinterpret_cast<Acc*>(memory);
  const int64_t width = static_cast<int64_t>(blockDim.x) * kLanes, tiles = (g.columns + width - 1) / width;
  for (int64_t task = blockIdx.x; task < g.kept.count * tiles; task += gridDim.x) {
    const int64_t o = g.kept.count == 1 ? 0 : task / tiles, column = (task - o * tiles) * width + threadIdx.x * kLanes;
    int64_t base = 0, out = 0;
    g.kept.locate(o, base, out);
    base += column * g.column_stride;
    Acc acc[kLanes];
#pragma unroll
    for (int l = 0; l < kLanes; ++l) acc[l] = f.identity();
    if (column < g.columns) {
      const int64_t begin = blockIdx.y * chunk, end = std::min<int64_t>(g.reduced.count, begin + chunk),
                    step = blockDim.y;
      int64_t i = begin + threadIdx.y;
      for (; i + (kUnroll - 1) * step < end; i += kUnroll * step) {
        Vector value[kUnroll];
        int64_t at[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          at[u] = base + g.reduced.offset(i + u * step);
          value[u] = *reinterpret_cast<const Vector*>(x + at[u]);
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
          for (int l = 0; l < kLanes; ++l) take(f, acc[l], value[u].lane[l], at[u] + l, i + u * step);
        }
      }
      for (; i < end; i += step) {
        const int64_t at = base + g.reduced.offset(i);
        const Vector value = *reinterpret_cast<const Vector*>(x + at);
#pragma unroll
        for (int l = 0; l < kLanes; ++l) take(f, acc[l], value.lane[l], at + l, i);
      }
    }
#pragma unroll
    for (int l = 0; l < kLanes; ++l) shared[(threadIdx.y * kLanes + l) * blockDim.x + threadIdx.x] = acc[l];
    for (int half = static_cast<int>(blockDim.y) / 2; half > 0; half /= 2) {
      __syncthreads();
      if (static_cast<int>(threadIdx.y) < half) {
#pragma unroll
        for (int l = 0; l < kLanes; ++l) {
          acc[l] = f.combine(acc[l], shared[((threadIdx.y + half) * kLanes + l) * blockDim.x + threadIdx.x]);
          shared[(threadIdx.y * kLanes + l) * blockDim.x + threadIdx.x] = acc[l];
        }
      }
    }
    if (threadIdx.y == 0 && column < g.columns) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        if (partials) {
          partials[(o * g.columns + column + l) * gridDim.y + blockIdx.y] = acc[l];
        } else {
          sink(out + (column + l) * g.column_out_stride, acc[l]);
        }
      }
    }
    __syncthreads();
  }
}

template <class F, class Sink>
__global__ void __launch_bounds__(kThreads) finish_kernel(const typename F::Acc* partials, F f, Sink sink,
                                                          int64_t chunks, const __grid_constant__ ReduceShape g) {
  const int64_t outputs = g.kept.count * g.columns, step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < outputs; first += step) {
    const int64_t o = first + threadIdx.y;
    typename F::Acc acc = f.identity();
    if (o < outputs) {
      for (int64_t p = threadIdx.x; p < chunks; p += blockDim.x) acc = f.combine(acc, partials[o * chunks + p]);
    }
    acc = combine_row(acc, f);
    if (threadIdx.x != 0 || o >= outputs) continue;
    int64_t base = 0, out = 0;
    g.kept.locate(o / g.columns, base, out);
    sink(out + o % g.columns * g.column_out_stride, acc);
  }
}

// The kernel for a shape, and how many of its blocks the device runs at a time.
template <class T, class F, class Sink>
struct Kernel {
  using Function = void (*)(const T*, F, Sink, typename F::Acc*, int64_t, ReduceShape);
  Function function;
  int64_t resident;

  template <Function f>
  static Kernel of() {
    static const int64_t blocks = [] {
      int each = 0;
      RUSH_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, f, kThreads, 0));
      return int64_t{each} * current_properties().multiProcessorCount;
    }();
    return {f, blocks};
  }
  static Kernel pick(bool by_columns, bool wide) {
    constexpr int kLanes = kReduceLanes<T, F>;
    if (by_columns) return wide ? of<columns_kernel<T, kLanes, F, Sink>>() : of<columns_kernel<T, 1, F, Sink>>();
    return wide ? of<rows_kernel<T, kLanes, F, Sink>>() : of<rows_kernel<T, 1, F, Sink>>();
  }
};

template <class T, class F, class Sink>
void launch(const char* op, const T* x, const F& f, const Sink& sink, const ReduceShape& g) {
  using Acc = typename F::Acc;
  ReduceLaunch l(g, x, sizeof(T), kReduceLanes<T, F>);
  const auto kernel = Kernel<T, F, Sink>::pick(g.by_columns, l.lanes > 1);
  l.cut(g, kernel.resident, kUnroll);
  const Scratch scratch(l.chunks > 1 ? static_cast<size_t>(g.kept.count * g.columns * l.chunks) * sizeof(Acc) : 0);
  Acc* partials = l.chunks > 1 ? scratch.as<Acc>() : nullptr;
  launch_kernel(op, kernel.function, {l.grid, l.block}, x, f, sink, partials, l.chunk, g);
  if (!partials) return;
  launch_kernel(op, finish_kernel<F, Sink>, {l.finish_grid, l.finish_block}, partials, f, sink, l.chunks, g);
}

}  // namespace reduce

template <class Out, class F>
struct StoreResult {
  Out* out;
  F f;
  __device__ void operator()(int64_t at, const typename F::Acc& acc) const {
    out[at] = static_cast<Out>(f.result(acc));
  }
};

// Reduces x as `dims` say. sink(offset, acc), on the device, stores the accumulator of the output element at `offset`.
template <class T, class F, class Sink>
void reduce_dims(const char* op, const T* x, const F& f, const Sink& sink, const ReduceDims& dims) {
  const ReduceShape shape(op, dims);
  if (shape.kept.count * shape.columns == 0) return;
  reduce::launch(op, x, f, sink, shape);
}

// Reduces `dims` of `input` into the row-major `output`, whose reduced dimensions have size one.
template <class T, class F, class Sink>
void reduce_with(const char* op, const F& f, const Tensor& output, const Tensor& input, IntArrayRef dims,
                 const Sink& sink) {
  reduce_dims(op, static_cast<const T*>(input.data_ptr()), f, sink, functors::reduce_dims_of(output, input, dims));
}

// As above; the functor's result is the output.
template <class T, class Out, class F>
void reduce_to(const char* op, const F& f, const Tensor& output, const Tensor& input, IntArrayRef dims) {
  reduce_with<T>(op, f, output, input, dims, StoreResult<Out, F>{output.data_ptr<Out>(), f});
}

}  // namespace rush::cuda
