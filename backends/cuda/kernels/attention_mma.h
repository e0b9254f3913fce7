// What the kernels of attention on tensor cores are made of.
#pragma once
#include "backends/cuda/kernels/attention_tile.h"
#include "backends/cuda/kernels/mma.h"

namespace rush::cuda {

// Note [Attention on tensor cores]
// Tiles as in Note [Attention by tiles on the GPU], for numbers of 16 bits: they lie in shared memory as they are, in
// lines of kWidth + 8, which spreads the eight rows of a matrix over all banks. Four warps have 16 of the block's 64
// rows each and go over tiles of 64 columns; a warp has its 16 x 64 scores as eight fragments of sums (Note
// [Fragments]), and rounded to 16 bits they are the left factor of the next product without leaving the registers, as
// in FlashAttention-2 (Dao, 2023). The gradient of keys and values has keys for its rows, so that its transposed
// weights lie right, too. Sums and softmax are float32; weights and their slopes are rounded to 16 bits.
inline constexpr int kMmaThreads = kTile / 16 * 32;

template <int kWidth>
inline constexpr int kMmaLine = kWidth + 8;
template <int kWidth>
inline constexpr int kMmaNumbers = kTile* kMmaLine<kWidth>;
// A forward pass holds the rows' queries and, twice, a tile of keys and of values: one is read while the next comes. A
// gradient holds two tiles of rows, and twice two of columns; of queries, two numbers of each, too.
template <int kWidth>
inline constexpr int kMmaForwardBytes = 5 * kMmaNumbers<kWidth> * 2;
template <int kWidth>
inline constexpr int kMmaBackwardBytes = 6 * kMmaNumbers<kWidth> * 2 + 4 * kTile* static_cast<int>(sizeof(float));
// Several blocks at a time hide each other's loads, as far as the registers last.
template <int kWidth>
inline constexpr int kMmaBlocks = kWidth <= 64    ? 3
                                  : kWidth <= 128 ? 2
                                                  : 1;

__device__ inline int mma_lane() { return threadIdx.x % 32; }
// The first of the thread's two rows of a tile, the other is 8 further; and the first of its columns of a fragment.
__device__ inline int mma_row() { return threadIdx.x / 32 * 16 + mma_lane() / 4; }
__device__ inline int mma_column() { return mma_lane() % 4 * 2; }

// [j][2 h + e]: row mma_row() + 8 h, column 8 j + mma_column() + e.
using Fragments = float[kTile / 8][4];
template <int kWidth>
using MmaSums = float[kWidth / 8][4];

template <int n>
__device__ void clear(float (&sums)[n][4]) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[j][e] = 0;
  }
}

// Begins to copy `rows` rows from `from` on into shared memory, kEach numbers at a time; lines and numbers beyond are
// zero.
template <int kWidth, int kEach, class T>
__device__ void fetch_lines_by(T* tile, const T* from, const HeadRows<const T>& of, int rows) {
  constexpr int kPerLine = kWidth / kEach, kLines = kMmaThreads / kPerLine;
  const int line = threadIdx.x / kPerLine, c = threadIdx.x % kPerLine * kEach;
  const int real_lines = c < of.width ? rows - line : 0;
  const T* at = from + line * of.strides[2] + c;
  T* to = tile + line * kMmaLine<kWidth> + c;
#pragma unroll
  for (int l = 0; l < kTile; l += kLines) {
    copy_async<kEach* static_cast<int>(sizeof(T))>(to + l * kMmaLine<kWidth>, at, l < real_lines);
    at += kLines * of.strides[2];
  }
}
template <int kWidth, class T>
__device__ void fetch_lines(T* tile, const T* from, const HeadRows<const T>& of, int64_t rows) {
  const int some = static_cast<int>(rows < kTile ? rows : kTile);
  if (of.by_eight) return fetch_lines_by<kWidth, 8>(tile, from, of, some);
  if (of.by_four) return fetch_lines_by<kWidth, 4>(tile, from, of, some);
#pragma unroll 1
  for (int i = threadIdx.x; i < kTile * kWidth; i += kMmaThreads) {
    const int line = i / kWidth, c = i % kWidth;
    tile[line * kMmaLine<kWidth> + c] = line < some && c < of.width ? from[line * of.strides[2] + c] : T::from_bits(0);
  }
}

// A buffer of two tiles, one after the other.
template <int kWidth, class T>
__device__ T* tiles_of(T* columns, int buffer) {
  return columns + 2 * buffer * kMmaNumbers<kWidth>;
}

