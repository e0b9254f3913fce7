// The gradients of layer norm, RMS norm and layer norm of a sum, for rows that registers hold. With
// x^ = (x - mean) rstd and g = dy w,
//   dx = rstd (g - mean(g) - x^ mean(g x^)),   dw = sum(dy x^),   db = sum(dy),
// without mean(g) in RMS norm; in layer norm of a sum, the sum's own gradient is added to dx. A thread block loops over
// rows, and keeps a row and its partial sums of dw and db in registers; a reduction adds the partial sums.
#pragma once
#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/rows.h"
#include "backends/functors/random.h"
#include "backends/functors/reduce.h"

namespace rush::cuda::layer_norm {

inline constexpr int kHold = 8;  // elements of each of four rows
inline constexpr int kSums = 3;  // of columns: dw, db, and those of `lowered`

template <class Math>
struct Sums {
  Math g, g_hat;
};
template <class Math>
struct AddSums {
  using Acc = Sums<Math>;
  __device__ Acc combine(const Acc& a, const Acc& b) const { return {a.g + b.g, a.g_hat + b.g_hat}; }
};

template <class T, class G = T, class L = G>
struct Backward {
  using Math = opmath_t<T>;
  const G* dy;
  const T* x;
  T* dx;                             // null: not needed
  const Math *mean, *rstd, *weight;  // mean null: RMS norm; weight null: ones
  int64_t rows, n;
  const T* through = nullptr;  // null, or added to dx
  L* lowered = nullptr;        // null, or a copy of dx in L, by dropout's mask and scale unless that is null
  const bool* mask = nullptr;
  Math scale = 1;

  __device__ Math centre(int64_t row) const { return mean ? mean[row] : Math(0); }
  __device__ Math hat(int64_t i, int64_t row) const { return (static_cast<Math>(x[i]) - centre(row)) * rstd[row]; }
  __device__ Math g(int64_t i, int64_t column) const {
    return static_cast<Math>(dy[i]) * (weight ? weight[column] : Math(1));
  }
  // What is stored of dx in `lowered`.
  __device__ L low(Math value, bool kept) const {
    const L rounded = static_cast<L>(value);
    return mask ? static_cast<L>(functors::DropoutBackward<Math>{scale}(static_cast<Math>(rounded), kept)) : rounded;
  }
};

// A row of numbers that memory holds as T, in the lanes of `row`.
template <class Row, class T>
__device__ void load_lanes(Row& row, const T* from, int64_t n) {
  constexpr int kLanes = Row::Access::kLanes;
#pragma unroll
  for (int v = 0; v < Row::Access::kVectors; ++v) {
    const bool lies = Row::column(v) < n;
    Lanes<T, kLanes> lanes;
    if (lies) lanes = *reinterpret_cast<const Lanes<T, kLanes>*>(from + Row::column(v));
#pragma unroll
    for (int l = 0; l < kLanes; ++l) {
      row.value[v][l] = lies ? static_cast<typename Row::Math>(lanes.lane[l]) : typename Row::Math(0);
    }
  }
}
template <class Row, class T>
__device__ void store_lanes(const Row& row, T* to, int64_t n) {
  constexpr int kLanes = Row::Access::kLanes;
#pragma unroll
  for (int v = 0; v < Row::Access::kVectors; ++v) {
    if (Row::column(v) >= n) continue;
    Lanes<T, kLanes> lanes;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) lanes.lane[l] = static_cast<T>(row.value[v][l]);
    *reinterpret_cast<Lanes<T, kLanes>*>(to + Row::column(v)) = lanes;
  }
}

// Adds the values of the thread rows of a block; the first row gets the sum.
template <int kVectors, int kLanes, class Math>
__device__ void add_thread_rows(Math (&row)[kVectors][kLanes], Math (&shared)[kLanes][kThreads]) {
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
#pragma unroll
    for (int l = 0; l < kLanes; ++l) shared[l][thread] = row[v][l];
    __syncthreads();
    for (unsigned y = 1; threadIdx.y == 0 && y < blockDim.y; ++y) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) row[v][l] += shared[l][y * blockDim.x + threadIdx.x];
    }
    __syncthreads();
  }
}

