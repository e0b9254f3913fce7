// The parameters of the tiled attention kernels, and the tile that a thread block works on.
#pragma once
#include "backends/cuda/kernels/launch.h"
#include "backends/functors/random.h"
#include "core/ops/nn/fused_attention.h"
#include "core/philox.h"

namespace rush::cuda {

// Rows of a block's tile: queries, or keys for their gradients.
inline constexpr int kTile = 64;
inline constexpr int kTileThreads = kTile / 16 * 32;  // a warp for 16 rows
// The largest head that the kernels are compiled for.
inline constexpr int kWidestHead = 256;

// Calls body(std::integral_constant<int, kWidth>()) with the smallest kWidth that holds a row of Q, K and V.
template <class Body>
auto with_tile_width(const Tensor& query, const Tensor& value, const Body& body) {
  const int64_t width = std::max(query.size(3), value.size(3));
  if (width <= 64) return body(std::integral_constant<int, 64>());
  if (width <= 128) return body(std::integral_constant<int, 128>());
  return body(std::integral_constant<int, kWidestHead>());
}

// A tensor (B, heads, length, width) whose last dimension has stride 1.
template <class T>
struct HeadRows {
  T* data = nullptr;
  int64_t strides[3] = {};
  int width = 0;
  bool by_four = false, by_eight = false;  // whether one access may move four or eight neighbouring numbers

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

template <class T>
struct TiledAttention {
  static constexpr float kLog2E = 1.44269504f;

  HeadRows<const T> query, key, value;
  const T* bias;  // null: none
  int64_t bias_strides[4];
  int64_t batches, heads, sharing;  // sharing: how many heads of queries use the same head of keys and values
  int64_t queries, keys;
  bool causal;
  float scale;
  const int64_t *seed, *offset;  // null: no dropout
  functors::Bernoulli keep;
  float kept_scale;

  // The last dimension of q, k and v must have stride 1.
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

  // How many tiles of queries, or of keys, all heads have.
  __host__ __device__ int64_t query_items() const { return batches * heads * ((queries + kTile - 1) / kTile); }
  __host__ __device__ int64_t key_items() const { return batches * shared_heads() * ((keys + kTile - 1) / kTile); }
  __host__ __device__ int64_t shared_heads() const { return heads / sharing; }

  __device__ int64_t visible(int64_t i) const { return causal && i + 1 < keys ? i + 1 : keys; }
  // Whether queries [i, i + kTile) and keys [k, k + kTile) exist, no pair of them is masked, and there is no bias.
  __device__ bool all_visible(int64_t i, int64_t k) const {
    return !bias && i + kTile <= queries && k + kTile <= visible(i);
  }
  // S = (scale Q K^T + bias) log2(e) of query i and key k: the hardware computes 2^x. It is -inf if the mask hides the
  // key or either index is out of range.
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

// The tile of rows of one head that a thread block works on.
struct TileOf {
  int64_t batch, head, first;
  // Item `item` of heads x tiles. With `late_first`, the last tile of a head, which has the most keys under a causal
  // mask, comes first.
  __device__ TileOf(int64_t item, int64_t heads, int64_t length, bool late_first) {
    const int64_t tiles = (length + kTile - 1) / kTile, tile = item % tiles, all = item / tiles;
    batch = all / heads;
    head = all % heads;
    first = (late_first ? tiles - 1 - tile : tile) * kTile;
  }
};
struct QueryTile : TileOf {
  int64_t shared_head;  // of keys and values
  int64_t every_head;   // the head, counted over batches
  int64_t rows;         // the queries from `first` to the end
  int64_t seen;         // how many keys the last query of the tile attends to
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
  int64_t rows;  // the keys from `first` to the end
  template <class T>
  __device__ KeyTile(int64_t item, const TiledAttention<T>& a)
      : TileOf(item, a.shared_heads(), a.keys, false), rows(a.keys - first) {}
};

// LSE of a row: ln 2 (largest + log2(sum)), with sum = the row's sum of 2^(S - largest). It is -inf without keys.
__device__ inline float log_of_sum(float largest, float sum) {
  constexpr float kLn2 = 0.693147181f;
  return sum == 0 ? -INFINITY : (largest + log2f(sum)) * kLn2;
}

inline unsigned tile_grid(int64_t items) { return static_cast<unsigned>(std::min<int64_t>(items, 0x7fffffff)); }

// Raises the kernel's limit of shared memory to `bytes`, and launches it over the items.
template <class... Parameters, class... Arguments>
void launch_tiles(const char* op, void (*kernel)(Parameters...), int bytes, int64_t items, Arguments... arguments) {
  if (items == 0) return;
  RUSH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  launch_kernel(op, kernel, {tile_grid(items), kTileThreads, static_cast<size_t>(bytes)}, arguments...);
}

template <class T>
struct TiledGradient {
  HeadRows<const T> grad;  // of out
  const float* logsumexp;  // (B, H, L)
  const float* delta;      // (B, H, L): rowsum(grad * out)
};

// kernels::efficient_attention_backward.
void efficient_attention_backward(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& out,
                                  const Tensor& logsumexp, const AttentionProblem& problem);

// The tensor itself if its last dimension has stride 1, otherwise a contiguous copy.
Tensor with_dense_rows(const Tensor& t);

}  // namespace rush::cuda
