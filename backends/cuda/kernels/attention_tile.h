// What the kernels of attention by tiles are made of: tiles in shared memory, their products, and the scores.
#pragma once
#include "backends/cuda/kernels/launch.h"
#include "backends/functors/random.h"
#include "core/ops/fused_attention.h"
#include "core/philox.h"

namespace rush::cuda {

// Note [Attention by tiles on the GPU]
// A block of 256 threads works on 64 rows (queries, or keys for their gradients) and goes over the other side in tiles
// of 64 columns, as in Note [Attention by blocks] (backends/cpu/attention.cpp): softmax is kept up to date while tiles
// come in, and the gradient computes the weights again from logsumexp. No sum is shared between blocks, so the same
// call gives the same bits.
//
// These kernels are for float32; those of 16 bits use tensor cores (Note [Attention on tensor cores]). A tile lies in
// shared memory as lines of kWidth + 4 numbers, zero where there are none: the 4 spread neighbouring lines over all
// banks. A thread has the rows 4 y to 4 y + 3 and the columns 4 x to 4 x + 3 of 64 x 64 scores, x and y below 16; so
// that threads read lines side by side, the columns' tile is spread: column c lies in line c % 4 * 16 + c / 4, called
// its position. Weights are stored by position, too, so their product with such a tile needs no order.
inline constexpr int kTile = 64, kTileThreads = 256;
inline constexpr int kWeightLine = kTile + 4;

template <int kWidth>
inline constexpr int kTileLine = kWidth + 4;
template <int kWidth>
inline constexpr int kTileNumbers = kTile* kTileLine<kWidth>;

// Bytes of shared memory for `tiles` tiles and the weights.
template <int kWidth>
constexpr int tile_bytes(int tiles) {
  return (tiles * kTileNumbers<kWidth> + kTile * kWeightLine) * static_cast<int>(sizeof(float));
}
// A forward pass holds the queries and a tile of keys, then values; a gradient two fixed tiles and one that changes.
inline constexpr int kForwardTiles = 2, kBackwardTiles = 3;
// Two blocks at a time hide each other's loads, where registers and shared memory last.
template <int kWidth>
inline constexpr int kTileBlocks = kWidth <= 64 ? 2 : 1;
// The largest head that the kernels are compiled for.
inline constexpr int kWidestHead = 256;

// Calls body(std::integral_constant<int, kWidth>()) with the narrowest tiles that hold rows of queries, keys and
// values.
template <class Body>
auto with_tile_width(const Tensor& query, const Tensor& value, const Body& body) {
  const int64_t width = std::max(query.size(3), value.size(3));
  if (width <= 64) return body(std::integral_constant<int, 64>());
  if (width <= 128) return body(std::integral_constant<int, 128>());
  return body(std::integral_constant<int, kWidestHead>());
}

// (B, heads, length, width), the numbers of a row side by side.
template <class T>
struct HeadRows {
  T* data = nullptr;
  int64_t strides[3] = {};
  int width = 0;
  bool by_four = false, by_eight = false;  // whether so many neighbours can be moved at once

  HeadRows() = default;
  explicit HeadRows(const Tensor& t) : data(t.data_ptr<std::remove_const_t<T>>()), width(static_cast<int>(t.size(3))) {
    for (int d = 0; d < 3; ++d) strides[d] = t.stride(d);
    by_four = moves_by(4);
    by_eight = moves_by(8);
  }
  __device__ T* row(int64_t batch, int64_t head, int64_t i) const {
    return data + batch * strides[0] + head * strides[1] + i * strides[2];
  }

 private:
  bool moves_by(int numbers) const {
    const auto divided = [numbers](int64_t n) { return n % numbers == 0; };
    return divided(width) && std::all_of(strides, strides + 3, divided) &&
           reinterpret_cast<uintptr_t>(data) % (numbers * sizeof(T)) == 0;
  }
};

// What all kernels are told.
template <class T>
struct TiledAttention {
  static constexpr float kLog2E = 1.44269504f;

  HeadRows<const T> query, key, value;
  const T* bias;  // null: none
  int64_t bias_strides[4];
  int64_t batches, heads, sharing;  // how many heads of queries share one of keys
  int64_t queries, keys;
  bool causal;
  float scale;
  const int64_t *seed, *offset;  // null: no dropout
  functors::Bernoulli keep;
  float kept_scale;

