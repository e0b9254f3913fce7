// Options of MultiheadAttention and of the transformer's modules.
#pragma once
#include <functional>

#include "core/tensor.h"
#include "nn/any_module.h"
#include "nn/arg.h"
#include "nn/enum.h"

namespace rush::nn {

/// num_heads heads of embed_dim / num_heads features each.
struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads) : embed_dim_(embed_dim), num_heads_(num_heads) {}
  RUSH_ARG(int64_t, embed_dim);
  RUSH_ARG(int64_t, num_heads);
  // The dropout of the attention weights, while training.
  RUSH_ARG(double, dropout) = 0.0;
  RUSH_ARG(bool, bias) = true;
  // Whether a learned key and value stand after the given ones.
  RUSH_ARG(bool, add_bias_kv) = false;
  // Whether a key and value of zeros stand after the given ones.
  RUSH_ARG(bool, add_zero_attn) = false;
  // Sizes of keys and values; default: embed_dim.
  RUSH_ARG(std::optional<int64_t>, kdim) = std::nullopt;
  RUSH_ARG(std::optional<int64_t>, vdim) = std::nullopt;
  // As in Python; libtorch lacks it. (N, L, E) instead of (L, N, E).
  RUSH_ARG(bool, batch_first) = false;
};

namespace detail {
using transformer_activation_t = std::variant<enumtype::kReLU, enumtype::kGELU, std::function<Tensor(const Tensor&)>>;
}  // namespace detail

// What encoder and decoder layers' options have in common. layer_norm_eps, batch_first, norm_first and bias are
// Python's.
#define RUSH_TRANSFORMER_LAYER_OPTIONS(Name)                                  \
  Name(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}  \
  using activation_t = detail::transformer_activation_t;                      \
  RUSH_ARG(int64_t, d_model);                                                 \
  RUSH_ARG(int64_t, nhead);                                                   \
  RUSH_ARG(int64_t, dim_feedforward) = 2048;                                  \
  RUSH_ARG(double, dropout) = 0.1;                                            \
  RUSH_ARG(activation_t, activation) = kReLU;                                 \
  RUSH_ARG(double, layer_norm_eps) = 1e-5;                                    \
  RUSH_ARG(bool, batch_first) = false;                                        \
  /* Normalise before attention and feed-forward instead of after the sum. */ \
  RUSH_ARG(bool, norm_first) = false;                                         \
  /* Of attention, linear maps and normalisations. */                         \
  RUSH_ARG(bool, bias) = true

/// d_model: the features E of the sequences. nhead: the heads of attention.
struct TransformerEncoderLayerOptions {
  RUSH_TRANSFORMER_LAYER_OPTIONS(TransformerEncoderLayerOptions);
};

/// As TransformerEncoderLayerOptions.
struct TransformerDecoderLayerOptions {
  RUSH_TRANSFORMER_LAYER_OPTIONS(TransformerDecoderLayerOptions);
};

#undef RUSH_TRANSFORMER_LAYER_OPTIONS

/// As TransformerEncoderLayerOptions, for the layers of both; custom_encoder and custom_decoder take their place.
struct TransformerOptions {
  using activation_t = detail::transformer_activation_t;
  TransformerOptions() = default;
  TransformerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  TransformerOptions(int64_t d_model, int64_t nhead, int64_t num_encoder_layers, int64_t num_decoder_layers)
      : d_model_(d_model),
        nhead_(nhead),
        num_encoder_layers_(num_encoder_layers),
        num_decoder_layers_(num_decoder_layers) {}
  RUSH_ARG(int64_t, d_model) = 512;
  RUSH_ARG(int64_t, nhead) = 8;
  RUSH_ARG(int64_t, num_encoder_layers) = 6;
  RUSH_ARG(int64_t, num_decoder_layers) = 6;
  RUSH_ARG(int64_t, dim_feedforward) = 2048;
  RUSH_ARG(double, dropout) = 0.1;
  RUSH_ARG(activation_t, activation) = kReLU;
  // In place of the encoder, forward(src, src_mask, src_key_padding_mask), and of the decoder, forward(tgt, memory,
  // tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask).
  RUSH_ARG(AnyModule, custom_encoder);
  RUSH_ARG(AnyModule, custom_decoder);
  RUSH_ARG(double, layer_norm_eps) = 1e-5;
  RUSH_ARG(bool, batch_first) = false;
  RUSH_ARG(bool, norm_first) = false;
  RUSH_ARG(bool, bias) = true;
};

namespace functional {

/// What multi_head_attention_forward takes beside queries, keys and values.
struct MultiheadAttentionForwardFuncOptions {
  MultiheadAttentionForwardFuncOptions(int64_t embed_dim_to_check, int64_t num_heads, Tensor in_proj_weight,
                                       Tensor in_proj_bias, Tensor bias_k, Tensor bias_v, bool add_zero_attn,
                                       double dropout_p, Tensor out_proj_weight, Tensor out_proj_bias)
      : embed_dim_to_check_(embed_dim_to_check),
        num_heads_(num_heads),
        in_proj_weight_(std::move(in_proj_weight)),
        in_proj_bias_(std::move(in_proj_bias)),
        bias_k_(std::move(bias_k)),
        bias_v_(std::move(bias_v)),
        add_zero_attn_(add_zero_attn),
        dropout_p_(dropout_p),
        out_proj_weight_(std::move(out_proj_weight)),
        out_proj_bias_(std::move(out_proj_bias)) {}
  RUSH_ARG(int64_t, embed_dim_to_check);
  RUSH_ARG(int64_t, num_heads);
  RUSH_ARG(Tensor, in_proj_weight);  // (3 E, E), of queries, keys and values
  RUSH_ARG(Tensor, in_proj_bias);    // (3 E)
  RUSH_ARG(Tensor, bias_k);          // (1, 1, E)
  RUSH_ARG(Tensor, bias_v);
  RUSH_ARG(bool, add_zero_attn);
  RUSH_ARG(double, dropout_p);
  RUSH_ARG(Tensor, out_proj_weight);  // (E, E)
  RUSH_ARG(Tensor, out_proj_bias);
  RUSH_ARG(bool, training) = true;
  // (N, S): keys that are not looked at (bool), or what is added to their scores.
  RUSH_ARG(Tensor, key_padding_mask);
  // Whether the attention weights are returned; without them it is faster.
  RUSH_ARG(bool, need_weights) = true;
  // (L, S) or (N * heads, L, S): pairs that are not looked at (bool), or what is added to their scores.
  RUSH_ARG(Tensor, attn_mask);
  // Instead of in_proj_weight, for keys and values of other sizes: (E, E), (E, kdim), (E, vdim).
  RUSH_ARG(bool, use_separate_proj_weight) = false;
  RUSH_ARG(Tensor, q_proj_weight);
  RUSH_ARG(Tensor, k_proj_weight);
  RUSH_ARG(Tensor, v_proj_weight);
  // In place of the projected keys and values: (N * heads, S, E / heads).
  RUSH_ARG(Tensor, static_k);
  RUSH_ARG(Tensor, static_v);
  // The weights' mean over the heads (N, L, S), or those of each head (N, heads, L, S).
  RUSH_ARG(bool, average_attn_weights) = true;
};

}  // namespace functional
}  // namespace rush::nn
