// What the kernels of attention by tiles are made of: tiles in shared memory, their products, and the scores.
#pragma once
#include "backends/cuda/kernels/linalg/mma.h"
#include "backends/cuda/kernels/nn/attention_tile.h"

namespace rush::cuda {

// Note [Attention by tiles on the GPU]
// A block works on 64 rows (queries, or keys for their gradients) and goes over the other side in tiles of 64 columns
// (32 where memory does not last), as in Note [Attention by blocks] (backends/cpu/nn/attention.cpp): softmax is kept up
// to date while tiles come in, and the gradient computes the weights again from logsumexp. No sum is shared between
// blocks, so the same call gives the same bits.
//
// Products run on tensor cores (Note [Fragments]). Tiles lie in shared memory as they are, in lines 16 bytes longer
// than a row, which spreads the eight rows of a matrix over all banks. Four warps have 16 rows each; a warp has its 16
// x 64 scores as eight fragments of sums, and, in 16 bits rounded, they are the left factor of the next product without
// leaving the registers, as in FlashAttention-2 (Dao, 2023). The gradient of keys and values has keys for its rows, so
// that its transposed weights lie right, too. Sums and softmax are float32.

template <int kWidth, class T>
struct TileOfRows {
  static constexpr int kInAccess = 16 / sizeof(T);  // numbers
  static constexpr int kLine = kWidth + kInAccess;
  static constexpr int kColumns = kWidth * sizeof(T) <= 512 ? 64 : 32;
  static constexpr int kRowNumbers = kTile * kLine, kColumnNumbers = kColumns * kLine;
  // A forward pass holds the rows' queries and, twice, a tile of keys and of values: one is read while the next comes.
  // A gradient holds two tiles of rows, and twice two of columns, once where memory does not last; of queries, two
  // numbers of each, too.
  static constexpr int kForwardBuffers = 2, kBackwardBuffers = kColumns == 64 ? 2 : 1;
  static constexpr int kForwardBytes =
      (kRowNumbers + 2 * kForwardBuffers * kColumnNumbers) * static_cast<int>(sizeof(T));
  static constexpr int kBackwardBytes =
      (2 * kRowNumbers + 2 * kBackwardBuffers * kColumnNumbers) * static_cast<int>(sizeof(T)) +
      2 * kBackwardBuffers * kColumns * static_cast<int>(sizeof(float));
  // Several blocks at a time hide each other's loads, as far as registers and memory last.
  static constexpr int kBlocks = kWidth * sizeof(T) <= 128 ? 3 : kWidth * sizeof(T) <= 256 ? 2 : 1;
  // [j][2 h + e]: row row_of_lane() + 8 h, column 8 j + column_of_lane() + e.
  using Scores = float[kColumns / 8][4];
};

__device__ inline int lane_of_warp() { return threadIdx.x % 32; }
// The first of the thread's two rows of a tile, the other is 8 further; and the first of its columns of a fragment.
__device__ inline int row_of_lane() { return threadIdx.x / 32 * 16 + lane_of_warp() / 4; }
__device__ inline int column_of_lane() { return lane_of_warp() % 4 * 2; }

template <int kWidth>
using RowSums = float[kWidth / 8][4];

template <int n>
__device__ void clear(float (&sums)[n][4]) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[j][e] = 0;
  }
}

// Begins to copy `rows` rows of kLines from `from` on into shared memory, kEach numbers at a time; lines and numbers
// beyond are zero.
template <int kWidth, int kLines, int kEach, class T>
__device__ void fetch_lines_by(T* tile, const T* from, const HeadRows<const T>& of, int rows) {
  constexpr int kLine = TileOfRows<kWidth, T>::kLine;
  constexpr int kPerLine = kWidth / kEach, kAtOnce = kTileThreads / kPerLine;
  const int line = threadIdx.x / kPerLine, c = threadIdx.x % kPerLine * kEach;
  const int real_lines = c < of.width ? rows - line : 0;
  const T* at = from + line * of.strides[2] + c;
  T* to = tile + line * kLine + c;
#pragma unroll
  for (int l = 0; l < kLines; l += kAtOnce) {
    copy_async<kEach* static_cast<int>(sizeof(T))>(to + l * kLine, at, l < real_lines);
    at += kAtOnce * of.strides[2];
  }
}
template <int kWidth, int kLines, class T>
__device__ void fetch_lines(T* tile, const T* from, const HeadRows<const T>& of, int64_t rows) {
  constexpr int kInAccess = TileOfRows<kWidth, T>::kInAccess;
  const int some = static_cast<int>(rows < kLines ? rows : kLines);
  if (kInAccess == 8 ? of.by_eight : of.by_four) return fetch_lines_by<kWidth, kLines, kInAccess>(tile, from, of, some);
  if constexpr (kInAccess == 8) {
    if (of.by_four) return fetch_lines_by<kWidth, kLines, 4>(tile, from, of, some);
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < kLines * kWidth; i += kTileThreads) {
    const int line = i / kWidth, c = i % kWidth;
    const bool real = line < some && c < of.width;
    tile[line * TileOfRows<kWidth, T>::kLine + c] = real ? from[line * of.strides[2] + c] : T{};
  }
}

