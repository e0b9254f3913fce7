#include "core/ops/nn/fused_attention.h"

#include <cmath>
#include <limits>

#include "backends/cpu/linalg/gemm_pack.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/pointwise/vector_exp.h"
#include "backends/cpu/register.h"
#include "backends/cpu/scratch.h"

namespace rush::cpu {

namespace {

// Note [Attention by blocks]
// O = softmax(S) V, S = scale Q K^T + mask, is accumulated over blocks of keys for a block of queries. The largest
// score of each row so far is subtracted before the exponential; when a block brings a larger one, earlier sums are
// scaled down (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention",
// 2022). Memory holds P = softmax(S) for one block at a time. The backward pass recomputes P = exp(S - LSE).
constexpr int64_t kQueries = 64, kKeys = 256;

template <class T>
struct Heads {  // (B, H, length, width), any strides
  explicit Heads(const Tensor& t)
      : data(t.data_ptr<T>()), heads(t.size(1)), length(t.size(2)), width(t.size(3)), strides(t.strides()) {}
  T* row(int64_t head, int64_t i) const {
    return data + head / heads * strides[0] + head % heads * strides[1] + i * strides[2];
  }
  // Operands of a product whose lanes are rows, from row `i` on, or columns.
  MatrixSource<T> rows(int64_t head, int64_t i) const { return {row(head, i), strides[2], strides[3]}; }
  MatrixSource<T> columns(int64_t head, int64_t i) const { return {row(head, i), strides[3], strides[2]}; }

  T* data;
  int64_t heads, length, width;
  IntArrayRef strides;
};

template <class Math>
Math largest_of(const Math* x, int64_t n, Math largest) {
  constexpr int64_t lanes = 32;
  int64_t i = 0;
  if (n >= lanes) {
    Math best[lanes];
    std::copy_n(x, lanes, best);
    for (i = lanes; i + lanes <= n; i += lanes) {
      for (int64_t l = 0; l < lanes; ++l) best[l] = x[i + l] > best[l] ? x[i + l] : best[l];
    }
    for (Math b : best) largest = std::max(largest, b);
  }
  for (; i < n; ++i) largest = std::max(largest, x[i]);
  return largest;
}

// x := exp(x - shift); returns the sum.
template <class Math>
Math exponentials(Math* x, int64_t n, Math shift) {
  constexpr int64_t lanes = 32;
  Math sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int64_t l = 0; l < lanes; ++l) sums[l] += x[i + l] = vector_exp(x[i + l] - shift);
  }
  Math total(0);
  for (; i < n; ++i) total += x[i] = vector_exp(x[i] - shift);
  for (Math sum : sums) total += sum;
  return total;
}

// The scores S of a block, for the forward and the backward pass.
template <class T>
struct Scores {
  using Math = opmath_t<T>;

  Heads<T> query, key;
  const Tensor& mask;
  bool causal;
  Math scale;

  // How many of the keys [first, first + count) query i attends to.
  int64_t visible(int64_t i, int64_t first, int64_t count) const {
    return causal ? std::clamp<int64_t>(i + 1 - first, 0, count) : count;
  }
  // to (queries, keys) = scale Q K^T + mask.
  void compute(int64_t head, int64_t q, int64_t queries, int64_t k, int64_t keys, Math* to) const {
    multiply<Math>(queries, keys, query.width, query.rows(head, q), key.rows(head, k), scale, Math(0), {to, keys, 1});
    if (!mask.defined()) return;
    const Heads<T> added(mask);
    for (int64_t i = 0; i < queries; ++i) {
      const T* row = added.row(head, q + i) + k * added.strides[3];
      for (int64_t j = 0; j < keys; ++j) to[i * keys + j] += static_cast<Math>(row[j * added.strides[3]]);
    }
  }
};

template <class T>
class Forward {
 public:
  using Math = opmath_t<T>;
  static constexpr Math kNone = -std::numeric_limits<Math>::infinity();

  Forward(const Scores<T>& s, const Heads<T>& value, const Heads<T>& out, Math* logsumexp)
      : s_(s),
        value_(value),
        out_(out),
        logsumexp_(logsumexp),
        weights_(kQueries * kKeys),
        sums_(kQueries * value.width) {}

  void run(int64_t head, int64_t q, int64_t queries) {
    std::fill_n(largest_, queries, kNone);
    std::fill_n(total_, queries, Math(0));
    std::fill_n(sums_.data(), queries * value_.width, Math(0));
    const int64_t seen = s_.causal ? std::min(s_.key.length, q + queries) : s_.key.length;
    for (int64_t k = 0; k < seen; k += kKeys) {
      const int64_t keys = std::min(kKeys, seen - k);
      s_.compute(head, q, queries, k, keys, weights_.data());
      for (int64_t i = 0; i < queries; ++i) take_row(i, s_.visible(q + i, k, keys), keys);
      const MatrixSource<Math> weights(weights_.data(), keys, 1);
      multiply<Math>(queries, value_.width, keys, weights, value_.columns(head, k), Math(1), Math(1),
                     {sums_.data(), value_.width, 1});
    }
    for (int64_t i = 0; i < queries; ++i) store_row(head, q + i, i);
  }

