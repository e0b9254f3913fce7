// The device functions of the tiled attention kernels: tiles in shared memory, their products, softmax's scores and
// dropout.
#pragma once
#include "backends/cuda/kernels/linalg/mma.h"
#include "backends/cuda/kernels/nn/attention_tile.h"

namespace rush::cuda {

// Note [Attention by tiles on the GPU]
// A thread block owns 64 rows: queries in the forward pass and for dQ, keys for dK and dV. It loops over the other
// operand in tiles of 64 columns, or of 32 if shared memory does not hold 64. Softmax is online, as in Note [Attention
// by blocks] (backends/cpu/nn/attention.cpp), and the backward pass recomputes P from LSE. Thread blocks share no sum,
// so the same call gives the same bits.
//
// Products run on tensor cores (Note [Fragments]). Rows in shared memory have a leading dimension of kWidth plus 16
// bytes, which spreads the eight rows of an (8, 8) matrix over all banks. Each of four warps owns 16 rows. It holds its
// (16, 64) tile of S as eight accumulators; P, rounded to 16 bits, is the A operand of the next product without leaving
// the registers, as in FlashAttention-2 (Dao, 2023). The kernel of dK and dV has keys for rows: it computes S^T, so
// that P^T and dS^T are A operands, too. Accumulators and softmax are float32.

template <int kWidth, class T>
struct TileOfRows {
  static constexpr int kInAccess = 16 / sizeof(T);  // numbers
  static constexpr int kLine = kWidth + kInAccess;
  static constexpr int kColumns = kWidth * sizeof(T) <= 512 ? 64 : 32;
  static constexpr int kRowNumbers = kTile * kLine, kColumnNumbers = kColumns * kLine;
  // Forward: a tile of Q, and two buffers of a tile of K and one of V, so that one is read while the next one is
  // copied. Backward: two tiles of rows, and two buffers (one if shared memory does not hold two) of two tiles of
  // columns each. dK and dV also need LSE and delta of each query.
  static constexpr int kForwardBuffers = 2, kBackwardBuffers = kColumns == 64 ? 2 : 1;
  static constexpr int kForwardBytes =
      (kRowNumbers + 2 * kForwardBuffers * kColumnNumbers) * static_cast<int>(sizeof(T));
  static constexpr int kBackwardBytes =
      (2 * kRowNumbers + 2 * kBackwardBuffers * kColumnNumbers) * static_cast<int>(sizeof(T)) +
      2 * kBackwardBuffers * kColumns * static_cast<int>(sizeof(float));
  // Thread blocks per multiprocessor: several hide the latency of each other's loads.
  static constexpr int kBlocks = kWidth * sizeof(T) <= 128 ? 3 : kWidth * sizeof(T) <= 256 ? 2 : 1;
  // [j][2 h + e]: row row_of_lane() + 8 h, column 8 j + column_of_lane() + e.
  using Scores = float[kColumns / 8][4];
};

__device__ inline int lane_of_warp() { return threadIdx.x % 32; }
// The first of the thread's two rows of a tile (the second is 8 below), and the first of its two columns of a fragment.
__device__ inline int row_of_lane() { return threadIdx.x / 32 * 16 + lane_of_warp() / 4; }
__device__ inline int column_of_lane() { return lane_of_warp() % 4 * 2; }

template <int kWidth>
using Accumulator = float[kWidth / 8][4];

template <int n>
__device__ void clear(float (&sums)[n][4]) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[j][e] = 0;
  }
}

