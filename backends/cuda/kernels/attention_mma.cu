// Attention on tensor cores: see Note [Attention on tensor cores].
#include "backends/cuda/kernels/attention_mma.h"
#include "backends/cuda/kernels/pick.h"

namespace rush::cuda {

namespace {

// Of the four lanes that share a row.
__device__ float largest_of_four(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ float sum_of_four(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// Scores of row h become weights relative to its largest score, which may rise; returns what was summed before has to
// be multiplied by. `total` is this thread's part of the row's sum.
__device__ float take_scores(Fragments& scores, int h, float& largest, float& total) {
  float seen = -INFINITY;
#pragma unroll
  for (int j = 0; j < kTile / 8; ++j) seen = fmaxf(seen, fmaxf(scores[j][2 * h], scores[j][2 * h + 1]));
  seen = fmaxf(largest, largest_of_four(seen));
  const float level = seen == -INFINITY ? 0.0f : seen;  // where all keys are hidden weights are 0
  const float shrink = power_of_two(largest - level);
  total *= shrink;
#pragma unroll
  for (int j = 0; j < kTile / 8; ++j) {
#pragma unroll
    for (int e = 2 * h; e < 2 * h + 2; ++e) {
      scores[j][e] = power_of_two(scores[j][e] - level);
      total += scores[j][e];
    }
  }
  largest = seen;
  return shrink;
}

template <int kWidth, class T>
__global__ void __launch_bounds__(kMmaThreads, kMmaBlocks<kWidth>)
    attention_mma_kernel(const __grid_constant__ TiledAttention<T> a, const HeadRows<T> out, float* logsumexp) {
  extern __shared__ float4 shared[];
  T* query = reinterpret_cast<T*>(shared);
  T* columns = query + kMmaNumbers<kWidth>;
  const PhiloxState random = a.random_state();
  const int64_t items = a.query_items();
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const QueryTile at(item, a);
    fetch_lines<kWidth>(query, a.query.row(at.batch, at.head, at.first), a.query, at.rows);
    MmaSums<kWidth> sums;
    clear(sums);
    float largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
    const auto fetch = [&](int buffer, int64_t k) { fetch_keys<kWidth>(columns, buffer, a, at, k); };
    const auto work = [&](int buffer, int64_t k) {
      const T* key = tiles_of<kWidth>(columns, buffer);
      Fragments part;
      multiply_lines<kWidth>(part, query, key, a.query.width);
      take_products<false>(part, a, at.batch, at.head, at.first, k);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float shrink = take_scores(part, h, largest[h], total[h]);
#pragma unroll
        for (int n = 0; n < kWidth / 8; ++n) {
          sums[n][2 * h] *= shrink;
          sums[n][2 * h + 1] *= shrink;
        }
      }
      if (a.seed) drop_weights(part, kept_weights<false>(a, random, at.every_head, at.first, k), a.kept_scale);
      add_lines<kWidth>(sums, part, key + kMmaNumbers<kWidth>);
    };
    walk_columns(0, at.seen, fetch, work);
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float sum = sum_of_four(total[h]);
      factor[h] = sum == 0 ? 0.0f : 1 / sum;
      const int r = mma_row() + 8 * h;
      if (logsumexp && mma_column() == 0 && r < at.rows) {
        logsumexp[at.every_head * a.queries + at.first + r] = log_of_sum(largest[h], sum);
      }
    }
    store_lines<kWidth>(out.row(at.batch, at.head, at.first), out, at.rows, sums, factor);
  }
}

struct MmaLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& logsumexp, const AttentionProblem& p) {
    const Tensor q = with_dense_rows(p.query), k = with_dense_rows(p.key), v = with_dense_rows(p.value);
    const TiledAttention<T> a(p, q, k, v);
    with_tile_width(q, v, [&](auto width) {
      constexpr int kWidth = decltype(width)::value;
      launch_tiles(kernels::efficient_attention.name(), attention_mma_kernel<kWidth, T>, kMmaForwardBytes<kWidth>,
                   kMmaThreads, a.query_items(), a, HeadRows<T>(out),
                   logsumexp.defined() ? logsumexp.data_ptr<float>() : nullptr);
    });
  }
};

}  // namespace

void mma_attention(const Tensor& out, const Tensor& logsumexp, const AttentionProblem& p) {
  pick<MmaLoop>(TypeList<Half, BFloat16>(), p.query.scalar_type(), kernels::efficient_attention.name())(out, logsumexp,
                                                                                                        p);
}

}  // namespace rush::cuda