 private:
  // Replaces row i of S by exp(S - largest), after raising largest_[i] to the row's maximum so far.
  void take_row(int64_t i, int64_t visible, int64_t keys) {
    Math* row = weights_.data() + i * keys;
    const Math largest = largest_of(row, visible, largest_[i]);
    if (largest == kNone) return void(std::fill_n(row, keys, Math(0)));
    const Math shrink = std::exp(largest_[i] - largest);
    total_[i] = total_[i] * shrink + exponentials(row, visible, largest);
    std::fill(row + visible, row + keys, Math(0));
    if (shrink != Math(1)) {
      for (int64_t c = 0; c < value_.width; ++c) sums_[i * value_.width + c] *= shrink;
    }
    largest_[i] = largest;
  }

  void store_row(int64_t head, int64_t row, int64_t i) {
    const Math factor = total_[i] == Math(0) ? Math(0) : 1 / total_[i];
    T* to = out_.row(head, row);
    for (int64_t c = 0; c < value_.width; ++c) {
      to[c * out_.strides[3]] = static_cast<T>(sums_[i * value_.width + c] * factor);
    }
    logsumexp_[head * s_.query.length + row] = total_[i] == Math(0) ? kNone : largest_[i] + std::log(total_[i]);
  }

  const Scores<T>& s_;
  Heads<T> value_, out_;
  Math* logsumexp_;
  Scratch<Math> weights_, sums_;
  Math largest_[kQueries], total_[kQueries];
};

struct ForwardLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& logsumexp, const Tensor& query, const Tensor& key,
                  const Tensor& value, const Tensor& mask, bool causal, double scale) {
    using Math = opmath_t<T>;
    if (out.numel() == 0) return;
    const Scores<T> scores{Heads<T>(query), Heads<T>(key), mask, causal, static_cast<Math>(scale)};
    const int64_t blocks = (query.size(2) + kQueries - 1) / kQueries;
    const int64_t work = kQueries * std::max<int64_t>(1, key.size(2)) * (query.size(3) + value.size(3));
    parallel_for(0, query.size(0) * query.size(1) * blocks, std::max<int64_t>(1, (1 << 18) / work),
                 [&](int64_t begin, int64_t end) {
                   Forward<T> forward(scores, Heads<T>(value), Heads<T>(out), logsumexp.data_ptr<Math>());
                   for (int64_t t = begin; t < end; ++t) {
                     const int64_t q = t % blocks * kQueries;
                     forward.run(t / blocks, q, std::min(kQueries, query.size(2) - q));
                   }
                 });
  }
};

// dV = P^T dO, dP = dO V^T, delta = rowsum(dO * O), dS = P * (dP - delta), dQ = scale dS K, dK = scale dS^T Q.
template <class T>
class Backward {
 public:
  using Math = opmath_t<T>;

  Backward(const Scores<T>& s, const Heads<T>& value, const Heads<T>& out, const Heads<T>& grad, const Math* logsumexp,
           const std::array<Heads<T>, 3>& grads)
      : s_(s),
        value_(value),
        out_(out),
        grad_(grad),
        logsumexp_(logsumexp),
        grads_(grads),
        weights_(kQueries * kKeys),
        ds_(kQueries * kKeys),
        delta_(s.query.length),
        grad_query_(s.query.length * s.query.width),
        grad_key_(kKeys * s.key.width),
        grad_value_(kKeys * value.width) {}

  void run(int64_t head) {
    std::fill_n(grad_query_.data(), s_.query.length * s_.query.width, Math(0));
    for (int64_t i = 0; i < s_.query.length; ++i) delta_[i] = row_delta(head, i);
    for (int64_t k = 0; k < s_.key.length; k += kKeys) {
      const int64_t keys = std::min(kKeys, s_.key.length - k);
      std::fill_n(grad_key_.data(), keys * s_.key.width, Math(0));
      std::fill_n(grad_value_.data(), keys * value_.width, Math(0));
      // Under a causal mask, queries before the block's first key attend to none of its keys.
      for (int64_t q = s_.causal ? k / kQueries * kQueries : 0; q < s_.query.length; q += kQueries) {
        add_block(head, q, std::min(kQueries, s_.query.length - q), k, keys);
      }
      store(grads_[1], head, k, keys, grad_key_.data());
      store(grads_[2], head, k, keys, grad_value_.data());
    }
    store(grads_[0], head, 0, s_.query.length, grad_query_.data());
  }

