// Attention by matrix products: the scores of all queries and keys are stored, softmax is fused with the mask. Scores
// of 16-bit inputs stay in float32; only weights are rounded, for the product with the values, as FlashAttention does.
#include "core/ops/attention.h"

#include "backends/cuda/blas/gemm.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/online_sum.h"
#include "backends/cuda/kernels/register_reductions.h"
#include "backends/cuda/kernels/rows.h"
#include "core/ops/copy.h"

namespace rush::cuda {

namespace {

// (B, H, length, width), any strides -> (B H, length, width), row-major.
Tensor as_batch(const Tensor& t) {
  const Tensor dense = native::contiguous(t);
  const int64_t length = t.size(2), width = t.size(3);
  return rush::detail::make_view(dense, {t.size(0) * t.size(1), length, width}, {length * width, width, 1},
                                 dense.storage_offset());
}
Tensor transposed(const Tensor& t) {
  return rush::detail::make_view(t, {t.size(0), t.size(2), t.size(1)}, {t.stride(0), t.stride(2), t.stride(1)},
                                 t.storage_offset());
}
Tensor product(const Tensor& a, const Tensor& b, double alpha, ScalarType dtype) {
  const Tensor c = rush::detail::empty_contiguous({a.size(0), a.size(1), b.size(2)}, dtype, a.device());
  gemm(c, a, b, 0, alpha);
  return c;
}
// Where `t`, rounded to `dtype`, goes: over itself when nothing is rounded.
Tensor rounded_into(const Tensor& t, ScalarType dtype) {
  return t.scalar_type() == dtype ? t : rush::detail::empty_contiguous(t.sizes(), dtype, t.device());
}
// Into (B, H, length, width) of any strides.
void store(const Tensor& to, const Tensor& from) {
  const Tensor heads = rush::detail::make_view(from, to.sizes(), contiguous_strides(to.sizes()), from.storage_offset());
  Tensor target = to;
  native::copy_(target, heads, false);
}

// Scores (B H, L, S) and what is added to them.
template <class T>
struct Scores {
  using Math = opmath_t<T>;
  const Math* scores;
  const T* mask;  // null: none
  int64_t mask_strides[4];
  int64_t heads, rows, queries, keys;
  bool causal;

  Scores(const Tensor& all, const Tensor& added, int64_t head_count, bool is_causal)
      : scores(all.data_ptr<Math>()),
        mask(added.defined() ? added.data_ptr<T>() : nullptr),
        heads(head_count),
        rows(all.size(0) * all.size(1)),
        queries(all.size(1)),
        keys(all.size(2)),
        causal(is_causal) {
    for (int d = 0; d < 4; ++d) mask_strides[d] = mask ? added.stride(d) : 0;
  }
  // How many keys a row sees.
  __device__ int64_t visible(int64_t row) const { return causal ? std::min<int64_t>(row % queries + 1, keys) : keys; }
  __device__ Math at(int64_t row, int64_t key) const {
    Math score = scores[row * keys + key];
    if (mask) {
      const int64_t head = row / queries;
      score += static_cast<Math>(mask[head / heads * mask_strides[0] + head % heads * mask_strides[1] +
                                      row % queries * mask_strides[2] + key * mask_strides[3]]);
    }
    return score;
  }
};

// The weights of scores, which they may replace; a row that sees no key becomes zero.
template <class T>
__global__ void __launch_bounds__(1024) weights_kernel(Scores<T> s, T* weights, opmath_t<T>* logsumexp) {
  using Math = opmath_t<T>;
  const OnlineSum<Math> f;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < s.rows; first += step) {
    const int64_t row = first + threadIdx.y, n = row < s.rows ? s.visible(row) : 0;
    auto acc = f.identity();
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x) acc = f.take(acc, s.at(row, k));
    acc = combine_row(acc, f);
    if (row >= s.rows) continue;
    const bool none = acc.largest == functors::lowest_of<Math>();
    for (int64_t k = threadIdx.x; k < s.keys; k += blockDim.x) {
      const Math weight = none || k >= n ? Math(0) : std::exp(s.at(row, k) - acc.largest) / acc.sum;
      weights[row * s.keys + k] = static_cast<T>(weight);
    }
    if (threadIdx.x == 0) logsumexp[row] = none ? acc.largest : acc.largest + std::log(acc.sum);
  }
}