// Begins to copy the keys and the values from `k` on that a tile of queries sees.
template <int kWidth, class T>
__device__ void fetch_keys(T* columns, int buffer, const TiledAttention<T>& a, const QueryTile& at, int64_t k) {
  T* key = tiles_of<kWidth>(columns, buffer);
  fetch_lines<kWidth>(key, a.key.row(at.batch, at.shared_head, k), a.key, a.keys - k);
  fetch_lines<kWidth>(key + kMmaNumbers<kWidth>, a.value.row(at.batch, at.shared_head, k), a.value, a.keys - k);
}

// Two buffers of columns, one of which is read while the next is on its way: walks from `begin` to `end`. fetch(buffer,
// from) begins to copy those from `from` on, and work(buffer, from) reads them. What the caller has begun to copy is
// there, too.
template <class Fetch, class Work>
__device__ void walk_columns(int64_t begin, int64_t end, const Fetch& fetch, const Work& work) {
  if (begin < end) fetch(0, begin);
  commit_copies();
  int buffer = 0;
  for (int64_t from = begin; from < end; from += kTile) {
    if (from + kTile < end) fetch(buffer ^ 1, from + kTile);
    commit_copies();
    wait_for_copies<1>();
    __syncthreads();
    work(buffer, from);
    __syncthreads();  // before the next but one is copied over this one
    buffer ^= 1;
  }
  wait_for_copies<0>();  // without columns what the caller has begun is still on its way
}

// products = the warp's rows of `a` times those of `b`, over `depth` numbers.
template <int kWidth, class T>
__device__ void multiply_lines(Fragments& products, const T* a, const T* b, int depth) {
  constexpr int kLine = kMmaLine<kWidth>;
  const int lane = mma_lane();
  const T* rows = a + (threadIdx.x / 32 * 16 + lane % 16) * kLine + lane / 16 * 8;
  const T* columns = b + (lane % 8 + lane / 16 * 8) * kLine + lane / 8 % 2 * 8;
  clear(products);
#pragma unroll 4
  for (int d = 0; d < depth; d += 16) {
    uint32_t left[4];
    load_matrices<false>(left, rows + d);
#pragma unroll
    for (int j = 0; j < kTile / 8; j += 2) {
      uint32_t right[4];
      load_matrices<false>(right, columns + j * 8 * kLine + d);
      multiply_add<T>(products[j], left, right[0], right[1]);
      multiply_add<T>(products[j + 1], left, right[2], right[3]);
    }
  }
}

// sums += weights (16, 64) of the warp, rounded, times the lines of `tile`.
template <int kWidth, class T>
__device__ void add_lines(MmaSums<kWidth>& sums, const Fragments& weights, const T* tile) {
  constexpr int kLine = kMmaLine<kWidth>;
  const int lane = mma_lane();
  const T* lines = tile + lane % 16 * kLine + lane / 16 * 8;
#pragma unroll
  for (int k = 0; k < kTile / 16; ++k) {
    const float(&near)[4] = weights[2 * k], (&far)[4] = weights[2 * k + 1];
    const uint32_t left[4] = {pack<T>(near[0], near[1]), pack<T>(near[2], near[3]), pack<T>(far[0], far[1]),
                              pack<T>(far[2], far[3])};
#pragma unroll
    for (int n = 0; n < kWidth / 8; n += 2) {
      uint32_t right[4];
      load_matrices<true>(right, lines + 16 * k * kLine + 8 * n);
      multiply_add<T>(sums[n], left, right[0], right[1]);
      multiply_add<T>(sums[n + 1], left, right[2], right[3]);
    }
  }
}

// factor[h] * sums into the rows from `to` on, of which there are `rows`.
template <int kWidth, class T>
__device__ void store_lines(T* to, const HeadRows<T>& of, int64_t rows, const MmaSums<kWidth>& sums,
                            const float (&factor)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int r = mma_row() + 8 * h;
    if (r >= rows) continue;
    T* line = to + r * of.strides[2] + mma_column();
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n) {
      const int c = 8 * n + mma_column();
      if (c >= of.width) break;
      const Lanes<T, 2> two = rounded_pair<T>(sums[n][2 * h] * factor[h], sums[n][2 * h + 1] * factor[h]);
      if (of.by_four) {
        *reinterpret_cast<Lanes<T, 2>*>(line + 8 * n) = two;
      } else {
        line[8 * n] = two.lane[0];
        if (c + 1 < of.width) line[8 * n + 1] = two.lane[1];
      }
    }
  }
}