// A buffer of two tiles of columns, one after the other.
template <int kWidth, class T>
__device__ T* tiles_of(T* columns, int buffer) {
  return columns + 2 * buffer * TileOfRows<kWidth, std::remove_const_t<T>>::kColumnNumbers;
}

// Begins to copy the keys and the values from `k` on that a tile of queries sees.
template <int kWidth, class T>
__device__ void fetch_keys(T* columns, int buffer, const TiledAttention<T>& a, const QueryTile& at, int64_t k) {
  using Tile = TileOfRows<kWidth, T>;
  T* key = tiles_of<kWidth>(columns, buffer);
  fetch_lines<kWidth, Tile::kColumns>(key, a.key.row(at.batch, at.shared_head, k), a.key, a.keys - k);
  fetch_lines<kWidth, Tile::kColumns>(key + Tile::kColumnNumbers, a.value.row(at.batch, at.shared_head, k), a.value,
                                      a.keys - k);
}

// Walks over columns from `begin` to `end`: fetch(buffer, from) begins to copy those from `from` on, and work(buffer,
// from) reads them, of two buffers while the other is on its way. What the caller has begun to copy is there, too.
template <int kColumns, int kBuffers, class Fetch, class Work>
__device__ void walk_columns(int64_t begin, int64_t end, const Fetch& fetch, const Work& work) {
  if (kBuffers == 2 && begin < end) fetch(0, begin);
  commit_copies();
  int buffer = 0;
  for (int64_t from = begin; from < end; from += kColumns) {
    const int64_t next = kBuffers == 2 ? from + kColumns : from;
    if (next < end) fetch(kBuffers == 2 ? buffer ^ 1 : 0, next);
    commit_copies();
    wait_for_copies<kBuffers - 1>();
    __syncthreads();
    work(buffer, from);
    __syncthreads();  // before others are copied over these
    if (kBuffers == 2) buffer ^= 1;
  }
  wait_for_copies<0>();  // without columns what the caller has begun is still on its way
}

// products = the warp's rows of `a` times those of `b`, over `depth` numbers.
template <int kWidth, class T, int n>
__device__ void multiply_lines(float (&products)[n][4], const T* a, const T* b, int depth) {
  using Tile = TileOfRows<kWidth, T>;
  const int lane = lane_of_warp();
  const T* rows = a + (threadIdx.x / 32 * 16 + lane % 16) * Tile::kLine + lane / 16 * Tile::kInAccess;
  const T* columns = b + (lane % 8 + lane / 16 * 8) * Tile::kLine + lane / 8 % 2 * Tile::kInAccess;
  clear(products);
#pragma unroll 4
  for (int d = 0; d < depth; d += kMmaDepth<T>) {
    uint32_t words[4];
    load_matrices<false>(words, rows + d);
    const LeftFragment<T> left = left_fragment<T>(words);
#pragma unroll
    for (int j = 0; j < n; j += 2) {
      uint32_t right[4];
      load_matrices<false>(right, columns + j * 8 * Tile::kLine + d);
      multiply_add(products[j], left, right[0], right[1]);
      multiply_add(products[j + 1], left, right[2], right[3]);
    }
  }
}