// The sum of grad * out over each row: (B H, L).
template <class T>
struct AlongOutput {
  using Math = opmath_t<T>;
  const T *grad, *out;
  Math* along;
  int64_t width;
  __device__ void operator()(int64_t row) const {
    Math sum(0);
    for (int64_t c = row * width; c < (row + 1) * width; ++c) {
      sum += static_cast<Math>(grad[c]) * static_cast<Math>(out[c]);
    }
    along[row] = sum;
  }
};

// The weights P again, and the slopes P (grad V^T - along) of the scores. They may replace scores and grad V^T.
template <class T>
struct Slopes {
  using Math = opmath_t<T>;
  Scores<T> s;
  const Math *grad_weights, *logsumexp, *along;  // the first is grad V^T
  T *weights, *slopes;
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / s.keys, key = i % s.keys;
    const Math level = logsumexp[row];
    const bool seen = key < s.visible(row) && !std::isinf(level);
    const Math weight = seen ? std::exp(s.at(row, key) - level) : Math(0);
    slopes[i] = static_cast<T>(seen ? weight * (grad_weights[i] - along[row]) : Math(0));
    weights[i] = static_cast<T>(weight);
  }
};

struct ForwardLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& logsumexp, const Tensor& query, const Tensor& key,
                  const Tensor& value, const Tensor& mask, bool causal, double scale) {
    if (out.numel() == 0) return;
    const ScalarType dtype = query.scalar_type();
    const Tensor scores = product(as_batch(query), transposed(as_batch(key)), scale, logsumexp.scalar_type());
    const Tensor weights = rounded_into(scores, dtype);
    const Scores<T> s(scores, mask, query.size(1), causal);
    const RowLaunch l(s.rows, s.keys, 8);
    weights_kernel<<<l.grid, l.block, 0, current_stream()>>>(s, weights.data_ptr<T>(),
                                                             logsumexp.data_ptr<opmath_t<T>>());
    RUSH_CUDA_LAUNCHED(kernels::attention.name());
    store(out, product(weights, as_batch(value), 1, dtype));
  }
};

struct BackwardLoop {
  template <class T>
  static void run(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& query, const Tensor& key,
                  const Tensor& value, const Tensor& out, const Tensor& logsumexp, const Tensor& mask, bool causal,
                  double scale) {
    using Math = opmath_t<T>;
    const char* op = kernels::attention_backward.name();
    const ScalarType dtype = query.scalar_type(), sum_dtype = logsumexp.scalar_type();
    const Tensor q = as_batch(query), k = as_batch(key), v = as_batch(value), g = as_batch(grad), o = as_batch(out);
    const Tensor scores = product(q, transposed(k), scale, sum_dtype);
    const Tensor grad_weights = product(g, transposed(v), 1, sum_dtype);
    const Tensor weights = rounded_into(scores, dtype), slopes = rounded_into(grad_weights, dtype);
    const Tensor along = rush::detail::empty_contiguous(logsumexp.sizes(), sum_dtype, query.device());
    for_each_index(op, along.numel(),
                   AlongOutput<T>{g.data_ptr<T>(), o.data_ptr<T>(), along.data_ptr<Math>(), v.size(2)});
    for_each_index(
        op, scores.numel(),
        Slopes<T>{Scores<T>(scores, mask, query.size(1), causal), grad_weights.data_ptr<Math>(),
                  logsumexp.data_ptr<Math>(), along.data_ptr<Math>(), weights.data_ptr<T>(), slopes.data_ptr<T>()});
    store(grads[0], product(slopes, k, scale, dtype));
    store(grads[1], product(transposed(slopes), q, scale, dtype));
    store(grads[2], product(transposed(weights), g, 1, dtype));
  }
};

void attention(const Tensor& out, const Tensor& logsumexp, const Tensor& query, const Tensor& key, const Tensor& value,
               const Tensor& mask, bool causal, double scale) {
  pick<ForwardLoop>(RealFloatTypes(), query.scalar_type(), kernels::attention.name())(out, logsumexp, query, key, value,
                                                                                      mask, causal, scale);
}

void attention_backward(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& query, const Tensor& key,
                        const Tensor& value, const Tensor& out, const Tensor& logsumexp, const Tensor& mask,
                        bool causal, double scale) {
  pick<BackwardLoop>(RealFloatTypes(), query.scalar_type(), kernels::attention_backward.name())(
      grads, grad, query, key, value, out, logsumexp, mask, causal, scale);
}

}  // namespace

void register_attention() {
  kernels::attention.set(kCUDA, attention);
  kernels::attention_backward.set(kCUDA, attention_backward);
}

}  // namespace rush::cuda
