// The gradient of attention by tiles: see Note [Attention by tiles on the GPU].
//
// With weights P and dropout's factors M, out = (M P) V. For the gradient G of out: dV = (M P)^T G, dP = M (G V^T), and
// with D the row sums of G out, the scores' gradient is S = P (dP - D), so dQ = scale S K and dK = scale S^T Q.
#include "backends/cuda/kernels/attention_tile.h"
#include "backends/cuda/memory/scratch.h"
#include "core/ops/copy.h"

namespace rush::cuda {

namespace {

// One warp a row.
template <class T>
__global__ void __launch_bounds__(kThreads) along_kernel(const HeadRows<const T> grad, const HeadRows<const T> out,
                                                         float* along, int64_t rows, int64_t heads, int64_t length) {
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
    if (lane == 0) along[i] = sum;
  }
}

// The weight of a score that is known in units of ln 2; 0 in a row that sees no key.
__device__ float weight_of(float score, float logsumexp) {
  return score == -INFINITY || logsumexp == -INFINITY ? 0.0f : exp2f(score - logsumexp * TiledAttention<float>::kLog2E);
}

template <int kWidth>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks<kWidth>)
    query_gradient_kernel(const __grid_constant__ TiledAttention<float> a,
                          const __grid_constant__ TiledGradient<float> g, const HeadRows<float> grad_query) {
  extern __shared__ float4 shared[];
  float* query = reinterpret_cast<float*>(shared);
  float* grad = query + kTileNumbers<kWidth>;
  float* tile = grad + kTileNumbers<kWidth>;  // of values, then of keys
  float* weights = tile + kTileNumbers<kWidth>;
  const PhiloxState random = a.random_state();
  const int64_t items = a.query_items();
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const QueryTile at(item, a);
    __syncthreads();  // the last item's tiles are done with
    load_tile<false, kWidth>(query, a.query.row(at.batch, at.head, at.first), a.query, at.rows);
    load_tile<false, kWidth>(grad, g.grad.row(at.batch, at.head, at.first), g.grad, at.rows);
    float level[4], along[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = 4 * tile_y() + i;
      level[i] = r < at.rows ? g.logsumexp[at.every_head * a.queries + at.first + r] : -INFINITY;
      along[i] = r < at.rows ? g.along[at.every_head * a.queries + at.first + r] : 0.0f;
    }
    RowSums<kWidth> sums;
    clear<kWidth>(sums);
    for (int64_t k = 0; k < at.seen; k += kTile) {
      __syncthreads();  // the last tile's product is done
      load_tile<true, kWidth>(tile, a.value.row(at.batch, at.shared_head, k), a.value, a.keys - k);
      __syncthreads();
      float slope[4][4], part[4][4];
      multiply_rows<kWidth>(slope, grad, tile, a.value.width);
      __syncthreads();
      load_tile<true, kWidth>(tile, a.key.row(at.batch, at.shared_head, k), a.key, a.keys - k);
      __syncthreads();
      multiply_rows<kWidth>(part, query, tile, a.query.width);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t row = at.first + 4 * tile_y() + i, key = k + 4 * tile_x();
        float factor[4] = {1, 1, 1, 1};
        if (a.seed) dropout_factors(a, random, at.every_head, row, key, factor);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float weight = weight_of(a.score(part[i][j], at.batch, at.head, row, key + j), level[i]);
          slope[i][j] = weight * (slope[i][j] * factor[j] - along[i]);
        }
      }
      store_weights(weights, slope);
      __syncthreads();
      add_product<kWidth>(sums, weights, tile);
    }
    const float factor[4] = {a.scale, a.scale, a.scale, a.scale};
    store_rows<kWidth>(grad_query.row(at.batch, at.head, at.first), grad_query, at.rows, sums, factor);
  }
}