  // query, key and value have rows without gaps.
  TiledAttention(const AttentionProblem& p, const Tensor& q, const Tensor& k, const Tensor& v)
      : query(q),
        key(k),
        value(v),
        bias(p.bias.defined() ? p.bias.data_ptr<T>() : nullptr),
        batches(q.size(0)),
        heads(q.size(1)),
        sharing(k.size(1) > 0 ? q.size(1) / k.size(1) : 1),
        queries(q.size(2)),
        keys(k.size(2)),
        causal(p.is_causal),
        scale(static_cast<float>(p.scale)),
        seed(p.dropout_p > 0 ? p.seed.data_ptr<int64_t>() : nullptr),
        offset(p.dropout_p > 0 ? p.offset.data_ptr<int64_t>() : nullptr),
        keep(1 - p.dropout_p),
        kept_scale(static_cast<float>(1 / (1 - p.dropout_p))) {
    for (int d = 0; d < 4; ++d) bias_strides[d] = bias ? p.bias.stride(d) : 0;
  }

  // The items of a launch: tiles of queries, or of keys, of all heads.
  __host__ __device__ int64_t query_items() const { return batches * heads * ((queries + kTile - 1) / kTile); }
  __host__ __device__ int64_t key_items() const { return batches * shared_heads() * ((keys + kTile - 1) / kTile); }
  __host__ __device__ int64_t shared_heads() const { return heads / sharing; }

  // How many keys a query sees.
  __device__ int64_t visible(int64_t i) const { return causal && i + 1 < keys ? i + 1 : keys; }
  // Whether kTile queries from i on see kTile keys from k on, all of which exist, and nothing is added to their scores.
  __device__ bool all_visible(int64_t i, int64_t k) const {
    return !bias && i + kTile <= queries && k + kTile <= visible(i);
  }
  // The score of a query and a key in units of ln 2, for 2^x is what the hardware computes. -inf where the key is
  // hidden from the query or either does not exist.
  __device__ float score(float product, int64_t batch, int64_t head, int64_t i, int64_t k) const {
    if (i >= queries || k >= visible(i)) return -INFINITY;
    float s = product * scale;
    if (bias) {
      s += static_cast<float>(
          bias[batch * bias_strides[0] + head * bias_strides[1] + i * bias_strides[2] + k * bias_strides[3]]);
    }
    return s * kLog2E;
  }
  __device__ PhiloxState random_state() const {
    return seed ? PhiloxState{static_cast<uint64_t>(*seed), static_cast<uint64_t>(*offset)} : PhiloxState{};
  }
};

// logsumexp of a row from its largest score, in units of ln 2, and the sum of 2^(score - largest). -inf without keys.
__device__ inline float log_of_sum(float largest, float sum) {
  constexpr float kLn2 = 0.693147181f;
  return sum == 0 ? -INFINITY : (largest + log2f(sum)) * kLn2;
}

// 1 / (1 - p) or 0 for four neighbouring weights, the first of which is element `first` of all: it takes that word of
// the stream, as in native_dropout. Out of line: two blocks of the stream take more registers than the sums leave.
__device__ __noinline__ inline float4 dropout_factors(PhiloxState state, uint64_t first, functors::Bernoulli keep,
                                                      float kept_scale) {
  const PhiloxBlock low = philox_block(state, first / 4), high = philox_block(state, first / 4 + 1);
  const uint32_t words[] = {low[0], low[1], low[2], low[3], high[0], high[1], high[2]};
  const int shift = static_cast<int>(first % 4);
  float factor[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const uint32_t word = shift == 0 ? words[e] : shift == 1 ? words[e + 1] : shift == 2 ? words[e + 2] : words[e + 3];
    factor[e] = keep(word) ? kept_scale : 0.0f;
  }
  return {factor[0], factor[1], factor[2], factor[3]};
}

// Those of query i and four neighbouring keys; `head` counts over batches.
template <class T>
__device__ void dropout_factors(const TiledAttention<T>& a, const PhiloxState& state, int64_t head, int64_t i,
                                int64_t key, float (&factor)[4]) {
  const uint64_t first = (static_cast<uint64_t>(head) * a.queries + i) * a.keys + key;
  const float4 four = dropout_factors(state, first, a.keep, a.kept_scale);
  factor[0] = four.x;
  factor[1] = four.y;
  factor[2] = four.z;
  factor[3] = four.w;
}

__device__ inline int tile_x() { return threadIdx.x % 16; }
__device__ inline int tile_y() { return threadIdx.x / 16; }

// `rows` rows from `from` on into shared memory; lines and numbers beyond are zero.
template <bool spread, int kWidth>
__device__ void load_tile(float* tile, const float* from, const HeadRows<const float>& of, int64_t rows) {
  constexpr int kFours = kWidth / 4;
#pragma unroll 4
  for (int four = threadIdx.x; four < kTile * kFours; four += kTileThreads) {
    const int r = four / kFours, c = four % kFours * 4;
    float4 numbers = {0, 0, 0, 0};
    if (r < rows && c < of.width) {
      const float* at = from + r * of.strides[2] + c;
      if (of.by_four) {
        numbers = *reinterpret_cast<const float4*>(at);
      } else {
        numbers.x = at[0];
        if (c + 1 < of.width) numbers.y = at[1];
        if (c + 2 < of.width) numbers.z = at[2];
        if (c + 3 < of.width) numbers.w = at[3];
      }
    }
    const int line = spread ? r % 4 * 16 + r / 4 : r;
    *reinterpret_cast<float4*>(tile + line * kTileLine<kWidth> + c) = numbers;
  }
}

// products[i][j] = the sum over `depth` numbers of row 4 y + i of a and column 4 x + j of b, which is spread.
template <int kWidth>
__device__ void multiply_rows(float (&products)[4][4], const float* a, const float* b, int depth) {
  constexpr int kLine = kTileLine<kWidth>;
  const float* rows = a + 4 * tile_y() * kLine;
  const float* columns = b + tile_x() * kLine;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) products[i][j] = 0;
  }
