#include "core/ops/nn/attention.h"

#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"
#include "core/ops/nn/fused_attention.h"

namespace rush {

namespace {

// (B, K, S, E) -> (B, H, S, E): each head as often as queries share it; and the gradient of that.
Tensor repeat_heads(const Tensor& t, int64_t heads) {
  if (t.size(1) == heads) return t;
  return t.unsqueeze(2)
      .expand({t.size(0), t.size(1), heads / t.size(1), t.size(2), t.size(3)})
      .reshape({t.size(0), heads, t.size(2), t.size(3)});
}
Tensor add_heads(const Tensor& grad, int64_t heads) {
  if (grad.size(1) == heads) return grad;
  return grad.reshape({grad.size(0), heads, grad.size(1) / heads, grad.size(2), grad.size(3)}).sum(2);
}

// For out = P V, P = softmax(scale Q K^T + mask): d V = P^T G, and with S = P * (G V^T - rowsum(G * out)), d Q = scale
// S K and d K = scale S^T Q. Computed by tiles, or, where it is recorded itself, by operators that have derivatives.
struct AttentionBackward : Node {
  static constexpr size_t kDifferentiable = 1;
  Saved query, key, value, mask, out, logsumexp, seed, offset;
  bool causal = false;
  double dropout_p = 0;
  std::optional<double> given_scale;
  RUSH_SAVED(query, key, value, mask, out, logsumexp, seed, offset)
  Tensors apply(const Tensors& g) override {
    RUSH_CHECK_NOT_IMPLEMENTED(!needs(3), "scaled_dot_product_attention: a fused back end has no gradient by the mask");
    if (!g[0].defined()) return Tensors(4);
    const Tensor q = query.get();
    const double scale = native::attention_scale(q, given_scale);
    return dispatch_state.grad_mode ? by_operators(g[0], q, scale) : by_tiles(g[0], q, scale);
  }

 protected:
  // Gradients of query, key, value and mask, which has none.
  virtual Tensors by_tiles(const Tensor& grad, const Tensor& q, double scale) const = 0;

  std::optional<Tensor> given_mask() const { return mask.defined() ? std::optional<Tensor>(mask.get()) : std::nullopt; }

 private:
  Tensors by_operators(const Tensor& g, const Tensor& q, double scale) const {
    RUSH_CHECK_NOT_IMPLEMENTED(dropout_p == 0,
                               "scaled_dot_product_attention: with dropout, a fused back end can be differentiated "
                               "once only; run the forward pass with SDPBackendGuard({SDPBackend::math})");
    const Tensor shared_k = key.get(), shared_v = value.get();
    const Tensor k = repeat_heads(shared_k, q.size(1)), v = repeat_heads(shared_v, q.size(1));
    const Tensor p = native::attention_weights(q, k, given_mask(), causal, scale);
    const Tensor by_weight = g.matmul(v.transpose(-2, -1));
    const Tensor slope = p * (by_weight - (by_weight * p).sum(-1, true)) * scale;
    return {slope.matmul(k), add_heads(slope.transpose(-2, -1).matmul(q), shared_k.size(1)),
            add_heads(p.transpose(-2, -1).matmul(g), shared_v.size(1)), Tensor()};
  }
};

struct FlashAttentionForCpuBackward final : AttentionBackward {
  auto saved_arguments() { return std::tie(query, key, value, dropout_p, causal, mask, given_scale); }
  auto saved_results() { return std::tie(out, logsumexp); }

 private:
  Tensors by_tiles(const Tensor& grad, const Tensor& q, double scale) const override {
    const auto [dq, dk, dv] = ops::_scaled_dot_product_flash_attention_for_cpu_backward(
        grad, q, key.get(), value.get(), out.get(), logsumexp.get(), dropout_p, causal, given_mask(), scale);
    return {dq, dk, dv, Tensor()};
  }
};

struct EfficientAttentionBackward final : AttentionBackward {
  auto saved_arguments() { return std::tie(query, key, value, mask, std::ignore, dropout_p, causal, given_scale); }
  auto saved_results() { return std::tie(out, logsumexp, seed, offset); }

 private:
  Tensors by_tiles(const Tensor& grad, const Tensor& q, double scale) const override {
    const auto [dq, dk, dv, dbias] = ops::_scaled_dot_product_efficient_attention_backward(
        grad, q, key.get(), value.get(), mask.get(), out.get(), logsumexp.get(), seed.get(), offset.get(), dropout_p,
        {needs(0), needs(1), needs(2), false}, causal, scale);
    return {dq, dk, dv, dbias};
  }
};

struct CudnnAttentionBackward final : AttentionBackward {
  auto saved_arguments() {
    return std::tie(query, key, value, mask, std::ignore, dropout_p, causal, std::ignore, given_scale);
  }
  auto saved_results() {
    const auto& unused = std::ignore;
    return std::tie(out, logsumexp, unused, unused, unused, unused, seed, offset, unused);
  }

 private:
  Tensors by_tiles(const Tensor& grad, const Tensor& q, double scale) const override {
    const Tensor k = key.get();
    const auto [dq, dk, dv] = ops::_scaled_dot_product_cudnn_attention_backward(
        grad, q, k, value.get(), out.get(), logsumexp.get(), seed.get(), offset.get(), mask.get(), Tensor(), Tensor(),
        q.size(2), k.size(2), dropout_p, causal, scale);
    return {dq, dk, dv, Tensor()};
  }
};

}  // namespace

void register_attention_derivatives(Registry& r) {
  derive<ops::_scaled_dot_product_flash_attention_for_cpu, FlashAttentionForCpuBackward>(r);
  derive<ops::_scaled_dot_product_efficient_attention, EfficientAttentionBackward>(r);
  derive<ops::_scaled_dot_product_cudnn_attention, CudnnAttentionBackward>(r);
}

}  // namespace rush
