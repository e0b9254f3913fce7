// TransformerEncoderLayer and TransformerDecoderLayer.
#pragma once
#include "nn/modules/attention.h"
#include "nn/modules/dropout.h"
#include "nn/modules/norm.h"

namespace rush::nn {

/// Self-attention and a feed-forward network, each added to its input and normalised (or, with norm_first, applied to
/// the normalised input): Vaswani et al., "Attention is all you need" (2017), as torch.nn.TransformerEncoderLayer.
class TransformerEncoderLayerImpl : public Cloneable<TransformerEncoderLayerImpl> {
 public:
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
  explicit TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& options);
  void reset() override;
  void reset_parameters();  // each part's own

  /// (S, N, E), or (N, S, E) with batch_first, or (S, E) -> the same shape. Masks: (S, S) or (N * heads, S, S), and
  /// (N, S); true where a position is not looked at, or numbers to add to its score.
  Tensor forward(const Tensor& src, const std::optional<Tensor>& src_mask = std::nullopt,
                 const std::optional<Tensor>& src_key_padding_mask = std::nullopt);

  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};
  Dropout dropout, dropout1, dropout2;
};
RUSH_MODULE(TransformerEncoderLayer);

/// The same with attention to an encoder's output between the two. torch.nn.TransformerDecoderLayer.
class TransformerDecoderLayerImpl : public Cloneable<TransformerDecoderLayerImpl> {
 public:
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}
  explicit TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& options);
  void reset() override;
  void reset_parameters();  // each part's own

  /// tgt (T, N, E) and memory (S, N, E) -> (T, N, E); masks as the encoder layer's, (T, T), (T, S), (N, T), (N, S).
  Tensor forward(const Tensor& tgt, const Tensor& memory, const std::optional<Tensor>& tgt_mask = std::nullopt,
                 const std::optional<Tensor>& memory_mask = std::nullopt,
                 const std::optional<Tensor>& tgt_key_padding_mask = std::nullopt,
                 const std::optional<Tensor>& memory_key_padding_mask = std::nullopt);

  TransformerDecoderLayerOptions options;
  MultiheadAttention self_attn{nullptr}, multihead_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};
  Dropout dropout, dropout1, dropout2, dropout3;
};
RUSH_MODULE(TransformerDecoderLayer);

}  // namespace rush::nn
