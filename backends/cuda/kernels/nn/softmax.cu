// The forward pass of softmax and log_softmax. In the last dimension, a row stays in registers, see Note [Rows in
// registers]; rows that are too long for that are read twice, and so are columns in other dimensions. Few long rows are
// cut into chunks, so that all of the device reads them.
#include "core/ops/nn/softmax.h"

#include "backends/cuda/kernels/reduce/online_sum.h"
#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/rows.h"

namespace rush::cuda {

namespace {

// To the precision of T: the fast instruction's error is far below that of 16 bits.
template <class T>
__device__ opmath_t<T> exp_for(opmath_t<T> x) {
  if constexpr (is_reduced_float_v<T>) {
    return __expf(x);
  } else {
    return std::exp(x);
  }
}

constexpr int kChunkThreads = 512;

// The exponentials are computed twice rather than kept: registers are scarcer here than instructions.
template <class T, bool kWide>
__global__ void __launch_bounds__(1024) softmax_rows(T* out, const T* x, int64_t rows, int n, bool log) {
  using Math = opmath_t<T>;
  using Row = PackedRow<T, kWide>;
  Row row;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < rows; first += step) {
    const int64_t r = first + threadIdx.y;
    const int size = r < rows ? n : 0;
    row.load(x + r * n, size);
    Math largest = functors::lowest_of<Math>(), sum(0);
    row.for_each(size, [&](Math value) { largest = functors::TakeMax()(largest, value); });
    largest = combine_row(largest, functors::Max<Math>());
    row.for_each(size, [&](Math value) { sum += exp_for<T>(value - largest); });
    sum = sum_row(sum);
    if (log) {
      const Math log_sum = std::log(sum);
      row.store(out + r * n, size, [&](Math(&values)[Row::kLanes], int) {
#pragma unroll
        for (int l = 0; l < Row::kLanes; ++l) values[l] = values[l] - largest - log_sum;
      });
    } else {
      const Math scale = 1 / sum;
      row.store(out + r * n, size, [&](Math(&values)[Row::kLanes], int) {
#pragma unroll
        for (int l = 0; l < Row::kLanes; ++l) values[l] = exp_for<T>(values[l] - largest) * scale;
      });
    }
  }
}

template <class T>
using SumOf = typename OnlineSum<opmath_t<T>>::Acc;

template <class Math>
__device__ Math normalised(Math x, const typename OnlineSum<Math>::Acc& total, bool log) {
  // An infinite largest element makes the sum NaN.
  const Math sum = std::isinf(total.largest) ? std::numeric_limits<Math>::quiet_NaN() : total.sum;
  return log ? x - (total.largest + std::log(sum)) : std::exp(x - total.largest) / sum;
}

// body(i, element i) for the calling thread's elements of a row, some of which are on their way from memory at a time.
template <class T, class Body>
__device__ void for_each_ahead(const T* row, int64_t n, const Body& body) {
  constexpr int kAhead = 8;
  const int64_t step = blockDim.x;
  for (int64_t first = threadIdx.x; first < n; first += kAhead * step) {
    T values[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (first + k * step < n) values[k] = row[first + k * step];
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (first + k * step < n) body(first + k * step, static_cast<opmath_t<T>>(values[k]));
    }
  }
}

// The sum over n elements, for all threads of the block.
template <class T, class F>
__device__ typename F::Acc sum_of_row(const F& f, const T* x, int64_t n) {
  auto acc = f.identity();
  for_each_ahead(x, n, [&](int64_t, opmath_t<T> value) { acc = f.take(acc, value); });
  return combine_row(acc, f);
}

template <class T>
__device__ void normalise_row(T* out, const T* x, int64_t n, const SumOf<T>& total, bool log) {
  for_each_ahead(x, n, [&](int64_t i, opmath_t<T> value) { out[i] = static_cast<T>(normalised(value, total, log)); });
}

template <class T>
__global__ void __launch_bounds__(1024) softmax_long_rows(T* out, const T* x, int64_t rows, int64_t n, bool log) {
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const auto total = sum_of_row(OnlineSum<opmath_t<T>>(), x + r * n, n);
    normalise_row(out + r * n, x + r * n, n, total, log);
  }
}