#pragma unroll 2
  for (int d = 0; d < depth; d += 4) {
    float4 row[4], column[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) row[i] = *reinterpret_cast<const float4*>(rows + i * kLine + d);
#pragma unroll
    for (int j = 0; j < 4; ++j) column[j] = *reinterpret_cast<const float4*>(columns + 16 * j * kLine + d);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float& sum = products[i][j];
        sum = fmaf(row[i].x, column[j].x, sum);
        sum = fmaf(row[i].y, column[j].y, sum);
        sum = fmaf(row[i].z, column[j].z, sum);
        sum = fmaf(row[i].w, column[j].w, sum);
      }
    }
  }
}

// Each thread's part of 64 rows of kWidth numbers: rows 4 y + i, numbers 64 g + 4 x + l as [i][4 g + l].
template <int kWidth>
using RowSums = float[4][kWidth / 16];

template <int kWidth>
__device__ void clear(RowSums<kWidth>& sums) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int c = 0; c < kWidth / 16; ++c) sums[i][c] = 0;
  }
}

// Stores the thread's 4 x 4 weights where add_product reads them.
__device__ inline void store_weights(float* weights, const float (&part)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) weights[(4 * tile_y() + i) * kWeightLine + 16 * j + tile_x()] = part[i][j];
  }
}

// sums += weights (64, 64) times a spread tile (64, kWidth).
template <int kWidth>
__device__ void add_product(RowSums<kWidth>& sums, const float* weights, const float* tile) {
  constexpr int kLine = kTileLine<kWidth>;
  const float* rows = weights + 4 * tile_y() * kWeightLine;
  const float* columns = tile + 4 * tile_x();
#pragma unroll 2
  for (int p = 0; p < kTile; p += 4) {
    float weight[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 four = *reinterpret_cast<const float4*>(rows + i * kWeightLine + p);
      weight[i][0] = four.x;
      weight[i][1] = four.y;
      weight[i][2] = four.z;
      weight[i][3] = four.w;
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
#pragma unroll
      for (int g = 0; g < kWidth / 64; ++g) {
        const float4 four = *reinterpret_cast<const float4*>(columns + (p + q) * kLine + 64 * g);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float* sum = sums[i] + 4 * g;
          sum[0] = fmaf(weight[i][q], four.x, sum[0]);
          sum[1] = fmaf(weight[i][q], four.y, sum[1]);
          sum[2] = fmaf(weight[i][q], four.z, sum[2]);
          sum[3] = fmaf(weight[i][q], four.w, sum[3]);
        }
      }
    }
  }
}

