// Attention by tiles: see Note [Attention by tiles on the GPU].
#include "backends/cuda/device_properties.h"
#include "backends/cuda/dnn/attention.h"
#include "backends/cuda/kernels/attention_mma.h"
#include "backends/cuda/kernels/hidden_rows.h"
#include "backends/cuda/kernels/register_reductions.h"
#include "core/ops/copy.h"

namespace rush::cuda {

namespace {

// Of the 16 threads that share a row.
__device__ float largest_of_row(float x) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
  return x;
}
__device__ float sum_of_row(float x) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
  return x;
}

// Scores become weights relative to the row's largest score, which may rise; returns what was summed before has to be
// multiplied by. `total` is this thread's part of the row's sum.
__device__ float take_scores(float (&scores)[4], float& largest, float& total) {
  float seen = largest;
#pragma unroll
  for (int j = 0; j < 4; ++j) seen = fmaxf(seen, scores[j]);
  seen = largest_of_row(seen);
  const float shrink = seen == -INFINITY ? 1.0f : exp2f(largest - seen);
  total *= shrink;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    // Not for a hidden key: where all are, `seen` is -inf, too. A NaN stays one.
    scores[j] = scores[j] == -INFINITY ? 0.0f : exp2f(scores[j] - seen);
    total += scores[j];
  }
  largest = seen;
  return shrink;
}

template <int kWidth>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks<kWidth>)
    attention_kernel(const __grid_constant__ TiledAttention<float> a, const HeadRows<float> out, float* logsumexp) {
  extern __shared__ float4 shared[];
  float* query = reinterpret_cast<float*>(shared);
  float* tile = query + kTileNumbers<kWidth>;  // of keys, then of values
  float* weights = tile + kTileNumbers<kWidth>;
  const PhiloxState random = a.random_state();
  const int64_t items = a.query_items();
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const QueryTile at(item, a);
    __syncthreads();  // the last item's queries are done with
    load_tile<false, kWidth>(query, a.query.row(at.batch, at.head, at.first), a.query, at.rows);
    RowSums<kWidth> sums;
    clear<kWidth>(sums);
    float largest[4], total[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      largest[i] = -INFINITY;
      total[i] = 0;
    }
    for (int64_t k = 0; k < at.seen; k += kTile) {
      __syncthreads();  // the last tile's product is done
      load_tile<true, kWidth>(tile, a.key.row(at.batch, at.shared_head, k), a.key, a.keys - k);
      __syncthreads();
      float part[4][4];
      multiply_rows<kWidth>(part, query, tile, a.query.width);
      __syncthreads();
      load_tile<true, kWidth>(tile, a.value.row(at.batch, at.shared_head, k), a.value, a.keys - k);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t row = at.first + 4 * tile_y() + i, key = k + 4 * tile_x();
#pragma unroll
        for (int j = 0; j < 4; ++j) part[i][j] = a.score(part[i][j], at.batch, at.head, row, key + j);
        const float shrink = take_scores(part[i], largest[i], total[i]);
#pragma unroll
        for (int c = 0; c < kWidth / 16; ++c) sums[i][c] *= shrink;
        if (a.seed) {
          float factor[4];
          dropout_factors(a, random, at.every_head, row, key, factor);
#pragma unroll
          for (int j = 0; j < 4; ++j) part[i][j] *= factor[j];
        }
      }
      store_weights(weights, part);
      __syncthreads();
      add_product<kWidth>(sums, weights, tile);
    }
    float factor[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float sum = sum_of_row(total[i]);
      factor[i] = sum == 0 ? 0.0f : 1 / sum;
      const int r = 4 * tile_y() + i;
      if (logsumexp && tile_x() == 0 && r < at.rows) {
        logsumexp[at.every_head * a.queries + at.first + r] = log_of_sum(largest[i], sum);
      }
    }
    store_rows<kWidth>(out.row(at.batch, at.head, at.first), out, at.rows, sums, factor);
  }
}

void tiled_attention(const Tensor& out, const Tensor& logsumexp, const AttentionProblem& p) {
  const Tensor q = with_dense_rows(p.query), k = with_dense_rows(p.key), v = with_dense_rows(p.value);
  const TiledAttention<float> a(p, q, k, v);
  with_tile_width(q, v, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    launch_tiles(kernels::efficient_attention.name(), attention_kernel<kWidth>, tile_bytes<kWidth>(kForwardTiles),
                 kTileThreads, a.query_items(), a, HeadRows<float>(out),
                 logsumexp.defined() ? logsumexp.data_ptr<float>() : nullptr);
  });
}

