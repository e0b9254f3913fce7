#include "core/ops/attention.h"

#include <cmath>

#include "autograd/derivatives/register.h"
#include "autograd/derive.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/view.h"

namespace rush {

namespace {

// For out = P V, P = softmax(scale Q K^T + mask): d V = P^T G, and with S = P * (G V^T - rowsum(G * out)), d Q = scale
// S K and d K = scale S^T Q. Computed by blocks, or, where it is recorded itself, by operators that have derivatives.
struct AttentionBackward final : Node {
  Saved query, key, value, mask, out, logsumexp;
  bool causal = false;
  double scale = 1;
  RUSH_SAVED(query, key, value, mask, out, logsumexp)
  void save(const Tensor& q, const Tensor& k, const Tensor& v, double, bool is_causal,
            const std::optional<Tensor>& attn_mask, std::optional<double> factor) {
    query = q;
    key = k;
    value = v;
    mask = attn_mask;
    causal = is_causal;
    scale = factor.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
  }
  void save_output(const Tensor& result, const Tensor& sums) {
    out = Saved::output(result, this);
    logsumexp = Saved::output(sums, this);
  }
  Tensors apply(const Tensors& g) override {
    RUSH_CHECK_NOT_IMPLEMENTED(!g[1].defined(), "scaled_dot_product_attention: logsumexp has no derivative");
    if (dispatch_state.grad_mode) return by_operators(g[0]);
    const auto [dq, dk, dv] = ops::_scaled_dot_product_flash_attention_for_cpu_backward(
        g[0], query.get(), key.get(), value.get(), out.get(), logsumexp.get(), 0, causal, given_mask(), scale);
    return {dq, dk, dv, Tensor()};
  }

 private:
  std::optional<Tensor> given_mask() const { return mask.defined() ? std::optional<Tensor>(mask.get()) : std::nullopt; }

  Tensors by_operators(const Tensor& g) const {
    const Tensor q = query.get(), k = key.get(), v = value.get();
    const Tensor p = native::attention_weights(q, k, given_mask(), causal, scale);
    const Tensor by_weight = g.matmul(v.transpose(-2, -1));
    const Tensor slope = p * (by_weight - (by_weight * p).sum(-1, true)) * scale;
    return {slope.matmul(k), slope.transpose(-2, -1).matmul(q), p.transpose(-2, -1).matmul(g), Tensor()};
  }
};

}  // namespace

void register_attention_derivatives(Registry& r) {
  derive<ops::_scaled_dot_product_flash_attention_for_cpu, AttentionBackward>(r);
}

}  // namespace rush