// Rows are keys here, and columns queries, of all heads that share them.
template <int kWidth>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks<kWidth>)
    key_gradient_kernel(const __grid_constant__ TiledAttention<float> a, const __grid_constant__ TiledGradient<float> g,
                        const HeadRows<float> grad_key, const HeadRows<float> grad_value) {
  extern __shared__ float4 shared[];
  float* key = reinterpret_cast<float*>(shared);
  float* value = key + kTileNumbers<kWidth>;
  float* tile = value + kTileNumbers<kWidth>;  // of the output's gradient, then of queries, then of the gradient again
  float* weights = tile + kTileNumbers<kWidth>;
  const PhiloxState random = a.random_state();
  const int64_t items = a.key_items();
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const KeyTile at(item, a);
    __syncthreads();  // the last item's tiles are done with
    load_tile<false, kWidth>(key, a.key.row(at.batch, at.head, at.first), a.key, at.rows);
    load_tile<false, kWidth>(value, a.value.row(at.batch, at.head, at.first), a.value, at.rows);
    RowSums<kWidth> key_sums, value_sums;
    clear<kWidth>(key_sums);
    clear<kWidth>(value_sums);
    for (int64_t head = at.head * a.sharing; head < (at.head + 1) * a.sharing; ++head) {
      const int64_t line = (at.batch * a.heads + head) * a.queries;
      // Queries before the first of these keys see none of them.
      for (int64_t q = a.causal ? at.first : 0; q < a.queries; q += kTile) {
        const float* grad_rows = g.grad.row(at.batch, head, q);
        __syncthreads();  // the last tile's product is done
        load_tile<true, kWidth>(tile, grad_rows, g.grad, a.queries - q);
        __syncthreads();
        float slope[4][4], part[4][4];
        multiply_rows<kWidth>(slope, value, tile, a.value.width);
        __syncthreads();
        load_tile<true, kWidth>(tile, a.query.row(at.batch, head, q), a.query, a.queries - q);
        __syncthreads();
        multiply_rows<kWidth>(part, key, tile, a.query.width);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int64_t query = q + 4 * tile_x() + j, k = at.first + 4 * tile_y();
          const float level = query < a.queries ? g.logsumexp[line + query] : -INFINITY;
          const float along = query < a.queries ? g.along[line + query] : 0.0f;
          float factor[4] = {1, 1, 1, 1};
          if (a.seed) dropout_factors(a, random, at.batch * a.heads + head, query, k, factor);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float weight = weight_of(a.score(part[i][j], at.batch, head, query, k + i), level);
            slope[i][j] = weight * (slope[i][j] * factor[i] - along);
            part[i][j] = weight * factor[i];
          }
        }
        store_weights(weights, slope);
        __syncthreads();
        add_product<kWidth>(key_sums, weights, tile);
        __syncthreads();
        load_tile<true, kWidth>(tile, grad_rows, g.grad, a.queries - q);
        store_weights(weights, part);
        __syncthreads();
        add_product<kWidth>(value_sums, weights, tile);
      }
    }
    const float scales[4] = {a.scale, a.scale, a.scale, a.scale}, ones[4] = {1, 1, 1, 1};
    if (grad_key.data) {
      store_rows<kWidth>(grad_key.row(at.batch, at.head, at.first), grad_key, at.rows, key_sums, scales);
    }
    if (grad_value.data) {
      store_rows<kWidth>(grad_value.row(at.batch, at.head, at.first), grad_value, at.rows, value_sums, ones);
    }
  }
}

struct AlongLoop {
  template <class T>
  static void run(const Tensor& grad, const Tensor& out, float* along) {
    const int64_t heads = grad.size(1), length = grad.size(2), rows = grad.size(0) * heads * length;
    if (rows == 0) return;
    constexpr int64_t kRows = kThreads / 32;
    along_kernel<<<tile_grid((rows + kRows - 1) / kRows), kThreads, 0, current_stream()>>>(
        HeadRows<const T>(grad), HeadRows<const T>(out), along, rows, heads, length);
    RUSH_CUDA_LAUNCHED(kernels::efficient_attention_backward.name());
  }
};

template <int kWidth>
void launch(const TiledAttention<float>& a, const TiledGradient<float>& g, const std::array<Tensor, 3>& grads) {
  const char* op = kernels::efficient_attention_backward.name();
  constexpr int kBytes = tile_bytes<kWidth>(kBackwardTiles);
  const auto rows_of = [](const Tensor& t) { return t.defined() ? HeadRows<float>(t) : HeadRows<float>(); };
  if (grads[0].defined()) {
    launch_tiles(op, query_gradient_kernel<kWidth>, kBytes, kTileThreads, a.query_items(), a, g, rows_of(grads[0]));
  }
  if (grads[1].defined() || grads[2].defined()) {
    launch_tiles(op, key_gradient_kernel<kWidth>, kBytes, kTileThreads, a.key_items(), a, g, rows_of(grads[1]),
                 rows_of(grads[2]));
  }
}

}  // namespace

void efficient_attention_backward(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& out,
                                  const Tensor& logsumexp, const AttentionProblem& p) {
  const Tensor g = with_dense_rows(grad), o = with_dense_rows(out), sums = native::contiguous(logsumexp);
  const Scratch along(static_cast<size_t>(sums.numel()) * sizeof(float));
  pick<AlongLoop>(TypeList<float, Half, BFloat16>(), p.query.scalar_type(),
                  kernels::efficient_attention_backward.name())(g, o, along.as<float>());
  if (p.query.scalar_type() != kFloat32) return mma_attention_backward(grads, g, sums, along.as<float>(), p);
  const Tensor q = with_dense_rows(p.query), k = with_dense_rows(p.key), v = with_dense_rows(p.value);
  const TiledAttention<float> a(p, q, k, v);
  const TiledGradient<float> gradient{HeadRows<const float>(g), sums.data_ptr<float>(), along.as<float>()};
  with_tile_width(q, v, [&](auto width) { launch<decltype(width)::value>(a, gradient, grads); });
}

}  // namespace rush::cuda