// Starts to copy the first min(rows, kLines) rows at `from` into a tile in shared memory, kEach numbers at a time, and
// fills the rest of its kLines rows of kWidth numbers with zeros.
template <int kWidth, int kLines, int kEach, class T>
__device__ void fetch_rows_by(T* tile, const T* from, const HeadRows<const T>& of, int rows) {
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
__device__ void fetch_rows(T* tile, const T* from, const HeadRows<const T>& of, int64_t rows) {
  constexpr int kInAccess = TileOfRows<kWidth, T>::kInAccess;
  const int some = static_cast<int>(rows < kLines ? rows : kLines);
  if (kInAccess == 8 ? of.by_eight : of.by_four) return fetch_rows_by<kWidth, kLines, kInAccess>(tile, from, of, some);
  if constexpr (kInAccess == 8) {
    if (of.by_four) return fetch_rows_by<kWidth, kLines, 4>(tile, from, of, some);
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < kLines * kWidth; i += kTileThreads) {
    const int line = i / kWidth, c = i % kWidth;
    const bool real = line < some && c < of.width;
    tile[line * TileOfRows<kWidth, T>::kLine + c] = real ? from[line * of.strides[2] + c] : T{};
  }
}

// The address of a buffer, which holds two tiles of columns.
template <int kWidth, class T>
__device__ T* tiles_of(T* columns, int buffer) {
  return columns + 2 * buffer * TileOfRows<kWidth, std::remove_const_t<T>>::kColumnNumbers;
}

// Starts to copy the tiles of K and V whose first row is key `k`.
template <int kWidth, class T>
__device__ void fetch_keys(T* columns, int buffer, const TiledAttention<T>& a, const QueryTile& at, int64_t k) {
  using Tile = TileOfRows<kWidth, T>;
  T* key = tiles_of<kWidth>(columns, buffer);
  fetch_rows<kWidth, Tile::kColumns>(key, a.key.row(at.batch, at.shared_head, k), a.key, a.keys - k);
  fetch_rows<kWidth, Tile::kColumns>(key + Tile::kColumnNumbers, a.value.row(at.batch, at.shared_head, k), a.value,
                                     a.keys - k);
}

// Loops over columns [begin, end): fetch(buffer, from) starts to copy the tile whose first column is `from`, and
// work(buffer, from) reads it. With two buffers, the next tile is copied during work. The copies that the caller has
// started are complete before work is called.
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
    __syncthreads();  // the next copies overwrite this buffer
    if (kBuffers == 2) buffer ^= 1;
  }
  wait_for_copies<0>();  // without columns, the caller's copies are still unfinished
}

// products (16, 8 n) = A B^T for the warp's 16 rows of `a` and the 8 n rows of `b`, with K = depth.
template <int kWidth, class T, int n>
__device__ void multiply_transposed(float (&products)[n][4], const T* a, const T* b, int depth) {
  using Tile = TileOfRows<kWidth, T>;
  const int lane = lane_of_warp();
  const T* rows = a + (threadIdx.x / 32 * 16 + lane % 16) * Tile::kLine + lane / 16 * Tile::kInAccess;
  const T* columns = b + (lane % 8 + lane / 16 * 8) * Tile::kLine + lane / 8 % 2 * Tile::kInAccess;
  clear(products);
#pragma unroll 4
  for (int d = 0; d < depth; d += kMmaK<T>) {
    uint32_t words[4];
    load_matrices<false>(words, rows + d);
    const FragmentA<T> a_fragment = fragment_a<T>(words);
#pragma unroll
    for (int j = 0; j < n; j += 2) {
      uint32_t b_fragment[4];
      load_matrices<false>(b_fragment, columns + j * 8 * Tile::kLine + d);
      multiply_add(products[j], a_fragment, b_fragment[0], b_fragment[1]);
      multiply_add(products[j + 1], a_fragment, b_fragment[2], b_fragment[3]);
    }
  }
}