// factor[i] * sums[i] into the rows from `to` on, of which there are `rows`.
template <int kWidth>
__device__ void store_rows(float* to, const HeadRows<float>& of, int64_t rows, const RowSums<kWidth>& sums,
                           const float (&factor)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int r = 4 * tile_y() + i;
    if (r >= rows) continue;
#pragma unroll
    for (int g = 0; g < kWidth / 64; ++g) {
      const int c = 64 * g + 4 * tile_x();
      float* at = to + r * of.strides[2] + c;
      const float4 four = {sums[i][4 * g] * factor[i], sums[i][4 * g + 1] * factor[i], sums[i][4 * g + 2] * factor[i],
                           sums[i][4 * g + 3] * factor[i]};
      if (of.by_four) {
        if (c < of.width) *reinterpret_cast<float4*>(at) = four;
        continue;
      }
      if (c < of.width) at[0] = four.x;
      if (c + 1 < of.width) at[1] = four.y;
      if (c + 2 < of.width) at[2] = four.z;
      if (c + 3 < of.width) at[3] = four.w;
    }
  }
}

// Where a block's work lies: one tile of rows of one head.
struct TileOf {
  int64_t batch, head, first;
  // Item `item` of heads x tiles; late tiles, which see the most keys under a causal mask, come first.
  __device__ TileOf(int64_t item, int64_t heads, int64_t length, bool late_first) {
    const int64_t tiles = (length + kTile - 1) / kTile, tile = item % tiles, all = item / tiles;
    batch = all / heads;
    head = all % heads;
    first = (late_first ? tiles - 1 - tile : tile) * kTile;
  }
};
// A tile of queries.
struct QueryTile : TileOf {
  int64_t shared_head;  // of keys and values
  int64_t every_head;   // the head, counted over batches
  int64_t rows;         // how many queries are left, this tile's and those after it
  int64_t seen;         // how many keys the tile's queries see
  template <class T>
  __device__ QueryTile(int64_t item, const TiledAttention<T>& a)
      : TileOf(item, a.heads, a.queries, a.causal),
        shared_head(head / a.sharing),
        every_head(batch * a.heads + head),
        rows(a.queries - first),
        seen(a.visible(first + (rows < kTile ? rows : kTile) - 1)) {}
};
// A tile of keys, and of their values.
struct KeyTile : TileOf {
  int64_t rows;  // how many keys are left
  template <class T>
  __device__ KeyTile(int64_t item, const TiledAttention<T>& a)
      : TileOf(item, a.shared_heads(), a.keys, false), rows(a.keys - first) {}
};
inline unsigned tile_grid(int64_t items) { return static_cast<unsigned>(std::min<int64_t>(items, 0x7fffffff)); }

// Lets a kernel have that much shared memory, and launches it over the items.
template <class... Parameters, class... Arguments>
void launch_tiles(const char* op, void (*kernel)(Parameters...), int bytes, int threads, int64_t items,
                  Arguments... arguments) {
  if (items == 0) return;
  RUSH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  kernel<<<tile_grid(items), threads, static_cast<size_t>(bytes), current_stream()>>>(arguments...);
  RUSH_CUDA_LAUNCHED(op);
}

// What the kernels of the gradient are told besides.
template <class T>
struct TiledGradient {
  HeadRows<const T> grad;  // of out
  const float* logsumexp;  // (B, H, L)
  const float* along;      // (B, H, L): the sums of grad * out
};

// kernels::efficient_attention_backward.
void efficient_attention_backward(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& out,
                                  const Tensor& logsumexp, const AttentionProblem& problem);

// For numbers of 16 bits: Note [Attention on tensor cores]. The gradient is told what TiledGradient holds; grad's rows
// have no gaps, and logsumexp is contiguous.
void mma_attention(const Tensor& out, const Tensor& logsumexp, const AttentionProblem& problem);
void mma_attention_backward(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& logsumexp,
                            const float* along, const AttentionProblem& problem);

// The tensor itself where the numbers of a row lie side by side, else a copy.
Tensor with_dense_rows(const Tensor& t);

}  // namespace rush::cuda
