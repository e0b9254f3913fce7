// Attention.
#pragma once
#include <array>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, double, bool,
                           std::optional<double>, bool)>
    scaled_dot_product_attention{
        "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
        "dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor"};
// In one pass over blocks of keys, without holding the (L, S) weights: see Note [Attention by blocks].
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, double, bool,
                                               const std::optional<Tensor>&, std::optional<double>)>
    _scaled_dot_product_flash_attention_for_cpu{
        "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., "
        "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                                       const Tensor&, const Tensor&, double, bool,
                                                       const std::optional<Tensor>&, std::optional<double>)>
    _scaled_dot_product_flash_attention_for_cpu_backward{
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor "
        "value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? "
        "scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)"};
}  // namespace ops

// softmax(scale query key^T + mask) value: query (..., H, L, E), key (..., H, S, E), value (..., H, S, V) -> (..., H,
// L, V), leading dimensions broadcasting. `attn_mask`, broadcastable to (..., H, L, S), is added when floating point,
// and keeps the positions where it is true when bool; a row without any gives zeros. With `is_causal`, position i sees
// keys 0 to i. `scale` defaults to 1 / sqrt(E). `dropout_p` of the weights are dropped, in every call: pass 0 in
// evaluation. With `enable_gqa`, key and value may have fewer heads (dimension -3), each shared by as many query heads
// as divide. Throws ValueError and TypeError.
// https://pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
inline Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                           const std::optional<Tensor>& attn_mask = std::nullopt,
                                           double dropout_p = 0.0, bool is_causal = false,
                                           std::optional<double> scale = std::nullopt, bool enable_gqa = false) {
  return ops::scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa);
}

namespace native {
// Of operators that have derivatives: softmax(scale query key^T + mask), zeros in rows that see no key.
Tensor attention_weights(const Tensor& query, const Tensor& key, const std::optional<Tensor>& mask, bool is_causal,
                         double scale);
}  // namespace native

namespace kernels {
// query (B, H, L, E), key (B, H, S, E), value (B, H, S, V), of any strides; mask (B, H, L, S) is added to the scores,
// or undefined. out (B, H, L, V), and logsumexp (B, H, L) of each row of scores, which the gradient needs.
inline constinit Kernel<void(const Tensor& out, const Tensor& logsumexp, const Tensor& query, const Tensor& key,
                             const Tensor& value, const Tensor& mask, bool is_causal, double scale)>
    attention{"scaled_dot_product_attention"};
// grads: of query, key and value, for the gradient `grad` of out.
inline constinit Kernel<void(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& query,
                             const Tensor& key, const Tensor& value, const Tensor& out, const Tensor& logsumexp,
                             const Tensor& mask, bool is_causal, double scale)>
    attention_backward{"scaled_dot_product_attention_backward"};
}  // namespace kernels

}  // namespace rush