// sums (16, kWidth) += A B for the accumulators A (16, 8 n) of the warp and B (8 n, kWidth), a tile in shared memory.
template <int kWidth, class T, int n>
__device__ void multiply_add_tile(Accumulator<kWidth>& sums, const float (&weights)[n][4], const T* tile) {
  constexpr int kLine = TileOfRows<kWidth, T>::kLine;
  const int lane = lane_of_warp();
  if constexpr (sizeof(T) == 4) {
    const float* lines = tile + column_of_lane() * kLine + lane / 4;
#pragma unroll
    for (int k = 0; k < n; ++k) {
      const float(&weight)[4] = weights[k];
      const uint32_t words[4] = {__float_as_uint(weight[0]), __float_as_uint(weight[2]), __float_as_uint(weight[1]),
                                 __float_as_uint(weight[3])};
      const FragmentA<T> a_fragment = fragment_a<T>(words);
#pragma unroll
      for (int c = 0; c < kWidth / 8; ++c) {
        const float* b_fragment = lines + 8 * k * kLine + 8 * c;
        multiply_add(sums[c], a_fragment, __float_as_uint(b_fragment[0]), __float_as_uint(b_fragment[kLine]));
      }
    }
  } else {
    const T* lines = tile + lane % 16 * kLine + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < n; k += 2) {
      const float(&near)[4] = weights[k], (&far)[4] = weights[k + 1];
      const FragmentA<T> a_fragment = {
          {pack<T>(near[0], near[1]), pack<T>(near[2], near[3]), pack<T>(far[0], far[1]), pack<T>(far[2], far[3])}};
#pragma unroll
      for (int c = 0; c < kWidth / 8; c += 2) {
        uint32_t b_fragment[4];
        load_matrices<true>(b_fragment, lines + 8 * k * kLine + 8 * c);
        multiply_add(sums[c], a_fragment, b_fragment[0], b_fragment[1]);
        multiply_add(sums[c + 1], a_fragment, b_fragment[2], b_fragment[3]);
      }
    }
  }
}

// Stores factor[h] * sums to at most `rows` rows, of which `to` is the first.
template <int kWidth, class T>
__device__ void store_rows(T* to, const HeadRows<T>& of, int64_t rows, const Accumulator<kWidth>& sums,
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

// Turns a tile of Q K^T into S (TiledAttention::score). Row 0 is query `i` and column 0 is key `k`; in a transposed
// tile, row 0 is key `k` and column 0 is query `i`.
template <bool transposed, class T, int n>
__device__ void scale_and_mask(float (&s)[n][4], const TiledAttention<T>& a, int64_t batch, int64_t head, int64_t i,
                               int64_t k) {
  if (a.all_visible(i, k)) {
    const float factor = a.scale * TiledAttention<T>::kLog2E;
#pragma unroll
    for (int j = 0; j < n; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) s[j][e] *= factor;
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = row_of_lane() + e / 2 * 8, column = 8 * j + column_of_lane() + e % 2;
      s[j][e] = a.score(s[j][e], batch, head, i + (transposed ? column : row), k + (transposed ? row : column));
    }
  }
}

// Sets the weights whose bit in `kept` is 0 to zero, and multiplies the others by `scale`.
template <int n>
__device__ void apply_dropout(float (&weights)[n][4], uint32_t kept, float scale) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) weights[j][e] = kept >> (4 * j + e) & 1 ? weights[j][e] * scale : 0.0f;
  }
}

// Word n of the Philox stream, for the weight with linear index n of P (B, H, L, S), as in native_dropout.
__device__ __noinline__ inline uint32_t word_of_weight(PhiloxState state, uint64_t n) { return philox_word(state, n); }

// Transposes a (4, 4) matrix of words over four lanes that are `step` apart: word w of lane l becomes word l of lane w.
__device__ inline void exchange_words(uint32_t (&words)[4], int step, int lane_in_four) {
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

// Bit 4 j + e says whether dropout keeps weight [j][e] of the tile. A Philox block of four words serves four
// neighbouring keys. If rows of P begin at a block (S % 4 == 0), the lanes that hold these keys compute one block each
// and exchange words; otherwise each lane computes the block of every weight.
template <bool transposed, int kColumns, class T>
__device__ uint32_t dropout_mask(const TiledAttention<T>& a, const PhiloxState& state, int64_t head, int64_t i,
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
      // Four lanes that are 4 apart hold the same queries and the four keys of one Philox block. Lane e = 0 to 3 of
      // them computes the block of its weight [j][e].
      const int e = lane / 4 % 4;
      const int64_t query = i + 8 * j + column_of_lane() + e % 2, key = k + row_of_lane() - e + e / 2 * 8;
      PhiloxBlock block = philox_block(state, ((base + query) * a.keys + key) / 4);
      exchange_words(block.word, 4, e);
#pragma unroll
      for (int other = 0; other < 4; ++other) kept |= static_cast<uint32_t>(a.keep(block[other])) << (4 * j + other);
    } else {
      // Two lanes hold two keys each of a Philox block, in two rows. Each lane computes the block of one row.
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
