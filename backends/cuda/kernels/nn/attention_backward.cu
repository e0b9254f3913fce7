// The backward pass of tiled attention. See Note [Attention by tiles on the GPU].
//
// With P = softmax(S) and dropout's factors M, O = (M P) V (all products but those of matrices are element-wise). Given
// dO: dV = (M P)^T dO, dP = M (dO V^T), delta = rowsum(dO O), dS = P (dP - delta), dQ = scale dS K, dK = scale dS^T Q.
#include "backends/cuda/kernels/nn/attention_fragments.h"
#include "backends/cuda/memory/scratch.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

// delta = rowsum(dO O), a warp for each row.
template <class T>
__global__ void __launch_bounds__(kThreads) delta_kernel(const HeadRows<const T> grad, const HeadRows<const T> out,
                                                         float* delta, int64_t rows, int64_t heads, int64_t length) {
  constexpr int kWarps = kThreads / 32;
  const int lane = threadIdx.x % 32;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32; i < rows;
       i += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t batch = i / length / heads, head = i / length % heads;
    const T *g = grad.row(batch, head, i % length), *o = out.row(batch, head, i % length);
    float sum = 0;
    for (int c = lane; c < grad.width; c += 32) sum += static_cast<float>(g[c]) * static_cast<float>(o[c]);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (lane == 0) delta[i] = sum;
  }
}

struct DeltaLoop {
  template <class T>
  static void run(const Tensor& grad, const Tensor& out, float* delta) {
    const int64_t heads = grad.size(1), length = grad.size(2), rows = grad.size(0) * heads * length;
    if (rows == 0) return;
    constexpr int64_t kRows = kThreads / 32;
    launch_kernel(kernels::efficient_attention_backward.name(), delta_kernel<T>,
                  {tile_grid((rows + kRows - 1) / kRows), kThreads}, HeadRows<const T>(grad), HeadRows<const T>(out),
                  delta, rows, heads, length);
  }
};

// LSE in units of ln 2, so that P = 2^(S - lse). It is +inf for a row without keys, whose P is 0.
__device__ float lse_in_log2(float logsumexp) {
  return logsumexp == -INFINITY ? INFINITY : logsumexp * TiledAttention<float>::kLog2E;
}

template <int kWidth, class T>
__global__ void __launch_bounds__(kTileThreads, TileOfRows<kWidth, T>::kBlocks)
    query_gradient_kernel(const __grid_constant__ TiledAttention<T> a, const __grid_constant__ TiledGradient<T> g,
                          const HeadRows<T> grad_query) {
  using Tile = TileOfRows<kWidth, T>;
  extern __shared__ float4 shared[];
  T* query = reinterpret_cast<T*>(shared);
  T* grad = query + Tile::kRowNumbers;
  T* columns = grad + Tile::kRowNumbers;
  const PhiloxState random = a.random_state();
  const int64_t items = a.query_items();
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const QueryTile at(item, a);
    fetch_rows<kWidth, kTile>(query, a.query.row(at.batch, at.head, at.first), a.query, at.rows);
    fetch_rows<kWidth, kTile>(grad, g.grad.row(at.batch, at.head, at.first), g.grad, at.rows);
    float lse[2], delta[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int r = row_of_lane() + 8 * h;
      lse[h] = r < at.rows ? lse_in_log2(g.logsumexp[at.every_head * a.queries + at.first + r]) : INFINITY;
      delta[h] = r < at.rows ? g.delta[at.every_head * a.queries + at.first + r] : 0.0f;
    }
    Accumulator<kWidth> sums;
    clear(sums);
    const auto fetch = [&](int buffer, int64_t k) { fetch_keys<kWidth>(columns, buffer, a, at, k); };
    const auto work = [&](int buffer, int64_t k) {
      const T* key = tiles_of<kWidth>(columns, buffer);
      typename Tile::Scores p, dp;
      multiply_transposed<kWidth>(p, query, key, a.query.width);
      scale_and_mask<false>(p, a, at.batch, at.head, at.first, k);
      multiply_transposed<kWidth>(dp, grad, key + Tile::kColumnNumbers, a.value.width);
      if (a.seed)
        apply_dropout(dp, dropout_mask<false, Tile::kColumns>(a, random, at.every_head, at.first, k), a.kept_scale);
#pragma unroll
      for (int j = 0; j < Tile::kColumns / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float weight = power_of_two(p[j][e] - lse[e / 2]);
          dp[j][e] = weight * (dp[j][e] - delta[e / 2]);
        }
      }
      multiply_add_tile<kWidth>(sums, dp, key);
    };
    walk_columns<Tile::kColumns, Tile::kBackwardBuffers>(0, at.seen, fetch, work);
    const float scales[2] = {a.scale, a.scale};
    store_rows<kWidth>(grad_query.row(at.batch, at.head, at.first), grad_query, at.rows, sums, scales);
  }
}