// Block (c, r) has chunk c of row r. The sums of a row's chunks are neighbours.
template <class T>
__global__ void __launch_bounds__(kChunkThreads) sum_chunks(SumOf<T>* sums, const T* x, int64_t n, int64_t chunk) {
  const int64_t begin = blockIdx.x * chunk, row = blockIdx.y;
  const auto sum = sum_of_row(OnlineSum<opmath_t<T>>(), x + row * n + begin, std::min<int64_t>(chunk, n - begin));
  if (threadIdx.x == 0) sums[row * gridDim.x + blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(kChunkThreads)
    normalise_chunks(T* out, const SumOf<T>* sums, const T* x, int64_t n, int64_t chunk, bool log) {
  const OnlineSum<opmath_t<T>> f;
  const int64_t begin = blockIdx.x * chunk, row = blockIdx.y, start = row * n + begin;
  auto total = f.identity();
  for (unsigned c = threadIdx.x; c < gridDim.x; c += blockDim.x) {
    total = f.combine(total, sums[row * gridDim.x + c]);
  }
  total = combine_row(total, f);
  normalise_row(out + start, x + start, std::min<int64_t>(chunk, n - begin), total, log);
}

template <class T>
void launch_long_rows(const char* op, T* out, const T* x, int64_t rows, int64_t n, bool log) {
  const int64_t wanted = 2 * int64_t{current_properties().multiProcessorCount} / rows;  // two blocks each
  const int64_t chunks = std::min(wanted, n / (4 * kChunkThreads));
  if (chunks < 4) {  // a second launch would gain little
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(rows, 1 << 30));
    return launch_kernel(op, softmax_long_rows<T>, {blocks, 1024}, out, x, rows, n, log);
  }
  const int64_t chunk = (n + chunks - 1) / chunks, count = (n + chunk - 1) / chunk;
  const dim3 grid(static_cast<unsigned>(count), static_cast<unsigned>(rows));
  const Scratch sums(static_cast<size_t>(count * rows) * sizeof(SumOf<T>));
  launch_kernel(op, sum_chunks<T>, {grid, kChunkThreads}, sums.as<SumOf<T>>(), x, n, chunk);
  launch_kernel(op, normalise_chunks<T>, {grid, kChunkThreads}, out, sums.as<SumOf<T>>(), x, n, chunk, log);
}

// Threads with the same x share the elements of a column.
template <class T>
__global__ void __launch_bounds__(kThreads) softmax_columns(T* out, const T* x, AlongDim shape, bool log) {
  using Math = opmath_t<T>;
  using Acc = typename OnlineSum<Math>::Acc;
  const OnlineSum<Math> f;
  __shared__ Acc shared[kThreads];
  const int64_t tiles = (shape.inner + blockDim.x - 1) / blockDim.x;
  for (int64_t task = blockIdx.x; task < shape.outer * tiles; task += gridDim.x) {
    const int64_t column = task % tiles * blockDim.x + threadIdx.x;
    const int64_t start = task / tiles * shape.size * shape.inner + column;
    const int64_t n = column < shape.inner ? shape.size : 0;
    Acc acc = f.identity();
    for (int64_t i = threadIdx.y; i < n; i += blockDim.y) {
      acc = f.take(acc, static_cast<Math>(x[start + i * shape.inner]));
    }
    shared[threadIdx.y * blockDim.x + threadIdx.x] = acc;
    __syncthreads();
    acc = shared[threadIdx.x];
    for (unsigned y = 1; y < blockDim.y; ++y) acc = f.combine(acc, shared[y * blockDim.x + threadIdx.x]);
    for (int64_t i = threadIdx.y; i < n; i += blockDim.y) {
      const int64_t at = start + i * shape.inner;
      out[at] = static_cast<T>(normalised(static_cast<Math>(x[at]), acc, log));
    }
    __syncthreads();
  }
}

struct SoftmaxLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const AlongDim& shape, bool log) {
    if (input.numel() == 0) return;
    const T* x = input.data_ptr<T>();
    T* out = output.data_ptr<T>();
    const char* op = log ? "log_softmax" : "softmax";
    if (shape.inner > 1) {
      const unsigned across = shape.inner >= 32 ? 32 : 8;
      const int64_t tiles = (shape.inner + across - 1) / across;
      const auto blocks = static_cast<unsigned>(std::min<int64_t>(shape.outer * tiles, 1 << 30));
      launch_kernel(op, softmax_columns<T>, {blocks, dim3(across, kThreads / across)}, out, x, shape, log);
    } else if (rows_are_wide<T>(shape.size, x, out) && shape.size <= PackedRow<T, true>::Access::kLongest) {
      using Access = typename PackedRow<T, true>::Access;
      const auto l = RowLaunch::of_short_rows(shape.outer, shape.size, Access::kHeld, Access::kLanes);
      launch_kernel(op, softmax_rows<T, true>, {l.grid, l.block}, out, x, shape.outer, static_cast<int>(shape.size),
                    log);
    } else if (shape.size <= PackedRow<T, false>::Access::kLongest) {
      const auto l = RowLaunch::of_short_rows(shape.outer, shape.size, PackedRow<T, false>::Access::kHeld, 1);
      launch_kernel(op, softmax_rows<T, false>, {l.grid, l.block}, out, x, shape.outer, static_cast<int>(shape.size),
                    log);
    } else {
      launch_long_rows(op, out, x, shape.outer, shape.size, log);
    }
  }
};

template <class T>
struct StoreLogSum {
  T* out;
  __device__ void operator()(int64_t at, const typename OnlineSum<opmath_t<T>>::Acc& acc) const {
    using std::log;
    using Math = opmath_t<T>;
    // Infinity stands for itself, of either sign.
    out[at] = static_cast<T>(std::isinf(acc.largest) ? Math(acc.largest) : Math(acc.largest) + log(acc.sum));
  }
};

struct LogSumExpLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const AlongDim& shape) {
    const ReduceDims dims = {{shape.outer, shape.size * shape.inner, shape.inner, false},
                             {shape.size, shape.inner, 0, true},
                             {shape.inner, 1, 1, false}};
    reduce_dims("logsumexp", input.data_ptr<T>(), OnlineSum<opmath_t<T>>(), StoreLogSum<T>{output.data_ptr<T>()}, dims);
  }
};

}  // namespace

void register_softmax() {
  set_by_dtype<kernels::softmax, SoftmaxLoop, RealFloatTypes, 1>(kCUDA);
  set_by_dtype<kernels::logsumexp, LogSumExpLoop, FloatTypes, 1>(kCUDA);
}

}  // namespace rush::cuda
