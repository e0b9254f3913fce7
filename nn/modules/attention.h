// MultiheadAttention.
#pragma once
#include "nn/modules/linear.h"
#include "nn/options/transformer.h"

namespace rush::nn {

/// Vaswani et al., "Attention is all you need" (2017), as torch.nn.MultiheadAttention computes it. Parameters
/// in_proj_weight (3 E, E), or q_proj_weight (E, E), k_proj_weight (E, kdim) and v_proj_weight (E, vdim) where keys or
/// values have other sizes; in_proj_bias (3 E); bias_k and bias_v (1, 1, E) with add_bias_kv; and submodule out_proj.
class MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options);
  void reset() override;
  /// Weights of queries, keys and values Glorot-uniform, biases zero, bias_k and bias_v Glorot-normal.
  void _reset_parameters();

  /// Queries (L, N, E), keys (S, N, kdim), values (S, N, vdim), or batch first, or without N -> the output (L, N, E)
  /// and the attention weights (N, L, S), or (N, heads, L, S) unless they are averaged. Masks: see
  /// functional::MultiheadAttentionForwardFuncOptions.
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const std::optional<Tensor>& key_padding_mask = std::nullopt,
                                     bool need_weights = true, const std::optional<Tensor>& attn_mask = std::nullopt,
                                     bool average_attn_weights = true);
  RUSH_FORWARD_HAS_DEFAULT_ARGS({3, AnyValue(std::optional<Tensor>())}, {4, AnyValue(true)},
                                {5, AnyValue(std::optional<Tensor>())}, {6, AnyValue(true)})

  MultiheadAttentionOptions options;
  Tensor in_proj_weight, in_proj_bias, bias_k, bias_v;
  Tensor q_proj_weight, k_proj_weight, v_proj_weight;
  Linear out_proj{nullptr};
};
RUSH_MODULE(MultiheadAttention);

}  // namespace rush::nn