// Rows are keys, and columns are the queries of all heads that share them. A kernel computes dK, dV or both: in wide
// heads the accumulators of both do not fit the registers.
enum class GradientOf { Keys, Values, Both };

template <int kWidth, GradientOf kOf, class T>
__global__ void __launch_bounds__(kTileThreads, TileOfRows<kWidth, T>::kBlocks < 2 ? 1 : 2)
    key_gradient_kernel(const __grid_constant__ TiledAttention<T> a, const __grid_constant__ TiledGradient<T> g,
                        const HeadRows<T> grad_key, const HeadRows<T> grad_value) {
  constexpr bool kKeys = kOf != GradientOf::Values, kValues = kOf != GradientOf::Keys;
  using Tile = TileOfRows<kWidth, T>;
  extern __shared__ float4 shared[];
  T* key = reinterpret_cast<T*>(shared);
  T* value = key + Tile::kRowNumbers;
  T* columns = value + Tile::kRowNumbers;
  float* of_queries =
      reinterpret_cast<float*>(columns + 2 * Tile::kBackwardBuffers * Tile::kColumnNumbers);  // LSE, then delta
  const PhiloxState random = a.random_state();
  const int64_t items = a.key_items();
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const KeyTile at(item, a);
    fetch_rows<kWidth, kTile>(key, a.key.row(at.batch, at.head, at.first), a.key, at.rows);
    if constexpr (kKeys) fetch_rows<kWidth, kTile>(value, a.value.row(at.batch, at.head, at.first), a.value, at.rows);
    Accumulator<kKeys ? kWidth : 16> key_sums;
    Accumulator<kValues ? kWidth : 16> value_sums;
    clear(key_sums);
    clear(value_sums);
    for (int64_t head = at.head * a.sharing; head < (at.head + 1) * a.sharing; ++head) {
      const int64_t all_heads = at.batch * a.heads + head, line = all_heads * a.queries;
      const auto fetch = [&](int buffer, int64_t q) {
        T* query = tiles_of<kWidth>(columns, buffer);
        fetch_rows<kWidth, Tile::kColumns>(query, a.query.row(at.batch, head, q), a.query, a.queries - q);
        fetch_rows<kWidth, Tile::kColumns>(query + Tile::kColumnNumbers, g.grad.row(at.batch, head, q), g.grad,
                                           a.queries - q);
        if (threadIdx.x < 2 * Tile::kColumns) {  // a number for each thread: the first half copies LSE
          const float* from = threadIdx.x < Tile::kColumns ? g.logsumexp : g.delta;
          const int64_t i = q + threadIdx.x % Tile::kColumns;
          const bool real = i < a.queries;
          copy_async<4>(of_queries + 2 * Tile::kColumns * buffer + threadIdx.x, from + line + (real ? i : 0), real);
        }
      };
      const auto work = [&](int buffer, int64_t q) {
        const T* query = tiles_of<kWidth>(columns, buffer);
        const T* grad = query + Tile::kColumnNumbers;
        const float* sums = of_queries + 2 * Tile::kColumns * buffer + column_of_lane();
        typename Tile::Scores p;
        multiply_transposed<kWidth>(p, key, query, a.query.width);
        scale_and_mask<true>(p, a, at.batch, head, q, at.first);
#pragma unroll
        for (int j = 0; j < Tile::kColumns / 8; ++j) {
          const float2 of_two = *reinterpret_cast<const float2*>(sums + 8 * j);
          const float lse[2] = {lse_in_log2(of_two.x), lse_in_log2(of_two.y)};
#pragma unroll
          for (int e = 0; e < 4; ++e) p[j][e] = power_of_two(p[j][e] - lse[e % 2]);
        }
        const uint32_t kept = a.seed ? dropout_mask<true, Tile::kColumns>(a, random, all_heads, q, at.first) : 0;
        if constexpr (kKeys) {
          typename Tile::Scores dp;
          multiply_transposed<kWidth>(dp, value, grad, a.value.width);
          if (a.seed) apply_dropout(dp, kept, a.kept_scale);
#pragma unroll
          for (int j = 0; j < Tile::kColumns / 8; ++j) {
            const float2 delta = *reinterpret_cast<const float2*>(sums + Tile::kColumns + 8 * j);
#pragma unroll
            for (int e = 0; e < 4; ++e) dp[j][e] = p[j][e] * (dp[j][e] - (e % 2 ? delta.y : delta.x));
          }
          multiply_add_tile<kWidth>(key_sums, dp, query);
        }
        if constexpr (kValues) {
          if (a.seed) apply_dropout(p, kept, a.kept_scale);
          multiply_add_tile<kWidth>(value_sums, p, grad);
        }
      };
      // Under a causal mask, queries before the tile's first key attend to none of its keys.
      walk_columns<Tile::kColumns, Tile::kBackwardBuffers>(a.causal ? at.first : 0, a.queries, fetch, work);
    }
    const float scales[2] = {a.scale, a.scale}, ones[2] = {1, 1};
    if constexpr (kKeys) {
      if (grad_key.data) {
        store_rows<kWidth>(grad_key.row(at.batch, at.head, at.first), grad_key, at.rows, key_sums, scales);
      }
    }
    if constexpr (kValues) {
      if (grad_value.data) {
        store_rows<kWidth>(grad_value.row(at.batch, at.head, at.first), grad_value, at.rows, value_sums, ones);
      }
    }
  }
}

