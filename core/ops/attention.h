// Attention.
#pragma once
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, double, bool,
                           std::optional<double>, bool)>
    scaled_dot_product_attention{
        "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
        "dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor"};
}  // namespace ops

// softmax(scale query key^T + mask) value: query (..., H, L, E), key (..., H, S, E), value (..., H, S, V) -> (..., H, L,
// V), leading dimensions broadcasting. `attn_mask`, broadcastable to (..., H, L, S), is added when floating point, and
// keeps the positions where it is true when bool; a row without any gives zeros. With `is_causal`, position i sees keys
// 0 to i. `scale` defaults to 1 / sqrt(E). `dropout_p` of the weights are dropped, in every call: pass 0 in evaluation.
// With `enable_gqa`, key and value may have fewer heads (dimension -3), each shared by as many query heads as divide.
// Throws ValueError and TypeError. https://pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
inline Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                           const std::optional<Tensor>& attn_mask = std::nullopt,
                                           double dropout_p = 0.0, bool is_causal = false,
                                           std::optional<double> scale = std::nullopt, bool enable_gqa = false) {
  return ops::scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa);
}

}  // namespace rush