// A block writes its partial sums of dw and db to row blockIdx.x of `shares` (blocks, 3, n), which may be null. kOfSum:
// whether the kernel reads `through` and writes `lowered`.
template <class T, class G, class L, bool kWide, bool kOfSum>
__global__ void __launch_bounds__(1024) backward_rows(Backward<T, G, L> call, opmath_t<T>* shares) {
  using Math = opmath_t<T>;
  using Row = HeldRow<T, kWide, kHold>;
  Row dw, db;
  dw.fill(Math(0));
  db.fill(Math(0));
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < call.rows; first += step) {
    const int64_t r = first + threadIdx.y, n = r < call.rows ? call.n : 0;
    Row g, hat;
    hat.load(call.x + r * call.n, n, Math(0));
    load_lanes(g, call.dy + r * call.n, n);
    const Math centre = n ? call.centre(r) : Math(0), rstd = n ? call.rstd[r] : Math(0);
    Sums<Math> sums{Math(0), Math(0)};
    g.for_each(n, [&](int v, int l) {
      const Math dy = g.value[v][l], h = (hat.value[v][l] - centre) * rstd;
      dw.value[v][l] += dy * h;
      db.value[v][l] += dy;
      const Math scaled = call.weight ? dy * call.weight[Row::column(v) + l] : dy;
      g.value[v][l] = scaled;
      hat.value[v][l] = h;
      sums.g += scaled;
      sums.g_hat += scaled * h;
    });
    if (!call.dx) continue;
    sums = combine_row(sums, AddSums<Math>());
    const Math count = static_cast<Math>(call.n);
    const Math mean_g = call.mean ? sums.g / count : Math(0), mean_g_hat = sums.g_hat / count;
    g.for_each(n,
               [&](int v, int l) { g.value[v][l] = rstd * (g.value[v][l] - mean_g - hat.value[v][l] * mean_g_hat); });
    if constexpr (kOfSum) {
      if (call.through) {
        hat.load(call.through + r * call.n, n, Math(0));
        g.for_each(n, [&](int v, int l) { g.value[v][l] += hat.value[v][l]; });
      }
    }
    g.store(call.dx + r * call.n, n);
    if constexpr (kOfSum) {
      if (!call.lowered) continue;
      g.for_each(n, [&](int v, int l) {
        const int64_t at = r * call.n + Row::column(v) + l;
        g.value[v][l] = static_cast<Math>(call.low(g.value[v][l], !call.mask || call.mask[at]));
      });
      store_lanes(g, call.lowered + r * call.n, n);
    }
  }
  if (!shares) return;
  if (blockDim.y > 1) {
    __shared__ Math shared[Row::Access::kLanes][kThreads];
    add_thread_rows(dw.value, shared);
    add_thread_rows(db.value, shared);
    if (threadIdx.y > 0) return;
  }
  Math* share = shares + static_cast<int64_t>(blockIdx.x) * kSums * call.n;
  dw.for_each(call.n, [&](int v, int l) {
    share[Row::column(v) + l] = dw.value[v][l];
    share[call.n + Row::column(v) + l] = db.value[v][l];
  });
}

// The same with one warp for each row: see Note [Rows in registers]. Two thread blocks fit a multiprocessor's registers
// if a thread holds 24 elements of each row; or 32 where there is no mean, and so no db to hold (kIsCentred); or 16
// where it adds up `lowered`, too (kAddsLowered).
constexpr int blocks_of_warps(int hold, bool is_centred, bool adds_lowered) {
  return hold * (1 + is_centred + adds_lowered) <= 48 ? 2 : 1;
}