void check_efficient(const char* op, const AttentionProblem& p, bool with_gradient) {
  const char* why = nullptr;
  kernels::efficient_attention_refusal(kCUDA, why, p, with_gradient);
  RUSH_CHECK_NOT_IMPLEMENTED(!why, op, ": ", why);
}

void efficient_attention(const Tensor& out, const Tensor& logsumexp, const AttentionProblem& p) {
  check_efficient(kernels::efficient_attention.name(), p, false);
  if (p.query.scalar_type() == kFloat32) return tiled_attention(out, logsumexp, p);
  mma_attention(out, logsumexp, p);
}

void checked_backward(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& out,
                      const Tensor& logsumexp, const AttentionProblem& p) {
  check_efficient(kernels::efficient_attention_backward.name(), p, true);
  efficient_attention_backward(grads, grad, out, logsumexp, p);
}

void refuse_efficient(const char*& why, const AttentionProblem& p, bool with_gradient) {
  const int64_t width = std::max(p.query.size(3), p.value.size(3));
  const bool in_float32 = p.query.scalar_type() == kFloat32;
  const int bytes = with_tile_width(p.query, p.value, [&](auto wide) {
    constexpr int kWidth = decltype(wide)::value;
    if (!in_float32) return with_gradient ? kMmaBackwardBytes<kWidth> : kMmaForwardBytes<kWidth>;
    return tile_bytes<kWidth>(with_gradient ? kBackwardTiles : kForwardTiles);
  });
  if (p.query.scalar_type() == kFloat64) {
    why = "computes in float32";
  } else if (!in_float32 && current_properties().major < 8) {
    why = "needs a GPU of compute capability 8.0 for 16 bits";
  } else if (width > kWidestHead || p.query.size(3) == 0) {
    why = "has heads of 1 to 256 numbers only";
  } else if (static_cast<size_t>(bytes) > current_properties().sharedMemPerBlockOptin) {
    why = "needs more shared memory for heads of that size than the GPU has";
  } else {
    why = nullptr;
  }
}

__global__ void store_philox_kernel(PhiloxState state, int64_t* seed, int64_t* offset) {
  const PhiloxState known = state.resolved();
  *seed = static_cast<int64_t>(known.seed);
  *offset = static_cast<int64_t>(known.offset);
}

void store_philox(const Tensor& seed, const Tensor& offset, const PhiloxState& state) {
  store_philox_kernel<<<1, 1, 0, current_stream()>>>(state, seed.data_ptr<int64_t>(), offset.data_ptr<int64_t>());
  RUSH_CUDA_LAUNCHED(kernels::store_philox.name());
}

// Row i of (B, H, L, width).
template <class T>
struct ClearHidden {
  HeadRows<T> out;
  float* logsumexp;
  int64_t heads, length;
  __device__ void operator()(int64_t i) const {
    if (logsumexp[i] > -INFINITY) return;
    logsumexp[i] = INFINITY;
    T* row = out.row(i / length / heads, i / length % heads, i % length);
    for (int c = 0; c < out.width; ++c) row[c] = T(0.0f);
  }
};

struct ClearHiddenLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& logsumexp) {
    for_each_index(kernels::cudnn_attention.name(), logsumexp.numel(),
                   ClearHidden<T>{HeadRows<T>(out), logsumexp.data_ptr<float>(), out.size(1), out.size(2)});
  }
};

}  // namespace

Tensor with_dense_rows(const Tensor& t) { return t.size(3) == 1 || t.stride(3) == 1 ? t : native::clone_contiguous(t); }

void clear_hidden_rows(const Tensor& out, const Tensor& logsumexp) {
  pick<ClearHiddenLoop>(TypeList<Half, BFloat16>(), out.scalar_type(), kernels::cudnn_attention.name())(out, logsumexp);
}

void register_attention() {
  kernels::efficient_attention.set(kCUDA, efficient_attention);
  kernels::efficient_attention_backward.set(kCUDA, checked_backward);
  kernels::efficient_attention_refusal.set(kCUDA, refuse_efficient);
  kernels::store_philox.set(kCUDA, store_philox);
  kernels::cudnn_attention.set(kCUDA, dnn_attention);
  kernels::cudnn_attention_backward.set(kCUDA, dnn_attention_backward);
  kernels::cudnn_attention_refusal.set(kCUDA, dnn_attention_refusal);
}

}  // namespace rush::cuda
