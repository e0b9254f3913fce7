// The forward pass of tiled attention. See Note [Attention by tiles on the GPU].
#include "backends/cuda/device_properties.h"
#include "backends/cuda/devices.h"
#include "backends/cuda/dnn/attention.h"
#include "backends/cuda/kernels/nn/attention_fragments.h"
#include "backends/cuda/kernels/nn/hidden_rows.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

__device__ float largest_of_four(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ float sum_of_four(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// Replaces row h of S by 2^(S - largest), after raising `largest` to the row's maximum so far. Returns the factor by
// which earlier sums of the row must be multiplied. `total` is this thread's share of the sum of the row.
template <int n>
__device__ float online_softmax(float (&scores)[n][4], int h, float& largest, float& total) {
  float seen = -INFINITY;
#pragma unroll
  for (int j = 0; j < n; ++j) seen = fmaxf(seen, fmaxf(scores[j][2 * h], scores[j][2 * h + 1]));
  seen = fmaxf(largest, largest_of_four(seen));
  const float shift = seen == -INFINITY ? 0.0f : seen;  // P is 0 if the mask hides all keys
  const float shrink = power_of_two(largest - shift);
  total *= shrink;
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 2 * h; e < 2 * h + 2; ++e) {
      scores[j][e] = power_of_two(scores[j][e] - shift);
      total += scores[j][e];
    }
  }
  largest = seen;
  return shrink;
}

template <int kWidth, class T>
__global__ void __launch_bounds__(kTileThreads, TileOfRows<kWidth, T>::kBlocks)
    attention_kernel(const __grid_constant__ TiledAttention<T> a, const HeadRows<T> out, float* logsumexp) {
  using Tile = TileOfRows<kWidth, T>;
  extern __shared__ float4 shared[];
  T* query = reinterpret_cast<T*>(shared);
  T* columns = query + Tile::kRowNumbers;
  const PhiloxState random = a.random_state();
  const int64_t items = a.query_items();
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const QueryTile at(item, a);
    fetch_rows<kWidth, kTile>(query, a.query.row(at.batch, at.head, at.first), a.query, at.rows);
    Accumulator<kWidth> sums;
    clear(sums);
    float largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
    const auto fetch = [&](int buffer, int64_t k) { fetch_keys<kWidth>(columns, buffer, a, at, k); };
    const auto work = [&](int buffer, int64_t k) {
      const T* key = tiles_of<kWidth>(columns, buffer);
      typename Tile::Scores p;
      multiply_transposed<kWidth>(p, query, key, a.query.width);
      scale_and_mask<false>(p, a, at.batch, at.head, at.first, k);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float shrink = online_softmax(p, h, largest[h], total[h]);
#pragma unroll
        for (int n = 0; n < kWidth / 8; ++n) {
          sums[n][2 * h] *= shrink;
          sums[n][2 * h + 1] *= shrink;
        }
      }
      if (a.seed)
        apply_dropout(p, dropout_mask<false, Tile::kColumns>(a, random, at.every_head, at.first, k), a.kept_scale);
      multiply_add_tile<kWidth>(sums, p, key + Tile::kColumnNumbers);
    };
    walk_columns<Tile::kColumns, Tile::kForwardBuffers>(0, at.seen, fetch, work);
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float sum = sum_of_four(total[h]);
      factor[h] = sum == 0 ? 0.0f : 1 / sum;
      const int r = row_of_lane() + 8 * h;
      if (logsumexp && column_of_lane() == 0 && r < at.rows) {
        logsumexp[at.every_head * a.queries + at.first + r] = log_of_sum(largest[h], sum);
      }
    }
    store_rows<kWidth>(out.row(at.batch, at.head, at.first), out, at.rows, sums, factor);
  }
}

struct ForwardLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& logsumexp, const AttentionProblem& p) {
    const Tensor q = with_dense_rows(p.query), k = with_dense_rows(p.key), v = with_dense_rows(p.value);
    const TiledAttention<T> a(p, q, k, v);
    with_tile_width(q, v, [&](auto width) {
      constexpr int kWidth = decltype(width)::value;
      launch_tiles(kernels::efficient_attention.name(), attention_kernel<kWidth, T>,
                   TileOfRows<kWidth, T>::kForwardBytes, a.query_items(), a, HeadRows<T>(out),
                   logsumexp.defined() ? logsumexp.data_ptr<float>() : nullptr);
    });
  }
};

void check_efficient(const char* op, const AttentionProblem& p, bool with_gradient) {
  const char* why = nullptr;
  kernels::efficient_attention_refusal(kCUDA, why, p, with_gradient);
  RUSH_CHECK_NOT_IMPLEMENTED(!why, op, ": ", why);
}

void efficient_attention(const Tensor& out, const Tensor& logsumexp, const AttentionProblem& p) {
  check_efficient(kernels::efficient_attention.name(), p, false);
  pick<ForwardLoop>(TypeList<float, Half, BFloat16>(), p.query.scalar_type(), kernels::efficient_attention.name())(
      out, logsumexp, p);
}

void checked_backward(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& out,
                      const Tensor& logsumexp, const AttentionProblem& p) {
  check_efficient(kernels::efficient_attention_backward.name(), p, true);
  efficient_attention_backward(grads, grad, out, logsumexp, p);
}

int64_t bytes_of_delta(const std::array<Tensor, 3>&, const Tensor&, const Tensor&, const Tensor& logsumexp,
                       const AttentionProblem&) {
  return logsumexp.numel() * static_cast<int64_t>(sizeof(float));
}

void refuse_efficient(const char*& why, const AttentionProblem& p, bool with_gradient) {
  const int64_t width = std::max(p.query.size(3), p.value.size(3));
  const bool of_float32 = p.query.scalar_type() == kFloat32;
  const int bytes = with_tile_width(p.query, p.value, [&](auto wide) {
    using InFloat32 = TileOfRows<decltype(wide)::value, float>;
    using In16Bits = TileOfRows<decltype(wide)::value, Half>;
    if (with_gradient) return of_float32 ? InFloat32::kBackwardBytes : In16Bits::kBackwardBytes;
    return of_float32 ? InFloat32::kForwardBytes : In16Bits::kForwardBytes;
  });
  const bool any_gpu = p.query.device().is_meta() && !is_available();  // an estimate of memory
  if (p.query.scalar_type() == kFloat64) {
    why = "computes in float32";
  } else if (!any_gpu && current_properties().major < 8) {
    why = "needs a GPU of compute capability 8.0";
  } else if (width > kWidestHead || p.query.size(3) == 0) {
    why = "has heads of 1 to 256 numbers only";
  } else if (!any_gpu && static_cast<size_t>(bytes) > current_properties().sharedMemPerBlockOptin) {
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
  launch_kernel(kernels::store_philox.name(), store_philox_kernel, {1, 1}, state, seed.data_ptr<int64_t>(),
                offset.data_ptr<int64_t>());
}

// Sets row i of (B, H, L, width) to 0 and its LSE to +inf if the mask hides all of its keys.
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
  kernels::efficient_attention_backward.set_scratch(kCUDA, bytes_of_delta);
  kernels::efficient_attention_refusal.set_by_parts(kCUDA, refuse_efficient);
  kernels::store_philox.set(kCUDA, store_philox);
  kernels::cudnn_attention.set_by_parts(kCUDA, dnn_attention);
  kernels::cudnn_attention_backward.set_by_parts(kCUDA, dnn_attention_backward);
  kernels::cudnn_attention_refusal.set_by_parts(kCUDA, dnn_attention_refusal);
}

}  // namespace rush::cuda