// sums += weights (16, 8 n) of the warp times the lines of `tile`.
template <int kWidth, class T, int n>
__device__ void add_lines(RowSums<kWidth>& sums, const float (&weights)[n][4], const T* tile) {
  constexpr int kLine = TileOfRows<kWidth, T>::kLine;
  const int lane = lane_of_warp();
  if constexpr (sizeof(T) == 4) {
    const float* lines = tile + column_of_lane() * kLine + lane / 4;
#pragma unroll
    for (int k = 0; k < n; ++k) {
      const float(&weight)[4] = weights[k];
      const uint32_t words[4] = {__float_as_uint(weight[0]), __float_as_uint(weight[2]), __float_as_uint(weight[1]),
                                 __float_as_uint(weight[3])};
      const LeftFragment<T> left = left_fragment<T>(words);
#pragma unroll
      for (int c = 0; c < kWidth / 8; ++c) {
        const float* right = lines + 8 * k * kLine + 8 * c;
        multiply_add(sums[c], left, __float_as_uint(right[0]), __float_as_uint(right[kLine]));
      }
    }
  } else {
    const T* lines = tile + lane % 16 * kLine + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < n; k += 2) {
      const float(&near)[4] = weights[k], (&far)[4] = weights[k + 1];
      const LeftFragment<T> left = {
          {pack<T>(near[0], near[1]), pack<T>(near[2], near[3]), pack<T>(far[0], far[1]), pack<T>(far[2], far[3])}};
#pragma unroll
      for (int c = 0; c < kWidth / 8; c += 2) {
        uint32_t right[4];
        load_matrices<true>(right, lines + 8 * k * kLine + 8 * c);
        multiply_add(sums[c], left, right[0], right[1]);
        multiply_add(sums[c + 1], left, right[2], right[3]);
      }
    }
  }
}

// factor[h] * sums into the rows from `to` on, of which there are `rows`.
template <int kWidth, class T>
__device__ void store_lines(T* to, const HeadRows<T>& of, int64_t rows, const RowSums<kWidth>& sums,
                            const float (&factor)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int r = row_of_lane() + 8 * h;
    if (r >= rows) continue;
    T* line = to + r * of.strides[2] + column_of_lane();
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n) {
      const int c = 8 * n + column_of_lane();
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
template <bool transposed, class T, int n>
__device__ void take_products(float (&part)[n][4], const TiledAttention<T>& a, int64_t batch, int64_t head, int64_t i,
                              int64_t k) {
  if (a.all_visible(i, k)) {
    const float factor = a.scale * TiledAttention<T>::kLog2E;
#pragma unroll
    for (int j = 0; j < n; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) part[j][e] *= factor;
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = row_of_lane() + e / 2 * 8, column = 8 * j + column_of_lane() + e % 2;
      part[j][e] = a.score(part[j][e], batch, head, i + (transposed ? column : row), k + (transposed ? row : column));
    }
  }
}

// Zeros for what `kept` lacks, and the rest times `scale`.
template <int n>
__device__ void drop_weights(float (&weights)[n][4], uint32_t kept, float scale) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
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

template <bool transposed, int kColumns, class T>
__device__ uint32_t kept_weights(const TiledAttention<T>& a, const PhiloxState& state, int64_t head, int64_t i,
                                 int64_t k) {
  uint32_t kept = 0;
  const uint64_t base = static_cast<uint64_t>(head) * a.queries;
  if (a.keys % 4 != 0) {
#pragma unroll 1
    for (int bit = 0; bit < kColumns / 2; ++bit) {
      const int row = row_of_lane() + bit % 4 / 2 * 8, column = bit / 4 * 8 + column_of_lane() + bit % 2;
      const uint64_t n = (base + i + (transposed ? column : row)) * a.keys + k + (transposed ? row : column);
      kept |= static_cast<uint32_t>(a.keep(word_of_weight(state, n))) << bit;
    }
    return kept;
  }
  const int lane = lane_of_warp();
#pragma unroll 1
  for (int j = 0; j < kColumns / 8; ++j) {
    if constexpr (transposed) {
      // Four lanes, 4 apart, have the same four weights' queries and rows of one block of keys: e = 0 to 3.
      const int e = lane / 4 % 4;
      const int64_t query = i + 8 * j + column_of_lane() + e % 2, key = k + row_of_lane() - e + e / 2 * 8;
      PhiloxBlock block = philox_block(state, ((base + query) * a.keys + key) / 4);
      trade_words(block.word, 4, e);
#pragma unroll
      for (int other = 0; other < 4; ++other) kept |= static_cast<uint32_t>(a.keep(block[other])) << (4 * j + other);
    } else {
      // Two lanes have two keys each of a block, in two rows.
      const bool upper = lane & 1;
      const int64_t query = i + row_of_lane() + (upper ? 8 : 0), key = k + 8 * j + lane % 4 / 2 * 4;
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