template <class T, class G, class L, int kHold, bool kIsCentred, bool kAddsLowered>
__global__ void __launch_bounds__(kThreads, blocks_of_warps(kHold, kIsCentred, kAddsLowered))
    backward_warps(Backward<T, G, L> call, opmath_t<T>* shares) {
  using Math = opmath_t<T>;
  using Access = RowAccess<T, true, kHold>;
  constexpr int kLanes = Access::kLanes, kVectors = Access::kVectors;
  const int n = static_cast<int>(call.n);
  const auto each = [=](const auto& body) { for_each_vector<kVectors, kLanes>(n, body); };
  const auto weights = [&](Math(&to)[kLanes], int column) {
    if (call.weight) return read_columns(to, call.weight + column);
#pragma unroll
    for (int l = 0; l < kLanes; ++l) to[l] = Math(1);
  };
  Math dw[kVectors][kLanes] = {}, db[kIsCentred ? kVectors : 1][kLanes] = {},
       dl[kAddsLowered ? kVectors : 1][kLanes] = {};
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; r < call.rows; r += step) {
    Lanes<T, kLanes> x[kVectors];
    Lanes<G, kLanes> dy[kVectors];
    const T* x_row = call.x + r * n;
    const G* dy_row = call.dy + r * n;
    each([&](int v, int column) {
      x[v] = *reinterpret_cast<const Lanes<T, kLanes>*>(x_row + column);
      dy[v] = *reinterpret_cast<const Lanes<G, kLanes>*>(dy_row + column);
    });
    const Math centre = kIsCentred ? call.mean[r] : Math(0), rstd = call.rstd[r];
    const auto hat = [&](int v, int l) { return (static_cast<Math>(x[v].lane[l]) - centre) * rstd; };
    Sums<Math> sums{Math(0), Math(0)};
    each([&](int v, int column) {
      Math w[kLanes];
      weights(w, column);
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        const Math grad = static_cast<Math>(dy[v].lane[l]), h = hat(v, l);
        dw[v][l] += grad * h;
        if constexpr (kIsCentred) {
          db[v][l] += grad;
          sums.g += grad * w[l];
        }
        sums.g_hat += grad * w[l] * h;
      }
    });
    if (!call.dx) continue;
    sums = combine_row(sums, AddSums<Math>());
    const Math count = static_cast<Math>(n);
    const Math mean_g = kIsCentred ? sums.g / count : Math(0), mean_g_hat = sums.g_hat / count;
    each([&](int v, int column) {
      const int64_t at = r * n + column;
      Lanes<T, kLanes> result, through = {};
      if (call.through) through = *reinterpret_cast<const Lanes<T, kLanes>*>(call.through + at);
      Lanes<L, kLanes> lowered;
      Lanes<bool, kLanes> kept = {};
      if (call.mask) kept = *reinterpret_cast<const Lanes<bool, kLanes>*>(call.mask + at);
      Math w[kLanes];
      weights(w, column);
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        Math value = rstd * (static_cast<Math>(dy[v].lane[l]) * w[l] - mean_g - hat(v, l) * mean_g_hat);
        value += static_cast<Math>(through.lane[l]);
        result.lane[l] = static_cast<T>(value);
        lowered.lane[l] = call.low(value, kept.lane[l]);
        if constexpr (kAddsLowered) dl[v][l] += static_cast<Math>(lowered.lane[l]);
      }
      *reinterpret_cast<Lanes<T, kLanes>*>(call.dx + at) = result;
      if (call.lowered) *reinterpret_cast<Lanes<L, kLanes>*>(call.lowered + at) = lowered;
    });
  }
  if (!shares) return;
  __shared__ Math shared[kLanes][kThreads];
  add_thread_rows(dw, shared);
  if constexpr (kIsCentred) add_thread_rows(db, shared);
  if constexpr (kAddsLowered) add_thread_rows(dl, shared);
  if (threadIdx.y > 0) return;
  Math* share = shares + static_cast<int64_t>(blockIdx.x) * kSums * n;
  each([&](int v, int column) {
#pragma unroll
    for (int l = 0; l < kLanes; ++l) {
      share[column + l] = dw[v][l];
      if constexpr (kIsCentred) share[n + column + l] = db[v][l];
      if constexpr (kAddsLowered) share[2 * n + column + l] = dl[v][l];
    }
  });
}