// 2^x, as the hardware has it; 0 for -inf.
__device__ inline float power_of_two(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

// Products become scores, as TiledAttention::score has them. Rows are the queries from `i` on and columns the keys from
// `k` on, or, of a transposed tile, the other way round.
template <bool transposed, class T>
__device__ void take_products(Fragments& part, const TiledAttention<T>& a, int64_t batch, int64_t head, int64_t i,
                              int64_t k) {
  if (a.all_visible(i, k)) {
    const float factor = a.scale * TiledAttention<T>::kLog2E;
#pragma unroll
    for (int j = 0; j < kTile / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) part[j][e] *= factor;
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < kTile / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = mma_row() + e / 2 * 8, column = 8 * j + mma_column() + e % 2;
      part[j][e] = a.score(part[j][e], batch, head, i + (transposed ? column : row), k + (transposed ? row : column));
    }
  }
}

// Zeros for what `kept` lacks, and the rest times `scale`.
__device__ inline void drop_weights(Fragments& weights, uint32_t kept, float scale) {
#pragma unroll
  for (int j = 0; j < kTile / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) weights[j][e] = kept >> (4 * j + e) & 1 ? weights[j][e] * scale : 0.0f;
  }
}

// Which of a tile's weights dropout keeps, bit 4 j + e for [j][e]: element n of all weights takes word n of the stream,
// as in native_dropout. A block of four words serves four neighbouring keys, so that where rows of weights begin with a
// block the lanes that have these keys work out one block each and trade their words; elsewhere each finds its own.
__device__ __noinline__ inline uint32_t word_of_weight(PhiloxState state, uint64_t n) { return philox_word(state, n); }

// Four lanes, `step` apart, hold a word for each of them; afterwards each has what the four held for it, in their
// order.
__device__ inline void trade_words(uint32_t (&words)[4], int step, int lane_in_four) {
#pragma unroll
  for (int bit = 1; bit < 4; bit *= 2) {
    const bool upper = lane_in_four & bit;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      if (w & bit) continue;
      const uint32_t first = words[w], second = words[w | bit];
      const uint32_t got = __shfl_xor_sync(0xffffffff, upper ? first : second, bit * step);
      words[w] = upper ? got : first;
      words[w | bit] = upper ? second : got;
    }
  }
}

template <bool transposed, class T>
__device__ uint32_t kept_weights(const TiledAttention<T>& a, const PhiloxState& state, int64_t head, int64_t i,
                                 int64_t k) {
  uint32_t kept = 0;
  const uint64_t base = static_cast<uint64_t>(head) * a.queries;
  if (a.keys % 4 != 0) {
#pragma unroll 1
    for (int bit = 0; bit < 32; ++bit) {
      const int row = mma_row() + bit % 4 / 2 * 8, column = bit / 4 * 8 + mma_column() + bit % 2;
      const uint64_t n = (base + i + (transposed ? column : row)) * a.keys + k + (transposed ? row : column);
      kept |= static_cast<uint32_t>(a.keep(word_of_weight(state, n))) << bit;
    }
    return kept;
  }
  const int lane = mma_lane();
#pragma unroll 1
  for (int j = 0; j < kTile / 8; ++j) {
    if constexpr (transposed) {
      // Four lanes, 4 apart, have the same four weights' queries and rows of one block of keys: e = 0 to 3.
      const int e = lane / 4 % 4;
      const int64_t query = i + 8 * j + mma_column() + e % 2, key = k + mma_row() - e + e / 2 * 8;
      PhiloxBlock block = philox_block(state, ((base + query) * a.keys + key) / 4);
      trade_words(block.word, 4, e);
#pragma unroll
      for (int other = 0; other < 4; ++other) kept |= static_cast<uint32_t>(a.keep(block[other])) << (4 * j + other);
    } else {
      // Two lanes have two keys each of a block, in two rows.
      const bool upper = lane & 1;
      const int64_t query = i + mma_row() + (upper ? 8 : 0), key = k + 8 * j + lane % 4 / 2 * 4;
      const PhiloxBlock block = philox_block(state, ((base + query) * a.keys + key) / 4);
      uint32_t own[2], other[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        own[e] = upper ? block[2 + e] : block[e];
        other[e] = __shfl_xor_sync(0xffffffff, upper ? block[e] : block[2 + e], 1);
      }
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        kept |= static_cast<uint32_t>(a.keep(own[e])) << (4 * j + (upper ? 2 : 0) + e);
        kept |= static_cast<uint32_t>(a.keep(other[e])) << (4 * j + (upper ? 0 : 2) + e);
      }
    }
  }
  return kept;
}

}  // namespace rush::cuda
