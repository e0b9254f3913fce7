#pragma once
#include <tuple>

#include "nn/options/transformer.h"

namespace rush::nn::functional {

/// Attention by several heads. Vaswani et al., "Attention is all you need" (2017), section 3.2: queries (L, N, E), keys
/// (S, N, kdim), values (S, N, vdim) -> the output (L, N, E), and the attention weights, undefined unless need_weights.
/// All also without N. Throws ValueError on shapes that do not fit, TypeError on masks that are neither bool nor of the
/// query's dtype.
std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                        const MultiheadAttentionForwardFuncOptions& options);

}  // namespace rush::nn::functional