 private:
  Math row_delta(int64_t head, int64_t i) const {
    const T *g = grad_.row(head, i), *o = out_.row(head, i);
    Math sum(0);
    for (int64_t c = 0; c < value_.width; ++c) {
      sum += static_cast<Math>(g[c * grad_.strides[3]]) * static_cast<Math>(o[c * out_.strides[3]]);
    }
    return sum;
  }

  void add_block(int64_t head, int64_t q, int64_t queries, int64_t k, int64_t keys) {
    s_.compute(head, q, queries, k, keys, weights_.data());
    for (int64_t i = 0; i < queries; ++i) {
      Math* row = weights_.data() + i * keys;
      const Math lse = logsumexp_[head * s_.query.length + q + i];
      const int64_t visible = std::isinf(lse) ? 0 : s_.visible(q + i, k, keys);
      exponentials(row, visible, lse);
      std::fill(row + visible, row + keys, Math(0));
    }
    const MatrixSource<Math> weights_by_key(weights_.data(), 1, keys);
    multiply<Math>(keys, value_.width, queries, weights_by_key, grad_.columns(head, q), Math(1), Math(1),
                   {grad_value_.data(), value_.width, 1});
    multiply<Math>(queries, keys, value_.width, grad_.rows(head, q), value_.rows(head, k), Math(1), Math(0),
                   {ds_.data(), keys, 1});
    for (int64_t i = 0; i < queries; ++i) {
      Math* ds_row = ds_.data() + i * keys;
      const Math *weight = weights_.data() + i * keys, delta = delta_[q + i];
      for (int64_t j = 0; j < keys; ++j) ds_row[j] = weight[j] * (ds_row[j] - delta);
    }
    const MatrixSource<Math> ds(ds_.data(), keys, 1), ds_by_key(ds_.data(), 1, keys);
    const int64_t width = s_.query.width;
    multiply<Math>(queries, width, keys, ds, s_.key.columns(head, k), s_.scale, Math(1),
                   {grad_query_.data() + q * width, width, 1});
    multiply<Math>(keys, width, queries, ds_by_key, s_.query.columns(head, q), s_.scale, Math(1),
                   {grad_key_.data(), width, 1});
  }

  static void store(const Heads<T>& to, int64_t head, int64_t first, int64_t count, const Math* from) {
    for (int64_t i = 0; i < count; ++i) {
      T* row = to.row(head, first + i);
      for (int64_t c = 0; c < to.width; ++c) row[c * to.strides[3]] = static_cast<T>(from[i * to.width + c]);
    }
  }

  const Scores<T>& s_;
  Heads<T> value_, out_, grad_;
  const Math* logsumexp_;
  const std::array<Heads<T>, 3>& grads_;  // of query, key, value
  Scratch<Math> weights_, ds_, delta_, grad_query_, grad_key_, grad_value_;
};

struct BackwardLoop {
  template <class T>
  static void run(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& query, const Tensor& key,
                  const Tensor& value, const Tensor& out, const Tensor& logsumexp, const Tensor& mask, bool causal,
                  double scale) {
    using Math = opmath_t<T>;
    const Scores<T> scores{Heads<T>(query), Heads<T>(key), mask, causal, static_cast<Math>(scale)};
    const std::array<Heads<T>, 3> results{Heads<T>(grads[0]), Heads<T>(grads[1]), Heads<T>(grads[2])};
    const int64_t work = std::max<int64_t>(1, query.size(2) * key.size(2) * (query.size(3) + value.size(3)));
    parallel_for(0, query.size(0) * query.size(1), std::max<int64_t>(1, (1 << 18) / work),
                 [&](int64_t begin, int64_t end) {
                   Backward<T> backward(scores, Heads<T>(value), Heads<T>(out), Heads<T>(grad),
                                        logsumexp.data_ptr<Math>(), results);
                   for (int64_t head = begin; head < end; ++head) backward.run(head);
                 });
  }
};

void flash_attention(const Tensor& out, const Tensor& logsumexp, const AttentionProblem& p) {
  pick<ForwardLoop>(RealFloatTypes(), p.query.scalar_type(), kernels::flash_attention_for_cpu.name())(
      out, logsumexp, p.query, p.key, p.value, p.bias, p.is_causal, p.scale);
}
void flash_attention_backward(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& out,
                              const Tensor& logsumexp, const AttentionProblem& p) {
  pick<BackwardLoop>(RealFloatTypes(), p.query.scalar_type(), kernels::flash_attention_for_cpu_backward.name())(
      grads, grad, p.query, p.key, p.value, out, logsumexp, p.bias, p.is_causal, p.scale);
}

}  // namespace

void register_attention() {
  kernels::flash_attention_for_cpu.set(kCPU, flash_attention);
  kernels::flash_attention_for_cpu_backward.set(kCPU, flash_attention_backward);
}

}  // namespace rush::cpu