struct BackwardLoop {
  template <class T>
  static void run(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& logsumexp, const float* delta,
                  const AttentionProblem& p) {
    const Tensor q = with_dense_rows(p.query), k = with_dense_rows(p.key), v = with_dense_rows(p.value);
    const TiledAttention<T> a(p, q, k, v);
    const TiledGradient<T> gradient{HeadRows<const T>(grad), logsumexp.data_ptr<float>(), delta};
    with_tile_width(q, v, [&](auto width) { launch<decltype(width)::value>(a, gradient, grads); });
  }

 private:
  template <int kWidth, class T>
  static void launch(const TiledAttention<T>& a, const TiledGradient<T>& g, const std::array<Tensor, 3>& grads) {
    const char* op = kernels::efficient_attention_backward.name();
    const auto rows_of = [](const Tensor& t) { return t.defined() ? HeadRows<T>(t) : HeadRows<T>(); };
    constexpr int kBytes = TileOfRows<kWidth, T>::kBackwardBytes;
    if (grads[0].defined()) {
      launch_tiles(op, query_gradient_kernel<kWidth, T>, kBytes, a.query_items(), a, g, rows_of(grads[0]));
    }
    const auto launch_keys = [&](auto kernel) {
      launch_tiles(op, kernel, kBytes, a.key_items(), a, g, rows_of(grads[1]), rows_of(grads[2]));
    };
    if constexpr (kWidth <= 64) {
      if (grads[1].defined() || grads[2].defined()) launch_keys(key_gradient_kernel<kWidth, GradientOf::Both, T>);
    } else {
      if (grads[1].defined()) launch_keys(key_gradient_kernel<kWidth, GradientOf::Keys, T>);
      if (grads[2].defined()) launch_keys(key_gradient_kernel<kWidth, GradientOf::Values, T>);
    }
  }
};

}  // namespace

void efficient_attention_backward(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& out,
                                  const Tensor& logsumexp, const AttentionProblem& p) {
  const char* op = kernels::efficient_attention_backward.name();
  using Types = TypeList<float, Half, BFloat16>;
  const Tensor g = with_dense_rows(grad), o = with_dense_rows(out), sums = native::contiguous(logsumexp);
  const Scratch delta(static_cast<size_t>(sums.numel()) * sizeof(float));
  pick<DeltaLoop>(Types(), p.query.scalar_type(), op)(g, o, delta.as<float>());
  pick<BackwardLoop>(Types(), p.query.scalar_type(), op)(grads, g, sums, delta.as<float>(), p);
}

}  // namespace rush::cuda