// Sums of the rows: dw, db and those of `lowered`, each null where it is not needed.
template <class Math, class L>
struct GradientSums {
  Math *dw, *db;
  L* lowered = nullptr;
  int64_t n = 0;
  // Of the (3, n) sums, the one at `at`. What nobody asks for may never have been written.
  __device__ void operator()(int64_t at, Math sum) const {
    if (at < n) {
      if (dw) dw[at] = sum;
    } else if (at < 2 * n) {
      if (db) db[at - n] = sum;
    } else if (lowered) {
      lowered[at - 2 * n] = static_cast<L>(sum);
    }
  }
  bool any() const { return dw || db || lowered; }
};

// If there are partial sums, there are as many blocks as run at once: each block has its own.
inline int64_t most_blocks(bool have_shares, int per_processor) {
  if (!have_shares) return int64_t{1} << 30;
  return static_cast<int64_t>(current_properties().multiProcessorCount) * per_processor;
}

template <class T, class G, class L, class Math>
void launch(const char* op, void (*kernel)(Backward<T, G, L>, Math*), const RowLaunch& l, const Backward<T, G, L>& call,
            const GradientSums<Math, L>& sums) {
  const int64_t count = l.grid.x;
  const Scratch shares(sums.any() ? static_cast<size_t>(count * kSums * call.n) * sizeof(Math) : 0);
  launch_kernel(op, kernel, {l.grid, l.block}, call, sums.any() ? shares.as<Math>() : nullptr);
  if (!sums.any()) return;
  const int64_t used = sums.lowered ? 3 : sums.db ? 2 : 1;
  const ReduceDims dims = {{count, kSums * call.n, 0, true}, {used * call.n, 1, 1, false}};
  reduce_dims(op, shares.as<const Math>(), functors::Sum<Math>(), sums, dims);
}

// Whether it added up `lowered`, if that was asked for: kernels of a warp a row do.
template <bool kWide, bool kOfSum, class T, class G, class L>
bool held(const char* op, const Backward<T, G, L>& call, GradientSums<opmath_t<T>, L> sums) {
  sums.n = call.n;
  if constexpr (kWide) {
    const auto by_warps = [&](auto hold) {
      constexpr int kHeld = decltype(hold)::value;
      const auto launched = [&](auto is_centred, auto adds_lowered) {
        constexpr bool kIsCentred = decltype(is_centred)::value, kAddsLowered = decltype(adds_lowered)::value;
        const int blocks = blocks_of_warps(kHeld, kIsCentred, kAddsLowered);
        const auto l = RowLaunch::of_warps(call.rows, most_blocks(sums.any(), blocks));
        launch(op, backward_warps<T, G, L, kHeld, kIsCentred, kAddsLowered>, l, call, sums);
      };
      const auto with = [&](auto is_centred) {
        if constexpr (kOfSum && !std::is_same_v<T, L>) {
          if (sums.lowered) return launched(is_centred, std::true_type());
        }
        launched(is_centred, std::false_type());
      };
      call.mean ? with(std::true_type()) : with(std::false_type());
    };
    const bool is_added = kOfSum && !std::is_same_v<T, L>;
    if (!is_added) sums.lowered = nullptr;
    if (rows_are_wide<T>(call.n, call.weight) && for_rows_of_warps<T>(call.n, by_warps)) return is_added;
  }
  sums.lowered = nullptr;
  using Access = RowAccess<T, kWide, kHold>;
  const int per_processor = call.n > Access::kLongest / 4 ? 1 : 4;
  const RowLaunch l(call.rows, call.n, Access::kHeld, most_blocks(sums.any(), per_processor));
  launch(op, backward_rows<T, G, L, kWide, kOfSum>, l, call, sums);
  return false;
}

}  // namespace rush::cuda::layer_norm
